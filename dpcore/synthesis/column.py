"""The numbers of one column of synthetic records, drawn inside its cells from a density.

A code of an interval becomes a value inside it: drawn from a private density of that column, or from
private counts in finer bins, where the plan releases them; otherwise from a smooth density with the
records' counts in the bins (``dpcore.post.records.smooth``).  Whole numbers stay whole, and numbers of a
column with a step are multiples of it (``dpcore.domain.cell_values``).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import singledispatch
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcore.arrays import Booleans, Floats, Integers
from dpcore.domain.axes import Axis, Bins, Grid
from dpcore.domain.cell_values import CellNumbers, times_step
from dpcore.line.statistic import Noisy
from dpcore.post.records.smooth import MOST_BINS, smooth_density
from dpcore.post.records.splitting import counts_of_column
from dpcore.post.tables.simplex import project_to_simplex
from dpcore.releases.abilities import Refining, Samplable
from dpcore.releases.counts.heaping import Heaping

LEAST = 1e-200
"""The least density of a value: a count divided by it, and by a small weight, is still finite."""

SLACK = 1e-6
"""Multiples of a decimal step are doubles, which may lie on the wrong side of the end of a cell."""


@dataclass(frozen=True, eq=False)
class ColumnDensity:
    """A piecewise constant density of one column: ``edges`` (k+1,), ``cumulative`` (k+1,)."""

    edges: Floats
    cumulative: Floats

    @classmethod
    def of(cls, release: Samplable, noisy: Noisy, column: str) -> ColumnDensity:
        """The density of a numeric column in a release, without null; uniform if it has no counts."""
        axis = next(axis for axis in release.domain.axes if axis.name == column)
        assert isinstance(axis, Bins | Grid)
        said = release.supported_margin(noisy, (column,))
        counts, error = np.zeros(axis.cells), 0.0
        if said is not None:
            counts, error = np.array(said[0][: axis.cells], dtype=np.float64), said[1]
        if isinstance(axis, Bins):
            counts[list(axis.points)] = 0  # point masses have cells of their own in the records
        inside = np.delete(np.arange(axis.cells), axis.points if isinstance(axis, Bins) else [])
        if release.refines == "counts" and error > 0.0 and len(inside):
            # Otherwise noise in narrow cells would look like values that many people have.
            widths = CellNumbers.of(axis, inside).size
            counts[inside] = counts_of_column(counts[inside], error**2, widths)
        total = counts.sum()
        # Noisy counts may be negative, but a cumulative share may not fall.
        shares = project_to_simplex(counts / total, 1.0) if total > 0 else np.zeros(axis.cells)
        return cls(axis.edge(np.arange(axis.cells + 1)), np.r_[0.0, np.cumsum(shares)])

    @classmethod
    def uniform(cls, axis: Bins) -> ColumnDensity:
        """A uniform density between the bounds."""
        return cls(np.array([axis.lower, axis.upper]), np.array([0.0, 1.0]))

    @classmethod
    def smooth(cls, axis: Bins, codes: Integers) -> ColumnDensity | None:
        """A smooth density through the bins of records (rows,); None if too few or too many are wide.

        Bins of a single number are not used, as for ranks inside bins.
        """
        wide = np.flatnonzero(wide_cells(axis))
        if not 2 <= len(wide) <= MOST_BINS:
            return None
        inside = CellNumbers.of(axis, wide)
        counts = np.bincount(codes, minlength=axis.size)[wide]
        return cls(*smooth_density(inside.lower, inside.upper, inside.size, counts))

    def draw(self, lower: Floats, upper: Floats, uniforms: Floats) -> Floats:
        """One value between ``lower`` and ``upper`` (k,) for each uniform number (k,)."""
        at_lower = np.interp(lower, self.edges, self.cumulative)
        at_upper = np.interp(upper, self.edges, self.cumulative)
        levels = at_lower + uniforms * (at_upper - at_lower)
        # Where the density is flat at zero its inverse jumps; such an interval is drawn uniformly.
        inside = np.interp(levels, self.cumulative, self.edges)
        flat = at_upper - at_lower <= 1e-12
        values = np.where(flat, lower + uniforms * (upper - lower), inside)
        return np.asarray(np.clip(values, lower, upper))


@dataclass(frozen=True, eq=False)
class ColumnValues:
    """How often multiples of a step occur; ``first``: the smallest, in steps.

    ``weights`` (k,): their relative frequencies within a bin; ``plain`` (k,): the frequencies of values
    of the same size that are not round; ``shared``: positions of the values that have ``counts`` (m,) of
    ``rows`` records.
    """

    step: Fraction
    first: int
    weights: Floats
    plain: Floats
    shared: Integers
    counts: Integers
    rows: int

    @classmethod
    def of(cls, release: Heaping, noisy: Noisy, column: str) -> ColumnValues:
        """The frequencies of a column from a release of shared and round values."""
        values, weights, plain, shared, counts = release.occurring(noisy, column)
        return cls(values.step, values.first, weights, plain, shared, counts, release.rows)

    def inside(self, axis: Bins, codes: Integers) -> ValuesInside:
        """How often each multiple occurs in records (rows,) with these bins."""
        edges = times_step(self.first + np.arange(len(self.weights) + 1), self.step)
        places = np.clip(
            np.searchsorted(axis.edges, edges[:-1], side="right") - 1, 0, axis.cells - 1
        )
        each = np.bincount(codes, minlength=axis.size)[: axis.cells] * (self.rows / len(codes))
        smooth = ColumnDensity.smooth(axis, codes)
        density = np.ones(len(self.weights))
        if smooth is not None:
            density = np.maximum(np.diff(np.interp(edges, smooth.edges, smooth.cumulative)), LEAST)
        weights = self.weights * density
        # Shared values have counts of their own; the others share the rest of a bin.
        weights[self.shared] = 0.0
        taken = np.bincount(places[self.shared], self.counts, axis.cells)
        others = np.bincount(places, weights, axis.cells)
        left = np.divide(
            np.maximum(each - taken, 0.0), others, np.zeros(axis.cells), where=others > 0
        )
        plain = self.plain * density * left[places]
        weights *= left[places]
        weights[self.shared] = self.counts
        plain = np.divide(plain, weights, np.ones(len(weights)), where=weights > plain)
        return ValuesInside(self.step, self.first, np.r_[0.0, np.cumsum(weights)], plain)


@dataclass(frozen=True, eq=False)
class ValuesInside:
    """How often each multiple of a step occurs: ``first``, in steps; ``cumulative`` (k+1,).

    ``plain`` (k,): if a multiple represents several values, the share of its records that are only near.
    """

    step: Fraction
    first: int
    cumulative: Floats
    plain: Floats

    def at(self, inside: CellNumbers, positions: Floats) -> Floats:
        """The number at each position (k,) of a cell, from 0 to below 1."""
        first = np.ceil(inside.first / float(self.step) - SLACK)
        last = np.floor(inside.last / float(self.step) + SLACK)
        lowest, above = (self._place(end) for end in (first, last + 1))
        start, end = self.cumulative[lowest], self.cumulative[above]
        levels = start + positions * (end - start)
        found = np.searchsorted(self.cumulative, levels, side="right") - 1
        places = np.clip(found, lowest, np.maximum(above - 1, lowest))
        written = inside.step or self.step
        few = round(self.step / written)
        steps = (self.first + places) * few + self._beside(places, levels, few)
        values = times_step(steps, written)
        # A cell of one number keeps this number, even if it is not a multiple.
        return np.where(
            last > first, np.clip(values, inside.first, inside.last), inside.at(positions)
        )

    def _beside(self, places: Integers, levels: Floats, few: int) -> Integers:
        """The distance (k,) of each number above its multiple, in steps of the column; below ``few``."""
        places = np.minimum(places, len(self.plain) - 1)
        start, end = self.cumulative[places], self.cumulative[places + 1]
        within = np.clip((levels - start) / np.maximum(end - start, 1e-300), 0.0, 1 - 1e-12)
        plain = self.plain[places]
        # The last records of a multiple are the ones above it, in order.
        above = np.maximum((within - (1 - plain)) / np.maximum(plain, 1e-300), 0.0)
        return np.asarray(np.minimum(above * few, few - 1), dtype=np.int64)

    def _place(self, steps: Floats) -> Integers:
        return np.clip(steps - self.first, 0, len(self.cumulative) - 1).astype(np.int64)


@singledispatch
def inside_bins(release: Refining, noisy: Noisy, column: str) -> ColumnDensity | ColumnValues:
    """How values of a column lie inside the bins of another release, by a draw of this one."""
    raise TypeError(f"{type(release).__name__}: no function is registered for values inside bins")


inside_bins.register(Samplable, ColumnDensity.of)
inside_bins.register(Heaping, ColumnValues.of)


Follows = ColumnDensity | ColumnValues | None
"""The distribution of numbers inside bins, if known."""


@dataclass(frozen=True, eq=False)
class ColumnCells:
    """The cells (rows,) of one numeric column: their numbers, their density, and which are null."""

    axis: Axis
    inside: CellNumbers
    null: Booleans
    density: ColumnDensity | ValuesInside | None

    @classmethod
    def of(cls, axis: Axis, codes: Integers, density: Follows | ValuesInside) -> ColumnCells:
        null = (codes == axis.size - 1) if axis.nullable else np.zeros(len(codes), dtype=bool)
        inside = CellNumbers.of(axis, np.where(null, 0, codes))
        if not isinstance(axis, Bins):
            return cls(axis, inside, null, None)
        if isinstance(density, ColumnValues):
            return cls(axis, inside, null, density.inside(axis, codes))
        return cls(axis, inside, null, density or ColumnDensity.smooth(axis, codes))

    def select(self, rows: Integers) -> ColumnCells:
        return replace(self, inside=self.inside.select(rows), null=self.null[rows])

    def draw(self, generator: np.random.Generator, null: bool = True) -> Floats:
        """Numbers (rows,); NaN for null unless ``null`` is False."""
        return self.at(generator.random(len(self.null)), null)

    def at(self, positions: Floats, null: bool = True) -> Floats:
        """The numbers at positions (rows,) in their cells."""
        if isinstance(self.density, ValuesInside):
            values = self.density.at(self.inside, positions)
            return np.where(self.null, np.nan, values) if null else values
        follows = None if self.density is None else self.density.draw
        values = self.inside.at(positions, follows)
        return np.where(self.null, np.nan, values) if null else values

    def written(self, numbers: Floats) -> NDArray[Any]:
        """The numbers in their column's type, nulls masked."""
        values = np.where(self.null, 0, numbers)
        if isinstance(self.axis, Bins | Grid) and self.axis.integer:
            values = values.astype(np.int64)
        return np.ma.masked_array(values, mask=self.null) if self.null.any() else values


def wide_cells(axis: Axis) -> Booleans:
    """(cells,) whether a cell contains more than one number. Only cells of a plan's bins can."""
    if not isinstance(axis, Bins):
        return np.zeros(axis.size - axis.nullable, dtype=bool)
    inside = CellNumbers.of(axis, np.arange(axis.cells))
    return inside.first < inside.last
