"""Columns that name the nodes of a level of regions, and the cells of the table at each node."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcore.arrays import Integers
from dpcore.domain.axes import Axis, Categories
from dpcore.domain.domain import Domain
from dpcore.domain.regions import Regions
from dpcore.releases.counts.cells import describe_cells
from dpcore.releases.table import TableColumn


def node_columns(regions: Regions, level: int, cells: Domain) -> Iterator[TableColumn]:
    """The columns (nodes x cells,) of a table of a level, from its plan alone.

    The rows of a node follow each other.  Records outside all regions have rows of their own, the last
    ones, in which the columns of regions are empty.
    """
    axes = regions.domain.axes[:level]
    codes = Domain(axes).unpack(regions.nodes[level])
    about = "; empty outside all regions" * regions.outside
    for axis, code in zip(axes, codes.T, strict=True):
        names = _named(axis, code, regions.outside, cells.size)
        yield TableColumn(axis.name, names, f"Category of {axis.name}{about}", axis.name)
    rows = np.tile(np.arange(cells.size), regions.sizes[level])
    for part in describe_cells(cells):
        yield TableColumn(part.name, _light(part.values)[rows], part.description, part.about)


def _named(axis: Axis, codes: Integers, outside: bool, width: int) -> NDArray[Any]:
    """The category of each row, masked in those outside all regions."""
    assert isinstance(axis, Categories)
    names = _light(np.asarray(axis.categories))[codes]
    if not outside:
        return np.repeat(names, width)
    rows = np.repeat(np.append(names, names[:1]), width)
    return np.ma.masked_array(rows, mask=np.arange(len(rows)) >= len(codes) * width)


def _light(values: NDArray[Any]) -> NDArray[Any]:
    """Text as references to one object for each category: columns of millions of rows repeat them."""
    return values.astype(object) if values.dtype.kind == "U" else values
