"""Surveys that stay in their engine, which validates and tallies them; only counts leave it.

Each engine's module provides its table and the types of its columns; this module does the rest.  No
value is converted: a column fits if every value of its type is a value of the declared type, or if it is
text for which the plan states a ``format``.  A column that does not fit is refused; a view at the source
can convert it.  Parts of dates are computed.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dpcore.domain.adjacency import Adjacency
from dpcore.errors import DataError
from schemas.survey.checks import engine_type
from schemas.survey.columns import (
    CategoricalColumn,
    ContinuousColumn,
    IdentifierColumn,
    IntegerColumn,
    ReadColumn,
)
from schemas.survey.engine import exactly, finite
from schemas.survey.formats import PLAIN, NumberFormat
from schemas.survey.reading import (
    missing_codes,
    part_of_date,
    source_in_words,
    sources,
    written_dates,
    written_numbers,
)
from tasks.survey.counts import wrong_counts, wrong_rows
from tasks.survey.dates import part_of
from tasks.survey.engines.text import number_of, part_of_text
from tasks.survey.private_file import call_guarded
from tasks.survey.reading import Session
from tasks.survey.sources import UNFITTING, found_columns

FITS = {
    "string": ("string",),
    "boolean": ("boolean",),
    "int64": ("int8", "int16", "int32", "int64"),
    "float64": ("float32", "float64", "int8", "int16", "int32"),
}
"""For each declared type, the engine types whose values all belong to it."""

TIMES = ("timestamp", "timestamp('UTC')")
"""The engine types that have parts of dates and hours."""


def open_session(
    types: Mapping[str, str],
    read: Callable[[Mapping[str, ReadColumn]], Any],
    columns: Mapping[str, ReadColumn],
    rows: int,
    adjacency: Adjacency,
    counts: str | None,
    close: Callable[[], object],
    unchanged: Callable[[], object] = lambda: None,
) -> Session:
    """A session over the plan's columns, in their declared types and clamped if the plan says so.

    ``types``: Ibis's name of every column's type, or the engine's own name if it is not in ``FITS``.
    ``read`` returns the Ibis table of the columns that fit; ``counts``: the column with the number of
    records of each row, if there is one; ``unchanged`` raises ``DataError`` if the records may have
    changed since the first reading.  Raises ``InputError`` and ``DataError`` as
    ``tasks.survey.ingest.ingest`` does.
    """
    there, unfit = found_columns(columns, types)
    fitting, others = _fitting(types, there)
    unfit += others
    if not fitting:
        raise DataError("\n  ".join([UNFITTING, *unfit]))
    counted = counts if counts in fitting else None
    table, found, unread = call_guarded(
        lambda: _typed(read(fitting), fitting),
        DataError,
        "the survey table could not be read",
    )
    if counts is None:
        unfit += wrong_rows(found, rows, adjacency)
    elif counted:
        unfit += call_guarded(
            lambda: wrong_counts(table, counted, rows, adjacency),
            DataError,
            f"column {counts!r}, counts: cannot be added up; check that it has whole numbers",
        )
        table = table.filter(table[counted] > 0)  # a row with count 0 is no record
    return Session(table, unread, unfit, close, unchanged)


def _fits(column: ReadColumn) -> tuple[str, ...]:
    if part := part_of_date(column):
        stored = TIMES if part.part == "hour" else ("date", *TIMES)
        return stored + ("string", "int32", "int64") * (written_dates(column) is not None)
    declared = FITS[str(engine_type(column))]
    if isinstance(column, IdentifierColumn):
        return declared + FITS["int64"]
    return declared + ("string",) * (written_numbers(column) is not None)


def _fitting(
    types: Mapping[str, str], columns: Mapping[str, ReadColumn]
) -> tuple[dict[str, ReadColumn], list[str]]:
    """The columns whose types fit, and a line on the fault of each other column."""
    read, fitting, lines = sources(columns), dict[str, ReadColumn](), list[str]()
    for name, column in columns.items():
        fits = _fits(column)
        if types[read[name]] in fits:
            fitting[name] = column
        else:
            lines.append(
                f"column {source_in_words(name, columns)!r}, type: {types[read[name]]} in the engine;"
                f" the plan needs {' or '.join(fits)}, and dprelease converts nothing in the engine"
                " (name a view that converts it, or state the `format` of text)"
            )
    return fitting, list(dict.fromkeys(lines))


def _typed(
    table: Any, columns: Mapping[str, ReadColumn]
) -> tuple[Any, int, dict[str, dict[str, int]]]:
    """The table in the declared types, its number of rows, and by column the values that could not be
    read, by kind; all are private."""
    read = sources(columns)
    raw = {
        name: _answered(table[read[name]], *missing_codes(column), written_numbers(column))
        for name, column in columns.items()
    }
    typed = table.select(
        **{name: _clamp(_value(raw[name], column), column) for name, column in columns.items()}
    )
    parts = [
        name
        for name, column in columns.items()
        if part_of_date(column) or (written_numbers(column) and raw[name].type().is_string())
    ]
    asked = {
        f"n{i}": (raw[name].notnull() & _value(raw[name], columns[name]).isnull()).sum()
        for i, name in enumerate(parts)
    }
    answers = table.aggregate(rows=table.count(), **asked).to_pyarrow().to_pylist()[0]
    unread: dict[str, dict[str, int]] = {name: {} for name in columns}
    unread |= {name: {"date": int(n)} for i, name in enumerate(parts) if (n := answers[f"n{i}"])}
    return typed, int(answers["rows"]), unread


def _answered(
    value: Any, texts: Sequence[str], numbers: Sequence[float], form: NumberFormat | None
) -> Any:
    """The value, or null if it is one of the codes that mean no answer."""
    import ibis

    kind = value.type()
    if kind.is_numeric():
        # A quoted code means the number whose text it is (``sql.written``): 1.5, but not 1.50.
        written = [float(text) for text in texts if re.fullmatch("-?[0-9]+([.][0-9]*[1-9])?", text)]
        codes = [exactly(number) for number in (*numbers, *written)]
        found = value.cast("float64").isin(codes)
    else:
        codes = [*texts, *map(exactly, numbers)]
        text = value.cast("string")
        found = text.isin(texts) if texts else ibis.literal(False)
        if numbers:
            number = number_of(text, form or PLAIN, whole=False).isin([*map(exactly, numbers)])
            found |= number.fill_null(False)
        if any(number != number for number in numbers):
            found |= text.strip().lower() == "nan"
    return ibis.ifelse(found, ibis.null(kind), value) if codes else value


def _value(value: Any, column: ReadColumn) -> Any:
    part = part_of_date(column)
    if (
        part
        and (form := written_dates(column))
        and (value.type().is_string() or value.type().is_integer())
    ):
        return part_of_text(value, form, part.part)
    return part_of(value, part.part) if part else _number(value, column)


def _number(value: Any, column: ReadColumn) -> Any:
    """A value in the declared type; it may be a number written as text."""
    form = written_numbers(column)
    if form and value.type().is_string():
        return number_of(value, form, whole=isinstance(column, IntegerColumn))
    return value.cast(engine_type(column))


def _clamp(value: Any, column: ReadColumn) -> Any:
    """Move values outside the bounds to the nearest bound; null, NaN and infinity stay."""
    import ibis

    if isinstance(column, CategoricalColumn | IdentifierColumn) or column.clamps_nothing:
        return value
    real = isinstance(column, ContinuousColumn)
    lower, upper = (exactly(b) if real else ibis.literal(b, "int64") for b in column.bounds)
    moved = ibis.cases((value < lower, lower), (value > upper, upper), else_=value)
    return ibis.ifelse(finite(value), moved, value) if real else moved
