"""Public features of one column each, in whole numbers.

    numbers       TERMS cosines of the value's place u in [0, 1], cos(pi k u) / k: smooth curves;
                  the first ones have the largest weight
    null number   a separate coordinate, 0.7 if the value is null, and then all cosines are 0
    categories    a coordinate for each, 0.7 for the record's category and 0 for the others

All are multiplied by ``SCALE`` and rounded.  A place is either linear between the column's bounds, or
the cumulated share of square roots of noisy counts (the rule of Dalenius & Hodges 1959 for strata).
The cumulated share is half way between linear places and ranks: its scale is finer where there are many
records, and it leaves room for rare values.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcore.arrays import Floats, Integers
from dpcore.domain.axes import Axis, Bins, Categories, Grid
from dpcore.releases.base import outside
from dpcore.releases.machines.features import (
    MOST_CATEGORIES,
    nulls_and_codes,
    ordered,
    require_few,
    scaling,
)

TERMS = 4
"""The number of cosines of a numeric column; a column with k values has at most k - 1."""

SCALE = 2**10

PART = round(0.7 * SCALE)
"""The coordinate of a category, or of a null."""

Places = tuple[tuple[float, ...], ...]
"""For each feature the places of its values (cells without null); () for categories."""


def even_places(axis: Axis) -> tuple[float, ...]:
    """The middle of each cell as a fraction of the column's range; () for categories."""
    if not ordered(axis):
        return ()
    if isinstance(axis, Categories):
        lower, width = scaling(axis)
        values = np.asarray(axis.categories, dtype=np.float64)
        return tuple(((values - lower) / width).tolist())
    edges = np.asarray(axis.edges)
    return tuple((((edges[1:] + edges[:-1]) / 2 - edges[0]) / (edges[-1] - edges[0])).tolist())


def spread_places(axis: Axis, counts: Floats) -> tuple[float, ...]:
    """The place of the middle of each cell, from noisy counts (size,), which may be negative."""
    even = even_places(axis)
    found = np.sqrt(np.maximum(counts[: len(even)], 0.0))
    if not found.sum() > 0:  # with this noise no count is above zero
        return even
    return tuple(((np.cumsum(found) - found / 2) / found.sum()).tolist())


def terms_of(axis: Axis) -> Integers:
    """The frequencies k = 1, 2, ... of the cosines for a numeric column."""
    values = axis.size - axis.nullable
    return np.arange(1, min(TERMS, max(values - 1, 1)) + 1)


def coordinates_of(axis: Axis, places: tuple[float, ...]) -> Integers:
    """The features of each cell of an axis, as (size, coordinates)."""
    if not places:
        require_few(axis, MOST_CATEGORIES)
        return PART * np.eye(axis.size, dtype=np.int64)
    terms = terms_of(axis)
    curves = SCALE * np.cos(np.pi * np.outer(places, terms)) / terms
    whole = np.rint(curves).astype(np.int64)
    if not axis.nullable:
        return whole
    table = np.zeros((axis.size, len(terms) + 1), dtype=np.int64)
    table[:-1, :-1], table[-1, -1] = whole, PART
    return table


def cells_at(axis: Axis, values: NDArray[Any]) -> Integers:
    """Cells of values (k,) in the column's own units; a null is masked, None or NaN.

    Raises ``ValueError`` if a value is not on the axis.
    """
    null, codes = nulls_and_codes(axis, values)
    if codes is not None:
        return codes
    assert isinstance(axis, Bins | Grid)
    numbers = np.ma.getdata(values)[~null].astype(np.float64)
    found = np.full(len(null), axis.size - 1)
    upper = axis.upper - axis.integer
    if not np.all((numbers >= axis.lower) & (numbers <= upper)):
        half = 0.5 if isinstance(axis, Grid) and axis.integer else 0.0
        raise outside(axis, axis.lower - half, upper + half)
    found[~null] = np.searchsorted(axis.starts, numbers, side="right") - 1
    return found


def largest_square(axis: Axis) -> int:
    """The largest sum of squares of a cell's coordinates, at any places."""
    if not ordered(axis):
        return PART**2
    curves: int = sum(round(SCALE / k) ** 2 for k in terms_of(axis).tolist())
    return max(curves, PART**2) if axis.nullable else curves
