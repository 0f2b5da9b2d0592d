"""Cells as an analyst reads them: the survey's own columns, categories and intervals.

A categorical axis becomes one column of categories; a whole number with its own cell becomes one column
of integers; any other interval becomes two columns, ``age_from`` and ``age_to`` (both included for whole
numbers; for real numbers the upper end is excluded, except in the last cell), and a third column with
the interval in words, ``age_bin``: 3-5, or 10 to under 20.  If both are equal the cell is a point mass,
and the cell above it excludes that value.  Null cells are masked.

>>> [column.values.tolist() for column in describe_cells(Domain((Bins("x", (0.0, 0.0, 2.5, 9.0)),)))]
[[0.0, 0.0, 2.5], [0.0, 2.5, 9.0], ['0', 'above 0 to under 2.5', '2.5 to 9']]
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcore.arrays import Booleans, Integers
from dpcore.domain.axes import Axis, Bins, Categories, Grid, next_written, one_value
from dpcore.domain.domain import Domain
from dpcore.releases.table import TableColumn

BIN = "_bin"
"""The suffix of a column that has an interval in words."""


MOST_DIGITS = 9
"""Numbers with more digits are rounded in words."""


def cell_names(axis: Axis) -> tuple[str, ...]:
    """The names of the columns that describe the cells of an axis."""
    return tuple(name for name, *_ in _axis_columns(axis, np.empty(0, dtype=np.int64)))


def describe_cells(domain: Domain, cells: Integers | None = None) -> list[TableColumn]:
    """Columns that describe cells (k,) of a domain, or all of its cells if none are given."""
    codes = domain.unpack(np.arange(domain.size) if cells is None else cells)
    return [
        TableColumn(name, values, f"{text}; empty for null" if axis.nullable else text, axis.name)
        for i, axis in enumerate(domain.axes)
        for name, values, text in _axis_columns(axis, codes[:, i])
    ]


def _axis_columns(axis: Axis, codes: Integers) -> list[tuple[str, NDArray[Any], str]]:
    null = (codes == axis.size - 1) if axis.nullable else np.zeros(len(codes), dtype=bool)
    if isinstance(axis, Categories):
        return [(axis.name, masked_categories(axis, codes), f"Category of {axis.name}")]
    inside = np.where(null, 0, codes)
    lower, upper = axis.edge(inside), axis.edge(inside + 1)
    if not axis.integer:
        has_points = isinstance(axis, Bins) and bool(axis.points)
        return [
            (f"{axis.name}_from", _mask(lower, null), f"{axis.name} at least"),
            (
                f"{axis.name}_to",
                _mask(upper, null),
                f"{axis.name} below (the last bin includes it)"
                + ("; if both ends are equal, exactly this value" if has_points else ""),
            ),
            (f"{axis.name}{BIN}", _mask(_words(axis, inside), null), f"{axis.name} in words"),
        ]
    first, last = np.rint(lower).astype(np.int64), np.rint(upper).astype(np.int64) - 1
    if isinstance(axis, Grid) or bool(np.all(np.diff(axis.edges) == 1)):
        return [(axis.name, _mask(first, null), f"Value of {axis.name}")]
    return [
        (f"{axis.name}_from", _mask(first, null), f"{axis.name} at least"),
        (f"{axis.name}_to", _mask(last, null), f"{axis.name} at most"),
        (f"{axis.name}{BIN}", _mask(_words(axis, inside), null), f"{axis.name} in words"),
    ]


def _words(axis: Bins | Grid, cells: Integers) -> NDArray[Any]:
    # Many rows share few cells, and exact ends take long to compute.
    found, places = np.unique(cells, return_inverse=True)
    words = []
    for cell, low, high in zip(found, axis.edge(found), axis.edge(found + 1), strict=True):
        ends = next_written(axis, low), next_written(axis, high)
        start, end = _number_words(ends[0], ends[1] - axis.integer)
        if math.isinf(low) or math.isinf(high):
            words.append(f"under {end}" if math.isinf(low) else f"{start} or more")
        elif one_value(axis, low, high):
            words.append(start)
        elif axis.integer:
            # A hyphen next to a minus sign would be hard to read.
            words.append(f"{start}-{end}" if low >= 0 else f"{start} to {end}")
        else:
            above = "above " if isinstance(axis, Bins) and cell - 1 in axis.points else ""
            under = "" if cell == axis.cells - 1 else "under "
            words.append(f"{above}{start} to {under}{end}")
    return np.array(words, dtype=np.str_)[places]


def _number_words(low: float, high: float) -> list[str]:
    """Both ends as text; long decimals are rounded if the ends stay different.

    >>> _number_words(2500 / 3, 1250.0), _number_words(0.1234567891, 0.1234567892)
    (['833.333', '1250'], ['0.1234567891', '0.1234567892'])
    """
    exact = [f"{each:.15g}" for each in (low, high)]
    short = [f"{float(f'{each:.6g}'):.15g}" for each in (low, high)]
    words = [
        one if len(one) <= MOST_DIGITS else other for one, other in zip(exact, short, strict=True)
    ]
    return words if len({*words}) == len({*exact}) else exact


def masked_categories(axis: Categories, codes: Integers) -> NDArray[Any]:
    """The categories of codes (k,), with null cells masked."""
    categories = np.asarray(axis.categories)
    null = (codes == axis.size - 1) if axis.nullable else np.zeros(len(codes), dtype=bool)
    return _mask(categories[np.where(null, 0, codes)], null)


def _mask(values: NDArray[Any], null: Booleans) -> NDArray[Any]:
    return np.ma.masked_array(values, mask=null) if null.any() else values
