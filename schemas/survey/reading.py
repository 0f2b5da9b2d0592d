"""For each column of a plan: the survey's column, its format and its codes for no answer."""

from collections.abc import Mapping, Sequence

from schemas.survey.columns import (
    CategoricalColumn,
    IdentifierColumn,
    IntegerColumn,
    ReadColumn,
)
from schemas.survey.dates import PartOfDate
from schemas.survey.formats import DateFormat, NumberFormat, date_format, number_format
from schemas.survey.keys import NAN


def part_of_date(column: ReadColumn) -> PartOfDate | None:
    """The part of a date in the column; None if it is not a part of a date."""
    return column.from_ if isinstance(column, IntegerColumn) else None


def sources(columns: Mapping[str, ReadColumn]) -> dict[str, str]:
    """For each column, its source column in the survey."""
    return {name: _source(name, column, columns) for name, column in columns.items()}


def _source(name: str, column: ReadColumn, columns: Mapping[str, ReadColumn]) -> str:
    of = part_of_date(column)
    if column.source_name or of is None:
        return column.source_name or name
    base = columns.get(of.column)
    read = base is not None and not part_of_date(base)  # otherwise a column of the same name
    return (base.source_name if read and base else "") or of.column


def source_in_words(name: str, columns: Mapping[str, ReadColumn]) -> str:
    """Words for the survey's column in messages, which never show a ``source_name``."""
    of = part_of_date(columns[name])
    return name if columns[name].source_name or of is None else of.column


def written_numbers(column: ReadColumn) -> NumberFormat | None:
    """The format of a column of numbers, if the plan states one."""
    if isinstance(column, CategoricalColumn | IdentifierColumn) or part_of_date(column):
        return None
    return number_format(column.format) if column.format else None


def written_dates(column: ReadColumn) -> DateFormat | None:
    """The format of the dates behind a column of date parts, if the plan states one."""
    dated = isinstance(column, IntegerColumn) and part_of_date(column) and column.format
    return date_format(dated) if dated else None


def missing_codes(column: ReadColumn) -> tuple[Sequence[str], Sequence[float]]:
    """The texts and numbers that are read as no answer."""
    codes = () if isinstance(column, IdentifierColumn) else column.missing
    texts = [code for code in codes if isinstance(code, str)]
    return texts, [float(code) for code in codes if not isinstance(code, str) or code == NAN]
