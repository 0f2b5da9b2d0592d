"""From synthetic codes to records in the survey's own columns, categories and types.

A code of a categorical axis is its category, and the null cell is null.  A code of an interval
becomes a value inside it: drawn from a private density of that column, or from private counts in
finer bins, where the plan releases them; otherwise from a smooth density with the records' counts in
the bins (``dpcore.post.records.smooth``).  Whole numbers come out as whole numbers, and those of a
column with a step as multiples of it (``dpcore.cell_values``).  Everything here is post-processing of
noisy statistics.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcore.arrays import Booleans, Floats, Integers
from dpcore.axes import Axis, Bins, Categories, Grid, in_order
from dpcore.cell_values import Inside, spacing
from dpcore.domain import Domain
from dpcore.post.records.differences import Difference, drawn_in_turn
from dpcore.post.records.ordered import positions_in_order
from dpcore.post.records.ranks import positions_in_bins
from dpcore.post.records.rules import Rule
from dpcore.post.records.smooth import MOST_BINS, smooth_density
from dpcore.post.tables.simplex import project_to_simplex
from dpcore.releases.base import Release
from dpcore.releases.counts.cells import masked_categories
from dpcore.statistic import Noisy

TRIES = 8
"""Numbers of a record that break an inequality are drawn again this often, all together."""

LARGEST_RELATED = 2**16
"""The most cells of a column whose ranks inside bins are related to those of others."""

Applying = tuple[Difference, Booleans]
"""An inequality, and to which records (rows,) it applies."""


@dataclass(frozen=True, eq=False)
class ColumnDensity:
    """A piecewise constant density of one column: ``edges`` (k+1,), ``cumulative`` (k+1,)."""

    edges: Floats
    cumulative: Floats

    @classmethod
    def of(cls, release: Release, noisy: Noisy, column: str) -> ColumnDensity:
        """What a release says of one numeric column, null left out; uniform if it says nothing."""
        axis = next(axis for axis in release.domain.axes if axis.name == column)
        assert isinstance(axis, Bins | Grid)
        said = release.supported_margin(noisy, (column,))
        counts = np.zeros(axis.cells) if said is None else np.array(said[0][: axis.cells])
        if isinstance(axis, Bins):
            counts[list(axis.points)] = 0  # they are cells of the records too, and no part of a bin
        total = counts.sum()
        shares = project_to_simplex(counts / total, 1.0) if total > 0 else np.zeros(axis.cells)
        return cls(axis.edge(np.arange(axis.cells + 1)), np.r_[0.0, np.cumsum(shares)])

    @classmethod
    def uniform(cls, axis: Bins) -> ColumnDensity:
        """Alike everywhere inside a bin."""
        return cls(np.array([axis.lower, axis.upper]), np.array([0.0, 1.0]))

    @classmethod
    def smooth(cls, axis: Bins, codes: Integers) -> ColumnDensity | None:
        """What the bins of records (rows,) say of each other; None where there is nothing to say.

        As for ranks inside bins, cells of a single number say nothing where others are wider.
        """
        wide = np.flatnonzero(_wide(axis))
        if not 2 <= len(wide) <= MOST_BINS:
            return None
        inside = Inside.of(axis, wide)
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


def decode_records(
    domain: Domain,
    codes: Integers,
    densities: Mapping[str, ColumnDensity],
    generator: np.random.Generator,
    rules: Sequence[Rule] = (),
    rounded: Sequence[tuple[str, str]] = (),
) -> dict[str, NDArray[Any]]:
    """Columns of records (rows,) from codes (rows, axes); nulls are masked.

    A column with bins that has no density follows a smooth one.  ``rounded``: columns of numbers, each
    with the one whose levels say of which number its values are multiples.

    The numbers of records that obey the rules obey their differences too.  Those of a record that break
    one are drawn again together, and after ``TRIES`` one after another from the room that is left.
    """
    cells = {
        i: _Cells.of(axis, codes[:, i], densities.get(axis.name))
        for i, axis in enumerate(domain.axes)
        if in_order(axis)
    }
    for pair in rounded:
        if set(pair) <= set(domain.names):
            of, heap = map(domain.names.index, pair)
            levels = domain.axes[heap]
            assert isinstance(levels, Categories)
            cells[of] = replace(cells[of], heaps=np.stack(spacing(levels, codes[:, heap])))
    positions = {i: generator.random(len(codes)) for i in cells}
    few = [i for i in cells if domain.axes[i].size <= LARGEST_RELATED]
    wide = [_wide(domain.axes[i]) for i in few]
    if len(few) > 1 and any(of.any() for of in wide):
        related = positions_in_bins(codes[:, few], wide, generator)
        positions |= {i: related[:, c] for c, i in enumerate(few)}
    applying = [
        (difference, rule.applies(codes.T)) for rule in rules for difference in rule.differences
    ]
    for compared in _compared(applying):
        _put_in_order(compared, applying, domain, codes, cells, positions, generator)
    numbers = {i: of.at(positions[i]) for i, of in cells.items()}
    columns = sorted({c for difference, _ in applying for c in difference.columns})
    for _ in range(TRIES if applying else 0):
        wrong = np.flatnonzero(_broken(numbers, applying))
        for c in columns:
            numbers[c][wrong] = cells[c].select(wrong).draw(generator)
    wrong = np.flatnonzero(_broken(numbers, applying)) if applying else np.zeros(0, dtype=np.int64)
    if len(wrong):
        rest = {c: cells[c].select(wrong) for c in columns}
        some = [
            # A number that is null leaves room for any other.
            (d, applies[wrong] & ~np.any([rest[c].null for c in d.columns], axis=0))
            for d, applies in applying
        ]
        drawn = drawn_in_turn(
            {c: of.inside for c, of in rest.items()},
            some,
            lambda c, inside: replace(rest[c], inside=inside).draw(generator, null=False),
        )
        for c, values in drawn.items():
            numbers[c][wrong] = np.where(rest[c].null, np.nan, values)
    return {
        axis.name: masked_categories(axis, codes[:, i])
        if isinstance(axis, Categories)
        else cells[i].written(axis, numbers[i])
        for i, axis in enumerate(domain.axes)
    }


def _compared(applying: Sequence[Applying]) -> list[tuple[int, int]]:
    """Pairs of columns that inequalities compare, each column in the first of its pairs alone."""
    found: list[tuple[int, int]] = []
    taken = set[int]()
    for difference, _ in applying:
        if len(pair := difference.columns) == 2 and taken.isdisjoint(pair):
            found.append((pair[0], pair[1]))
            taken.update(pair)
    return found


def _put_in_order(
    columns: tuple[int, int],
    applying: Sequence[Applying],
    domain: Domain,
    codes: Integers,
    cells: Mapping[int, _Cells],
    positions: dict[int, Floats],
    generator: np.random.Generator,
) -> None:
    """Move two columns' positions to where their numbers are in order and follow their densities.

    Not where a column has none.  Of inequalities that apply to different records those count that
    apply to most; the others are left to what follows.
    """
    if any(cells[c].density is None and _wide(domain.axes[c]).any() for c in columns):
        return
    its = [(d, applies) for d, applies in applying if set(d.columns) == set(columns)]
    ordered = max((applies for _, applies in its), key=np.count_nonzero)
    said = [difference for difference, applies in its if np.array_equal(applies, ordered)]
    both = np.flatnonzero(~(cells[columns[0]].null | cells[columns[1]].null))

    def number(side: int, of: Integers, at: Floats) -> Floats:
        column = columns[side]
        return _Cells.of(domain.axes[column], of, cells[column].density).at(at)

    def in_order(one: Floats, other: Floats) -> Booleans:
        numbers = dict(zip(columns, (one, other), strict=True))
        return np.asarray(~np.any([each.broken(numbers) for each in said], axis=0))

    found = positions_in_order(
        codes[both][:, list(columns)],
        (domain.axes[columns[0]].size, domain.axes[columns[1]].size),
        number,
        in_order,
        ordered[both],
        generator,
        np.stack([positions[c][both] for c in columns], axis=1),
    )
    for side, column in enumerate(columns):
        positions[column] = positions[column].copy()
        positions[column][both] = found[:, side]


def _broken(numbers: Mapping[int, Floats], applying: Sequence[Applying]) -> Booleans:
    """(rows,) whether numbers of each record break a difference that applies to it."""
    broken = [applies & difference.broken(numbers) for difference, applies in applying]
    return np.asarray(np.any(broken, axis=0))


def _wide(axis: Axis) -> Booleans:
    """(cells,) which cells of a plan's bins hold more than one number; those of other axes are fine."""
    if not isinstance(axis, Bins):
        return np.zeros(axis.size - axis.nullable, dtype=bool)
    inside = Inside.of(axis, np.arange(axis.cells))
    return inside.first < inside.last


