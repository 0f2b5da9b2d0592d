"""Surveys that stay where they live: the engine validates and tallies, nothing but counts leaves it.

An engine gives its table and the types of its columns; what is common to all of them is here.
Types are strict: no value is converted, so a column fits if each of its values is a value of the
declared type as it stands.  What does not fit is refused; a view at the source can convert it.
"""

from collections.abc import Callable, Mapping
from typing import Any

from dpcore.adjacency import Adjacency
from dpcore.errors import DataError
from schemas.columns import CategoricalColumn, ContinuousColumn, IdentifierColumn, ReadColumn
from schemas.engine import exactly, finite
from schemas.survey import engine_type
from tasks.reading import Session
from tasks.survey import guarded, refuse_lookalikes, require_columns, require_rows

FITS = {
    "string": ("string",),
    "boolean": ("boolean",),
    "int64": ("int8", "int16", "int32", "int64"),
    "float64": ("float32", "float64", "int8", "int16", "int32"),
}
"""For each declared type the engine's types whose values all belong to it."""


def begin(
    types: Mapping[str, str],
    read: Callable[[], Any],
    columns: Mapping[str, ReadColumn],
    rows: int,
    adjacency: Adjacency,
    close: Callable[[], object],
    unchanged: Callable[[], object] = lambda: None,
) -> Session:
    """A session over the plan's columns, in their declared types and clamped where they say so.

    ``types``: Ibis's name of every column's type, or the engine's own where Ibis has none of
    ``FITS``.  ``read`` gives the Ibis table; ``unchanged`` raises ``DataError`` where the records of
    a reading may not be those of the first.  Raises ``InputError`` and ``DataError`` in the words of
    ``tasks.survey.ingest``.
    """
    refuse_lookalikes(columns)
    require_columns(columns, types)
    _require_types(types, columns)
    table, found = guarded(
        lambda: _typed(read(), columns), DataError, "the survey table could not be read"
    )
    require_rows(found, rows, adjacency)
    return Session(table, columns, close, unchanged)


def _fits(column: ReadColumn) -> tuple[str, ...]:
    declared = FITS[str(engine_type(column))]
    return declared + FITS["int64"] if isinstance(column, IdentifierColumn) else declared


def _require_types(types: Mapping[str, str], columns: Mapping[str, ReadColumn]) -> None:
    lines = [
        f"  column {name!r}, type: {types[name]} in the engine; the plan needs {' or '.join(fits)}"
        for name, column in columns.items()
        if types[name] not in (fits := _fits(column))
    ]
    if lines:
        raise DataError(
            "\n".join(
                [
                    "the survey table has other types than the plan declares, and nothing is"
                    " converted in its engine (name a view that converts):",
                    *lines,
                ]
            )
        )


def _typed(table: Any, columns: Mapping[str, ReadColumn]) -> tuple[Any, int]:
    """The table as the plan declares it, and how many records it holds (private)."""
    typed = table.select(
        **{
            name: _clamped(table[name].cast(engine_type(column)), column)
            for name, column in columns.items()
        }
    )
    return typed, int(typed.count().to_pyarrow().as_py())


def _clamped(value: Any, column: ReadColumn) -> Any:
    """Values outside the bounds at the nearest bound; null, NaN and infinity stay as they are."""
    import ibis

    if isinstance(column, CategoricalColumn | IdentifierColumn) or column.outside == "refuse":
        return value
    real = isinstance(column, ContinuousColumn)
    lower, upper = (exactly(b) if real else ibis.literal(b, "int64") for b in column.bounds)
    moved = ibis.cases((value < lower, lower), (value > upper, upper), else_=value)
    return ibis.ifelse(finite(value), moved, value) if real else moved
