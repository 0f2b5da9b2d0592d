"""Formulas over the columns of a release: the values of their terms for records and table cells."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from dpcore.arrays import Floats, Integers
from dpcore.domain.axes import Categories, in_order, middles
from dpcore.domain.cell_values import CellNumbers
from dpcore.domain.domain import Domain
from dpcore.errors import InputError
from dpcore.estimates.design import ModelDesign, ModelRecords, Variable, cells_of
from dpcore.post.tables.margins import Attributes
from schemas.releases.formulas import (
    columns_of_term,
    computed,
    formula_frame,
    read_formula,
    with_plain_names,
)

TRIED = 1000
"""Random cells in which a formula is evaluated."""


def design_of(
    formula: str, domain: Domain, codes: Integers, columns: Mapping[str, Any], binary: bool
) -> ModelDesign:
    """Read a formula for records with these codes (m, axes) and values.

    ``binary``: the response must be true or false, 0 or 1, or have two categories.  Raises
    ``InputError`` if the formula cannot be read, or names a column that the release lacks.
    """
    plain = with_plain_names(formula, domain, columns)
    formula, domain, columns, _ = plain
    asked, named = read_formula(formula, domain)
    nulls = [np.ma.getmaskarray(columns[name]) for name in named]
    kept = ~np.any([np.zeros(len(codes), dtype=bool), *nulls], axis=0)
    if not kept.any():
        raise InputError(f"{formula}: no record has a value in all of {', '.join(named)}")
    reading = _FormulaColumns(ModelRecords(domain, codes, kept), named)
    frame = reading.frame({name: columns[name][kept] for name in named})
    found, response = computed(formula, asked, frame, binary)
    matrix = found.rhs.to_numpy(dtype=float)
    every = [
        reading.variable(plain.own(str(name)), matrix[:, i], found.rhs.model_spec, i)
        for i, name in enumerate(found.rhs.columns)
    ]
    for term in every:
        if not np.any(term.cells) and not np.any(term.values):
            raise InputError(f"{formula}: {term.name} is zero for every possible value")
    terms = tuple(term for term in every if np.any(term.values != 0))
    if not terms:
        raise InputError(f"{formula}: has no terms; write 1 for a mean")
    name, last = plain.own(formula.split("~")[0].strip()), found.lhs.shape[1] - 1
    answer = reading.variable(name, response, found.lhs.model_spec, last)
    if any(np.array_equal(term.values, answer.values) for term in terms if term.attributes):
        raise InputError(f"{formula}: the response is one of the terms")
    notes = [*reading.notes(terms)]
    if last > 0:
        true = plain.own(str(found.lhs.columns[last]))
        notes.insert(0, f"of the two categories of {name}, {true} counts as true")
    return ModelDesign(formula, reading.records, answer, terms, reading.present(), tuple(notes))


def numbers_of(
    formula: str, domain: Domain, columns: Mapping[str, Any]
) -> tuple[list[str], Floats, Floats]:
    """Names of the terms of a formula, the values (m, k) of the terms and (m,) of the response.

    ``columns``: (m,) values, none of them null.  Raises ``InputError`` as ``design_of``.
    """
    plain = with_plain_names(formula, domain, columns)
    formula, domain, columns, _ = plain
    asked, named = read_formula(formula, domain)
    # Only categories are looked up by code; numbers enter as they are.
    codes = np.zeros((len(next(iter(columns.values()))), len(domain.axes)), dtype=np.int64)
    for i, axis in enumerate(domain.axes):
        if not in_order(axis):
            codes[:, i] = cells_of(axis, columns[axis.name])
    reading = _FormulaColumns(ModelRecords(domain, codes, np.ones(len(codes), dtype=bool)), named)
    frame = reading.frame({name: columns[name] for name in named})
    found, response = computed(formula, asked, frame, False)
    names = [plain.own(str(name)) for name in found.rhs.columns]
    return names, found.rhs.to_numpy(dtype=float), response


def settled_by_cells(formula: str, domain: Domain) -> bool:
    """Whether a formula has the same values for all records of a cell: then counts of cells determine
    the model, and nothing is assumed about values inside bins."""
    random = np.random.default_rng(0)
    ends = dict[str, tuple[Any, Any]]()
    for axis in domain.axes:
        codes = random.integers(axis.size - axis.nullable, size=TRIED)
        if in_order(axis):
            numbers = CellNumbers.of(axis, codes)
            ends[axis.name] = numbers.first, numbers.last
        else:
            assert isinstance(axis, Categories)
            ends[axis.name] = (np.array(axis.categories)[codes],) * 2
    try:
        low, high = (
            numbers_of(formula, domain, {name: each[end] for name, each in ends.items()})
            for end in (0, 1)
        )
    except InputError:
        return False
    return all(np.array_equal(*each) for each in zip(low[1:], high[1:], strict=True))


@dataclass(frozen=True, eq=False)
class _FormulaColumns:
    """The columns that a formula names. At least one record has a value in all of them."""

    records: ModelRecords
    named: Sequence[str]

    @property
    def domain(self) -> Domain:
        return self.records.domain

    @cached_property
    def places(self) -> dict[str, int]:
        return {name: self.domain.names.index(name) for name in self.named}

    @cached_property
    def seen(self) -> dict[str, Integers]:
        """For each column, the cells that contain records."""
        kept = self.records.codes[self.records.kept]
        return {name: np.unique(kept[:, place]) for name, place in self.places.items()}

    def frame(self, values: Mapping[str, Any]) -> Any:
        """Columns in the form for formulas: numbers, or the categories that occur in records.

        Raises ``InputError`` for text if only groups of its categories are left.
        """
        axes = [self.domain.axes[i] for i in self.places.values()]
        for axis in axes:
            numbered = isinstance(axis, Categories) and isinstance(axis.categories[0], int)
            if numbered and any(isinstance(v, str) for v in np.ma.compressed(values[axis.name])):
                raise InputError(
                    f"{axis.name}: `compress` merged categories that hold few people, so no model can"
                    " distinguish them; measure the model directly (kind: model), or request more budget"
                )
        return formula_frame(axes, self.seen, values)

    def variable(self, name: str, values: Floats, spec: Any, column: int) -> Variable:
        """One column of a model matrix: its values for the kept records, and for cells."""
        attributes = columns_of_term(spec, column, self.domain.axes)
        at_middles = partial(self._at_middles, spec, column, attributes)
        return Variable.over(name, values, self.records, attributes, at_middles)

    def _at_middles(self, spec: Any, column: int, attributes: Attributes) -> Floats:
        """(cells,) a variable at the middle of each cell of its columns; zero where it has no value."""
        shape = tuple(self.domain.shape[i] for i in attributes)
        codes = dict(zip(attributes, np.indices(shape).reshape(len(shape), -1), strict=True))
        first = np.zeros(int(np.prod(shape)), dtype=int)
        values = {
            name: middles(self.domain.axes[place])[codes.get(place, first)]
            for name, place in self.places.items()
        }
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # categories without records
            found = spec.get_model_matrix(self.frame(values), na_action="ignore")
        result = np.asarray(found.to_numpy(dtype=float)[:, column])
        null = np.any(
            [np.ma.getmaskarray(values[self.domain.names[i]]) for i in attributes], axis=0
        )
        return np.where(null | ~np.isfinite(result), 0.0, result)

    def notes(self, terms: Sequence[Variable]) -> Iterator[str]:
        """Notes on categories without records, and on categories that enter as numbers."""
        for name, place in self.places.items():
            axis = self.domain.axes[place]
            if isinstance(axis, Categories):
                seen = self.seen[name]
                unseen = [str(c) for i, c in enumerate(axis.categories) if i not in seen]
                if unseen:
                    lacking = f"{name} {', '.join(unseen)}"
                    yield f"no synthetic record has {lacking}, so no coefficient describes it"
                if len(axis.categories) > 2 and any(term.name == name for term in terms):
                    yield (
                        f"{name} is used as a number, because its categories are numbers; write"
                        f" C({name}) for categories"
                    )

    def present(self) -> tuple[Variable, ...]:
        """For each nullable column, whether a record has a value."""
        found = []
        for name, place in self.places.items():
            axis = self.domain.axes[place]
            if axis.nullable:
                cells = (np.arange(axis.size) < axis.size - 1).astype(np.float64)
                values = cells[self.records.codes[:, place]]
                found.append(Variable(f"{name} is not null", values, (place,), cells))
        return tuple(found)