@dataclass(frozen=True, eq=False)
class _Cells:
    """The cells of one column of numbers: what they hold and follow, and which are null (rows,).

    ``heaps``: (2, rows) of what each number is a multiple, and of what not, where it is known.
    """

    inside: Inside
    null: Booleans
    density: ColumnDensity | None
    heaps: Floats | None = None

    @classmethod
    def of(cls, axis: Axis, codes: Integers, density: ColumnDensity | None) -> _Cells:
        null = (codes == axis.size - 1) if axis.nullable else np.zeros(len(codes), dtype=bool)
        inside = Inside.of(axis, np.where(null, 0, codes))
        if isinstance(axis, Bins):
            return cls(inside, null, density or ColumnDensity.smooth(axis, codes))
        return cls(inside, null, None)

    def select(self, rows: Integers) -> _Cells:
        heaps = None if self.heaps is None else self.heaps[:, rows]
        return replace(self, inside=self.inside.select(rows), null=self.null[rows], heaps=heaps)

    def draw(self, generator: np.random.Generator, null: bool = True) -> Floats:
        """Numbers (rows,), NaN for null unless they are wanted there too."""
        return self.at(generator.random(len(self.null)), null)

    def at(self, positions: Floats, null: bool = True) -> Floats:
        """The numbers at positions (rows,) in their cells."""
        follows = None if self.density is None else self.density.draw
        values = self.inside.at(positions, follows)
        if self.heaps is not None:
            every, but = self.heaps
            found = self.inside.heaped(positions, every, but, follows)
            values = np.where(np.isnan(found), values, found)
        return np.where(self.null, np.nan, values) if null else values

    def written(self, axis: Axis, numbers: Floats) -> NDArray[Any]:
        """The numbers in their column's type, nulls masked."""
        values = np.where(self.null, 0, numbers)
        if isinstance(axis, Bins | Grid) and axis.integer:
            values = values.astype(np.int64)
        return np.ma.masked_array(values, mask=self.null) if self.null.any() else values


