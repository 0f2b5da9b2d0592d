"""Public features of one column each, in whole numbers.

    numbers       TERMS cosines of the value's place u in [0, 1], cos(pi k u) / k: smooth curves, of
                  which the first ones weigh most
    null of one   a coordinate of its own, 0.7 where the value is null, when all cosines are 0
    categories    a coordinate for each, 0.7 for the record's own and 0 for the others

All are multiplied by ``SCALE`` and rounded.  A place is an even one inside the column's bounds, or the
share of all cumulated square roots of noisy counts below it (the rule by which Dalenius & Hodges
1959 cut strata): half way between even places and ranks, it spreads out where records are many, and
leaves room to rare values.
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
"""Cosines of a column of numbers; one of k values has k - 1 at most."""

SCALE = 2**10

PART = round(0.7 * SCALE)
"""The coordinate of a category, or of a null."""

Places = tuple[tuple[float, ...], ...]
"""Of each feature the places of its values (cells without null); of categories none."""


def even_places(axis: Axis) -> tuple[float, ...]:
    """The middle of each cell, in [0, 1] of the column's bounds; () for categories."""
    if not ordered(axis):
        return ()
    if isinstance(axis, Categories):
        lower, width = scaling(axis)
        values = np.asarray(axis.categories, dtype=np.float64)
        return tuple(((values - lower) / width).tolist())
    edges = np.asarray(axis.edges)
    return tuple((((edges[1:] + edges[:-1]) / 2 - edges[0]) / (edges[-1] - edges[0])).tolist())


def spread_places(axis: Axis, counts: Floats) -> tuple[float, ...]:
    """The place of the middle of each cell by noisy counts (size,), which may be negative."""
    even = even_places(axis)
    found = np.sqrt(np.maximum(counts[: len(even)], 0.0))
    if not found.sum() > 0:
        return even
    return tuple(((np.cumsum(found) - found / 2) / found.sum()).tolist())


def terms_of(axis: Axis) -> Integers:
    """The numbers k of the cosines of a column of numbers."""
    values = axis.size - axis.nullable
    return np.arange(1, min(TERMS, max(values - 1, 1)) + 1)


def coordinates_of(axis: Axis, places: tuple[float, ...]) -> Integers:
    """The features of each cell of an axis: (size, coordinates)."""
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
    """The cells of values (k,) in the column's own units; a null is masked, None or NaN.

    Raises ``ValueError`` where a value is not one of the axis.
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
    """The most that the squares of a cell's coordinates can add up to, at any places."""
    if not ordered(axis):
        return PART**2
    curves: int = sum(round(SCALE / k) ** 2 for k in terms_of(axis).tolist())
    return max(curves, PART**2) if axis.nullable else curves
