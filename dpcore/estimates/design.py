"""The variables of a model: each has a value in every record and a mean in every cell of a table.

The records are synthetic; the cells belong to the columns that a variable depends on.  Noisy tables over
these cells correct the results from the records (``estimates.calibrated``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpcore.arrays import Booleans, Floats, Integers
from dpcore.domain.axes import Axis, Categories
from dpcore.domain.domain import Domain
from dpcore.errors import InputError
from dpcore.post.tables.margins import Attributes

LARGEST_GRID = 2**20
"""The most cells of the columns of one term."""

LARGEST_PRODUCT = 2**22
"""The most cells of the columns of a product of two terms."""


@dataclass(frozen=True, eq=False)
class Variable:
    """One column of a design, or the response.

    ``values``: (m,) of the records, zero where the model leaves one out; ``attributes``: positions of
    the columns that it depends on; ``cells``: its mean in each of their cells, in their shape.
    """

    name: str
    values: Floats
    attributes: Attributes
    cells: Floats

    @classmethod
    def over(
        cls,
        name: str,
        values: Floats,
        records: ModelRecords,
        attributes: Attributes,
        at_middles: Callable[[], Floats],
    ) -> Variable:
        """The variable with these values (kept records,), a function of some columns.

        ``at_middles``: its value (cells,) at the middle of each cell, for cells without records.
        """
        shape = tuple(records.domain.shape[i] for i in attributes)
        if np.prod(shape, dtype=float) > LARGEST_GRID:
            raise InputError(f"{name}: the columns of one term have too many cells together")
        everywhere = np.zeros(len(records.codes))
        everywhere[records.kept] = values
        if not shape:
            return cls(name, everywhere, (), np.asarray(values[0]))
        chosen = records.codes[records.kept][:, list(attributes)]
        flat = np.ravel_multi_index(tuple(chosen.T), shape)
        counts = np.bincount(flat, minlength=int(np.prod(shape)))
        cells = np.bincount(flat, values, minlength=len(counts)) / np.maximum(counts, 1)
        if not counts.all():
            cells = np.where(counts > 0, cells, at_middles())
        return cls(name, everywhere, attributes, cells.reshape(shape))

    def times(self, other: Variable, records: ModelRecords) -> Variable | None:
        """The product with another variable; None if the columns of both have too many cells."""
        attributes = tuple(sorted({*self.attributes, *other.attributes}))
        shape = [records.domain.shape[a] for a in attributes]
        if np.prod(shape, dtype=float) > LARGEST_PRODUCT:
            return None
        cells: Floats = np.ones(shape)
        for each in (self, other):
            own = [n if a in each.attributes else 1 for a, n in zip(attributes, shape, strict=True)]
            cells = cells * each.cells.reshape(own)
        name, product = f"{self.name} {other.name}", Variable("", self.values, attributes, cells)
        values = np.broadcast_to(product.at_cells(records.codes), len(records.codes))
        return Variable(name, np.asarray(values), attributes, cells)

    def at_cells(self, codes: Integers) -> Floats:
        """(k,) its mean in the cell of each of these records (k, axes)."""
        return np.asarray(self.cells[tuple(codes[:, list(self.attributes)].T)])


@dataclass(frozen=True, eq=False)
class ModelRecords:
    """``codes``: (m, axes) of records over a domain; ``kept``: (m,) which records have a value in all
    columns of a model."""

    domain: Domain
    codes: Integers
    kept: Booleans


@dataclass(frozen=True, eq=False)
class ModelDesign:
    """A response, the terms of a formula, and for each nullable column whether it is not null.

    ``records``: ``kept`` is false for records that the model leaves out; ``notes``: how the formula
    coded categories.
    """

    formula: str
    records: ModelRecords
    response: Variable
    terms: tuple[Variable, ...]
    present: tuple[Variable, ...]
    notes: tuple[str, ...]


def cells_of(axis: Axis, values: Any) -> Integers:
    """(m,) the cell of each value (m,), null masked; numbers outside count in the nearest cell.

    Raises ``InputError`` for a category that the axis lacks.
    """
    null = np.ma.getmaskarray(values)
    if isinstance(axis, Categories):
        place = {category: i for i, category in enumerate(axis.categories)}
        found, unique = np.unique(np.ma.compressed(values), return_inverse=True)
        if not place.keys() >= set(found.tolist()):
            raise InputError(f"{axis.name}: has categories that the plan does not list")
        codes = np.array([place[each] for each in found.tolist()], dtype=np.int64)[unique]
    else:
        numbers = np.ma.compressed(values).astype(np.float64)
        codes = np.maximum(np.searchsorted(axis.starts, numbers, side="right") - 1, 0)
    if null.any() and not axis.nullable:
        raise InputError(f"{axis.name}: has nulls, which the plan does not allow")
    cells = np.full(len(null), axis.size - 1, dtype=np.int64)
    cells[~null] = codes
    return cells