def group_households(sizes: Integers, shared: Integers, generator: np.random.Generator) -> Integers:
    """Household numbers (rows,), from 1: records of one size that agree in what is shared.

    ``sizes``: (rows,) positive; ``shared``: (rows, k) codes.  Among the records of a size k that agree,
    any k live together, at random; those left over make one household of fewer.  Records of a masked
    size are in none: their number is masked.
    """
    if np.ma.is_masked(sizes):
        known = ~np.ma.getmaskarray(sizes)
        numbers = np.zeros(len(sizes), dtype=np.int64)
        numbers[known] = group_households(np.asarray(sizes)[known], shared[known], generator)
        return np.ma.masked_array(numbers, mask=~known)
    order = generator.permutation(len(sizes))
    _, kinds = np.unique(np.column_stack([sizes, shared])[order], axis=0, return_inverse=True)
    kinds = kinds.reshape(-1)
    sorted_by_kind = np.argsort(kinds, kind="stable")
    first = np.searchsorted(kinds[sorted_by_kind], kinds[sorted_by_kind])
    place = np.arange(len(kinds)) - first
    rows = order[sorted_by_kind]
    within = place // sizes[rows]
    _, numbers = np.unique(
        np.column_stack([kinds[sorted_by_kind], within]), axis=0, return_inverse=True
    )
    households = np.empty(len(sizes), dtype=np.int64)
    households[rows] = numbers.reshape(-1) + 1
    return households
