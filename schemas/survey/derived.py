"""Columns of synthetic records computed from other columns: by formulas, or as groups of categories.

    columns:   {trade: {type: categorical, categories: [baker, smith], refines: {sector: trades.csv}}}
    synthesis: [{derived: {bmi: "weight / (height / 100) ** 2"}}]

They are computed for each record, not drawn or measured, so no record contradicts itself.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcore.formula import Formula, Kind
from schemas.document import inside
from schemas.survey.columns import CategoricalColumn, Column, IntegerColumn

Columns = Mapping[str, Column]
Values = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Derived:
    """A column computed from others, by formula or mapping. ``origin``: its derivation in words."""

    name: str
    sources: tuple[str, ...]
    origin: str
    formula: Formula | None = None
    mapping: Mapping[Any, Any] | None = None

    @property
    def words(self) -> str:
        """The description of the published column."""
        return f"Derived: {self.origin}"

    def values(self, columns: Mapping[str, Values]) -> Values:
        """The values (rows,), with nulls masked, from columns of records."""
        if self.formula is not None:
            return self.formula.values(columns)
        assert self.mapping is not None
        (source,) = self.sources
        null = np.ma.getmaskarray(columns[source])
        details, codes = np.unique(np.ma.getdata(columns[source]), return_inverse=True)
        groups = np.array([self.mapping[detail] for detail in details.tolist()])
        found = (
            groups[codes.reshape(-1)] if len(details) else np.array(list(self.mapping.values()))[:0]
        )
        return np.ma.masked_array(found, mask=null) if null.any() else found


def check_groups(columns: Columns) -> None:
    """Raise ``ValueError`` if ``refines`` of a column does not map every category to a group."""
    for name, column in columns.items():
        if isinstance(column, CategoricalColumn):
            for group, codes in column.refines.items():
                _check_group(columns, f"columns.{name}.refines.{group}", name, column, group, codes)


def _check_group(
    columns: Columns,
    place: str,
    name: str,
    column: CategoricalColumn,
    group: str,
    codes: Mapping[str, str],
) -> None:
    of = columns.get(group)
    if not isinstance(of, CategoricalColumn) or group == name:
        raise ValueError(f"{place}: {group!r} is not another categorical column of the plan")
    categories = {str(category) for category in column.categories}
    missing = [text for text in map(str, column.categories) if text not in codes]
    if missing or set(codes) - categories:
        wrong = (missing or sorted(set(codes) - categories))[0]
        what = "has no group" if missing else f"is not a category of {name}"
        raise ValueError(f"{place}: {wrong!r} {what}; name the group of every category")
    unknown = sorted(set(codes.values()) - {str(category) for category in of.categories})
    if unknown:
        raise ValueError(f"{place}: {unknown[0]!r} is not a category of {group}")
    if column.nullable and not of.nullable:
        raise ValueError(f"{place}: {name} may be null, so {group} must be nullable")
    if any(other.name == name for other in groups_of(group, columns)):
        raise ValueError(f"{place}: {group} refines {name} in turn")


def groups_of(name: str, columns: Columns, seen: frozenset[str] = frozenset()) -> Iterator[Derived]:
    """Yield the columns of groups that follow from a categorical column, directly or indirectly."""
    column = columns.get(name)
    for group, codes in column.refines.items() if isinstance(column, CategoricalColumn) else ():
        of = columns[group]
        assert isinstance(column, CategoricalColumn)
        assert isinstance(of, CategoricalColumn)
        if group in seen:
            continue
        typed = {str(category): category for category in of.categories}
        mapping = {category: typed[codes[str(category)]] for category in column.categories}
        yield Derived(group, (name,), f"the group of {name}", mapping=mapping)
        yield from groups_of(group, columns, seen | {name, group})


def details(names: Collection[str], columns: Columns) -> dict[str, tuple[str, Mapping[Any, Any]]]:
    """For each column of groups that follows from these: its source, and each category's group."""
    found: dict[str, tuple[str, Mapping[Any, Any]]] = {}
    for name in names:
        for group in groups_of(name, columns):
            source, inner = found.get(group.sources[0], (name, None))
            mapping = group.mapping or {}
            if inner is not None:  # the group of a group
                mapping = {category: mapping[of] for category, of in inner.items()}
            found.setdefault(group.name, (source, mapping))
    return found


def derived_columns(
    drawn: tuple[str, ...],
    columns: Columns,
    formulas: Mapping[str, str],
    follows: Collection[str] = (),
) -> list[Derived]:
    """The columns that are computed from drawn columns, in an order in which each can be computed.

    ``follows``: drawn columns that may follow from others. Raises ``ValueError`` if any other drawn
    column follows from others, or a formula is not valid.
    """
    found: dict[str, Derived] = {}
    for name in drawn:
        for group in groups_of(name, columns):
            if group.name in follows:
                continue
            if group.name in drawn:
                raise ValueError(
                    f"from: {group.name} is the group of {group.sources[0]}, so records get it without"
                    " a measurement; leave it out of the columns of the release"
                )
            found.setdefault(group.name, group)
    kinds = {name: _kind(columns[name]) for name in (*drawn, *found)}
    for name, text in formulas.items():
        if name.lower() in {taken.lower() for taken in kinds}:
            raise ValueError(f"derived.{name}: is already a column of the records")
        # Refused even if it is not drawn, because the codebook would describe the survey's column.
        if name.lower() in {taken.lower() for taken in columns}:
            raise ValueError(
                f"derived.{name}: is already a column of the plan; choose another name"
            )
        with inside(f"derived.{name}: "):
            formula = Formula.read(text, kinds)
        if not formula.names:
            raise ValueError(f"derived.{name}: is constant; use a column in the formula")
        found[name] = Derived(name, formula.names, f"{name} = {text.strip()}", formula=formula)
        kinds[name] = formula.kind
    return list(found.values())


def _kind(column: Column) -> Kind:
    if isinstance(column, CategoricalColumn):
        kinds: dict[type, Kind] = {str: "text", bool: "truth", int: "whole", float: "number"}
        return kinds[type(column.categories[0])]
    return "whole" if isinstance(column, IntegerColumn) else "number"
