"""From synthetic codes to records in the survey's own columns, categories and types.

A code of a categorical axis is its category, and the null cell is null.  A code of an interval
becomes a value inside it: drawn from the private density of that column where the plan releases
one, uniform otherwise (which is what a histogram says of the inside of its bins).  Whole numbers
come out as whole numbers.  Everything here is post-processing of noisy statistics.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcore.domain import Axis, Bins, Categories, Domain, Grid
from dpcore.releases.cells import masked_categories
from dpcore.releases.density import Density
from dpcore.statistic import Noisy

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ColumnDensity:
    """A piecewise constant density of one column: ``edges`` (k+1,), ``cumulative`` (k+1,)."""

    edges: Floats
    cumulative: Floats

    @classmethod
    def of(cls, release: Density, noisy: Noisy, column: str) -> ColumnDensity:
        """The density of one column of a density release."""
        axis = release.domain.names.index(column)
        others = tuple(i for i in range(len(release.domain.axes)) if i != axis)
        probabilities = release.probabilities(noisy).sum(axis=others)
        return cls(np.asarray(release.axes[axis].edges), np.r_[0.0, np.cumsum(probabilities)])

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
    codes: NDArray[np.int64],
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
    codes: NDArray[np.int64],
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
    axis: Bins | Grid, codes: NDArray[np.int64], density: ColumnDensity | None, uniforms: Floats
) -> Floats:
    lower, upper = axis.edge(codes), axis.edge(codes + 1)
    if axis.integer:  # stay clear of the upper edge, which belongs to the next whole number
        upper = np.nextafter(upper, lower)
    if density is None or isinstance(axis, Grid):
        return np.asarray(lower + uniforms * (upper - lower))
    return density.draw(lower, upper, uniforms)
