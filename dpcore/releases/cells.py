"""Cells as an analyst reads them: the survey's own columns, categories and intervals.

A categorical axis becomes one column of categories; a whole number that has a cell of its own
becomes one column of integers; any other interval becomes two columns, ``age_from`` and ``age_to``
(both included for whole numbers; the upper one excluded, but for the last cell, for real ones).
Null cells are masked.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcore.domain import Axis, Categories, Domain, Grid

Columns = dict[str, NDArray[Any]]


def described_as(domain: Domain) -> dict[str, str]:
    """For each column that describes cells, the survey's column that it tells of."""
    nothing = np.empty(0, dtype=np.int64)
    return {name: axis.name for axis in domain.axes for name, *_ in _axis_columns(axis, nothing)}


def describe_cells(domain: Domain, cells: NDArray[np.int64]) -> tuple[Columns, dict[str, str]]:
    """Columns and their descriptions for cells (k,) of a domain."""
    codes = domain.unpack(cells)
    columns: Columns = {}
    descriptions: dict[str, str] = {}
    for i, axis in enumerate(domain.axes):
        for name, values, text in _axis_columns(axis, codes[:, i]):
            if name in columns:
                raise ValueError(f"two published columns would be called {name!r}")
            columns[name] = values
            descriptions[name] = f"{text}; empty where it is null" if axis.nullable else text
    return columns, descriptions


def _axis_columns(axis: Axis, codes: NDArray[np.int64]) -> list[tuple[str, NDArray[Any], str]]:
    null = (codes == axis.size - 1) if axis.nullable else np.zeros(len(codes), dtype=bool)
    if isinstance(axis, Categories):
        return [(axis.name, masked_categories(axis, codes), f"Category of {axis.name}")]
    inside = np.where(null, 0, codes)
    lower, upper = axis.edge(inside), axis.edge(inside + 1)
    if not axis.integer:
        return [
            (f"{axis.name}_from", _mask(lower, null), f"{axis.name} at least"),
            (
                f"{axis.name}_to",
                _mask(upper, null),
                f"{axis.name} below (the last bin includes it)",
            ),
        ]
    first, last = np.rint(lower).astype(np.int64), np.rint(upper).astype(np.int64) - 1
    if isinstance(axis, Grid) or bool(np.all(np.diff(axis.edges) == 1)):
        return [(axis.name, _mask(first, null), f"Value of {axis.name}")]
    return [
        (f"{axis.name}_from", _mask(first, null), f"{axis.name} at least"),
        (f"{axis.name}_to", _mask(last, null), f"{axis.name} at most"),
    ]


def masked_categories(axis: Categories, codes: NDArray[np.int64]) -> NDArray[Any]:
    """The categories of codes (k,), null cells masked."""
    categories = np.asarray(axis.categories)
    null = (codes == axis.size - 1) if axis.nullable else np.zeros(len(codes), dtype=bool)
    return _mask(categories[np.where(null, 0, codes)], null)


def _mask(values: NDArray[Any], null: NDArray[np.bool_]) -> NDArray[Any]:
    return np.ma.masked_array(values, mask=null) if null.any() else values
