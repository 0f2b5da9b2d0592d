"""Readers' names of the terms of models."""

import re
from collections.abc import Sequence

from schemas.numbers import plain
from schemas.releases.formulas import CONSTANT, plain_name
from schemas.survey.columns import CategoricalColumn
from tasks.report.cells import Columns, called
from tasks.report.wording import category, has_value, one_unit

COMPARED = re.compile(r"[<>]|[=!]=")
CATEGORY = re.compile(r"(?:C\()?(?P<column>[^()\[\]]+)\)?\[(?:T\.)?(?P<value>.*)\]")
"""A factor of a term in a formula, which is 1 for one category: ``C(region)[T.north]``."""

BETWEEN_FACTORS = re.compile(r":(?![^\[]*\])")
"""A colon outside the name of a category."""


NAME = re.compile(r"""'[^']*'|"[^"]*"|`[^`]+`|[^\W\d]\w*(?! *\()""")
"""A quoted text or a name in a formula, but no function."""


def term_name(columns: Columns, names: Sequence[str], term: str) -> str:
    """Readers' name of a coefficient, such as: Health: poor (compared with good), or: Age, per year;
    ``names``: of all coefficients of the model."""
    parts = [] if term == CONSTANT else BETWEEN_FACTORS.split(term)
    name = " × ".join(_factor(columns, part) for part in parts) or term
    if len(parts) != 1:
        return name
    if name != term and "[T." in term:
        return f"{name} (compared with {reference(columns, names, term)})"
    column = column_of(columns, term)
    unit = one_unit(columns[column]) if column else ""
    return f"{name}, per {unit}" if unit else name


def _factor(columns: Columns, part: str) -> str:
    if not CATEGORY.fullmatch(part):
        return in_words(columns, part)
    column, value = _category(columns, part)
    return f"{called(column, columns)}: {value}" if column else part


def _category(columns: Columns, part: str) -> tuple[str, str]:
    """The column of a factor and the label of its category; both empty if it is no category."""
    found = CATEGORY.fullmatch(part)
    name = column_of(columns, found["column"]) if found else None
    return (
        (name, category(as_written(found["value"]), columns[name])) if found and name else ("", "")
    )


def in_words(columns: Columns, written: str) -> str:
    """A part of a formula with readers' names of columns."""
    if name := column_of(columns, written):
        return called(name, columns)

    def read(found: re.Match[str]) -> str:
        name = column_of(columns, found[0])
        return called(name, columns) if name else found[0]

    return NAME.sub(read, written)


def without_categories(term: str) -> str:
    """The name of a term without its categories, which is equal for all coefficients of one column."""
    return re.sub(r"\[[^\]]*\]", "", term)


def column_of(columns: Columns, written: str) -> str | None:
    """The column that a term names; None if it names something else."""
    return next((name for name in columns if plain_name(name) == written.strip("`")), None)


def named(columns: Columns, written: str) -> str:
    column = column_of(columns, written)
    return f"“{called(column, columns)}”" if column else written


def reference(columns: Columns, names: Sequence[str], term: str) -> str:
    """The reference category of a column, if exactly one category has no coefficient."""
    of_column = without_categories(term)
    matches = [CATEGORY.fullmatch(n) for n in names if without_categories(n) == of_column]
    values = {as_written(found["value"]) for found in matches if found}
    found = CATEGORY.fullmatch(term)
    name = column_of(columns, found["column"]) if found else None
    column = columns[name] if name else None
    if isinstance(column, CategoricalColumn):
        left = [c for c in column.categories if as_written(str(c)) not in values]
        if len(left) == 1:
            return category(left[0], column)
    return "the reference"


def group_of(columns: Columns, term: str) -> str:
    """Words for a group, such as “Region” is north. Several columns are joined by "and"."""
    factors = [_category(columns, part) for part in BETWEEN_FACTORS.split(term)]
    if not all(column for column, _ in factors):
        return term
    return " and ".join(has_value(columns, *factor) for factor in factors)


def as_written(value: str) -> str:
    """A category as written in labels: 1, where formulas write 1.0."""
    try:
        return plain(float(value))
    except ValueError:
        return value
