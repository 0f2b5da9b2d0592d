"""From synthetic codes to records in the survey's own columns, categories and types.

A code of a categorical axis is its category, and the null cell is null.  A code of an interval
becomes a value inside it: drawn from a private density of that column, or from private counts in
finer bins, where the plan releases them; uniform otherwise (which is what a histogram says of the
inside of its bins).  Whole numbers come out as whole numbers.  Everything here is post-processing
of noisy statistics.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcore.arrays import Floats, Integers
from dpcore.domain import Axis, Bins, Categories, Domain, Grid
from dpcore.post.tables.simplex import project_to_simplex
from dpcore.releases.base import Release
from dpcore.releases.counts.cells import masked_categories
from dpcore.statistic import Noisy


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
        counts = np.zeros(axis.cells) if said is None else said[0][: axis.cells]
        total = counts.sum()
        shares = project_to_simplex(counts / total, 1.0) if total > 0 else np.zeros(axis.cells)
        return cls(axis.edge(np.arange(axis.cells + 1)), np.r_[0.0, np.cumsum(shares)])

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
) -> dict[str, NDArray[Any]]:
    """Columns of records (rows,) from codes (rows, axes); nulls are masked."""
    return {
        axis.name: _values(axis, codes[:, i], densities.get(axis.name), generator)
        for i, axis in enumerate(domain.axes)
    }


def _values(
    axis: Axis,
    codes: Integers,
    density: ColumnDensity | None,
    generator: np.random.Generator,
) -> NDArray[Any]:
    if isinstance(axis, Categories):
        return masked_categories(axis, codes)
    null = (codes == axis.size - 1) if axis.nullable else np.zeros(len(codes), dtype=bool)
    values = _inside(axis, np.where(null, 0, codes), density, generator.random(len(codes)))
    if axis.integer:
        whole = np.clip(np.floor(values), axis.lower, axis.upper - 1).astype(np.int64)
        return np.ma.masked_array(whole, mask=null) if null.any() else whole
    return np.ma.masked_array(values, mask=null) if null.any() else values


def _inside(
    axis: Bins | Grid, codes: Integers, density: ColumnDensity | None, uniforms: Floats
) -> Floats:
    lower, upper = axis.edge(codes), axis.edge(codes + 1)
    if axis.integer:  # stay clear of the upper edge, which belongs to the next whole number
        upper = np.nextafter(upper, lower)
    if density is None or isinstance(axis, Grid):
        return np.asarray(lower + uniforms * (upper - lower))
    return density.draw(lower, upper, uniforms)


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
