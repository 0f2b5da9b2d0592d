"""Copies the plan's columns of the survey into a private DuckDB file, in the declared types.

    Parquet, CSV, table --(one streaming read)--> WORKSPACE/survey.duckdb
                                                    survey       the plan's columns alone
                                                    conversion   column, look, values of the wrong type
                                                    unfit        anything else that does not fit the plan

A value that cannot be converted to its column's type without loss (text or 3.7 in an integer column)
becomes null in ``survey`` and is counted in ``conversion``; ``tasks.survey.validate`` reports it with
all other faults, and ``tasks.survey.tally`` refuses a column that has any.  A missing column, and a
number of rows that differs from the plan's, become sentences in ``unfit``.  Values outside the bounds
are moved to the nearest bound if the column says ``clamp``, and kept if it says ``refuse``; null, NaN
and infinity are never moved.

Errors name columns and rules, never values.
"""

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

import duckdb

from dpcore.domain.adjacency import REPLACE_ONE, Adjacency
from dpcore.errors import DataError, InputError
from schemas.survey.columns import ReadColumn
from schemas.survey.formats import DateFormat, NumberFormat
from schemas.survey.reading import (
    missing_codes,
    part_of_date,
    sources,
    written_dates,
    written_numbers,
)
from schemas.survey.source import TableSource
from tasks.survey.counts import wrong_counts, wrong_rows
from tasks.survey.csv_file import CSVFile, csv_fault, well_quoted, with_one_line_end
from tasks.survey.dates import part_in_sql
from tasks.survey.memory import MemoryTable
from tasks.survey.private_file import (
    FAULTS,
    FILE,
    TABLE,
    UNFIT,
    call_guarded,
    connect,
    too_little_memory,
)
from tasks.survey.sources import Relation, found_columns, locate
from tasks.survey.sql import answered, clamp, convert, look, quote, sql_type
from tasks.workplace.home import private_folder
from tasks.workplace.room import require_room_at_home

LINES = "survey.csv"
AT_ONCE = 50
"""Columns whose unread values are counted in one query: its memory grows with their square."""

Form = TypeVar("Form", NumberFormat, DateFormat)


def ingest(
    source: str | TableSource | MemoryTable,
    columns: Mapping[str, ReadColumn],
    rows: int,
    workspace: Path,
    adjacency: Adjacency = REPLACE_ONE,
    counts: str | None = None,
) -> Path:
    """Copy the plan's columns of the survey table into the workspace; returns the file.

    The source and the file are private; all other arguments are public.  ``counts``: the column that
    holds the number of records of each row, if there is one.  An earlier file is replaced once the new
    one is complete.  Raises ``InputError`` if the source cannot be found or read, ``DataError`` if it
    has none of the columns or is damaged; ``tasks.survey.validate`` reports all else that does not fit.
    """
    call_guarded(
        lambda: private_folder(workspace),
        InputError,
        f"{workspace}: cannot be made a private folder of its owner",
    )
    finished, partial = workspace / FILE, workspace / f"{FILE}.partial"
    _remove(partial)
    try:
        with connect(partial, read_only=False) as connection:
            partial.chmod(0o600)
            ibis: Any = _with_ibis(connection) if counts else None
            relation = locate(source, columns, connection)
            there, unfit = found_columns(columns, relation.columns)
            counted = counts if counts in there else None
            found = _copied(source, connection, relation, there, counted, workspace)
            if counts is None:
                unfit += wrong_rows(found, rows, adjacency)
            elif counted and relation.columns[counted][1] == "BOOLEAN":
                unfit += [f"column {counts!r}, counts: has truth values, not whole numbers"]
            elif counted:
                unfit += call_guarded(
                    lambda: wrong_counts(ibis.table(TABLE), counted, rows, adjacency),
                    DataError,
                    f"column {counts!r}, counts: cannot be added up; check that it has whole numbers",
                )
            connection.execute(f"CREATE TABLE {UNFIT} (line VARCHAR)")
            for line in unfit:
                connection.execute(f"INSERT INTO {UNFIT} VALUES (?)", [line])
        os.replace(partial, finished)
    except DataError:
        require_room_at_home()  # if the disk is full, the fault is not the survey's
        raise
    finally:
        _remove(partial)
    return finished


def _remove(partial: Path) -> None:
    for path in (partial, partial.with_name(f"{partial.name}.wal")):
        path.unlink(missing_ok=True)


def _with_ibis(connection: duckdb.DuckDBPyConnection) -> Any:
    """The connection wrapped by Ibis; this changes settings, so it comes before they are locked."""
    import ibis  # slow to import

    return ibis.duckdb.from_connection(connection)


def _copied(
    source: object,
    connection: duckdb.DuckDBPyConnection,
    relation: Relation,
    columns: Mapping[str, ReadColumn],
    counts: str | None,
    workspace: Path,
) -> int:
    """Call ``_copy``; if a CSV file is unreadable, retry with uniform line ends, or report its fault."""

    def copied(relation: Relation) -> int:
        with suppress(duckdb.OutOfMemoryException):
            return _copy(connection, relation, columns, counts)
        raise DataError(f"{source}: {too_little_memory()}")

    def from_csv(file: CSVFile) -> int:
        with suppress(duckdb.Error):
            return copied(replace(relation, sql=file.sql()))
        # Several threads fail where their parts meet within quotes; one accepts quotes that never end.
        if not well_quoted(file):
            raise duckdb.InvalidInputException
        return copied(replace(relation, sql=file.sql(", parallel=false")))

    message = (
        f"the survey table could not be copied: {source} is damaged, or the disk of {workspace} is"
        " full"
    )
    if (again := relation.again) is not None:
        with suppress(duckdb.Error):
            return copied(relation)
        return call_guarded(lambda: copied(again()), DataError, message)
    if (given := relation.csv) is None:
        return call_guarded(lambda: copied(relation), DataError, message)
    # First without a copy with uniform line ends, which costs a reading: most files need none. In a
    # file of one column, an empty first line may be read in two ways.
    if given.columns > 1:
        with suppress(duckdb.Error):
            return from_csv(given)
    file = plain = replace(given, path=workspace / LINES)
    try:
        if not call_guarded(
            lambda: with_one_line_end(given, plain.path, source), DataError, message
        ):
            file = given
        if file is plain or given.columns == 1:
            with suppress(duckdb.Error):
                return from_csv(file)
        used = {relation.columns[name][0] for name in sources(columns).values()}
        fault = call_guarded(lambda: csv_fault(file, used), DataError, message)
    finally:
        plain.path.unlink(missing_ok=True)
    raise DataError(f"{source}: {fault}" if fault else message)


def _copy(
    connection: duckdb.DuckDBPyConnection,
    relation: Relation,
    columns: Mapping[str, ReadColumn],
    counts: str | None,
) -> int:
    """Fill the two tables, reading the source once; returns its number of rows (private)."""
    raw, typed, kept, looks = [], [], [], []
    read = sources(columns)
    for i, (name, column) in enumerate(columns.items()):
        given, value = _sql_of(i, name, columns, read[name], relation)
        raw.append(given)
        typed.append(f"raw{i}, {value} AS value{i}")
        kept.append(f"{clamp(f'value{i}', column)} AS {quote(name)}")
        kind, dated = relation.columns[read[name]][1], part_of_date(column) is not None
        seen = look(f"raw{i}", kind, dated)
        wrong = f"raw{i} IS NOT NULL AND value{i} IS NULL"
        looks.append(f"{quote(str(i))} := CASE WHEN {wrong} THEN {seen} END")
    # The kinds of unread values are stored in one more column, counted below and then dropped, so that
    # the source is read only once. Nearly all of them are null, so they take almost no space.
    beside = quote(f"?{max(columns, key=len)}")  # longer than any of the columns' names
    kept.append(f"struct_pack({', '.join(looks)}) AS {beside}")
    connection.execute(
        f"CREATE OR REPLACE TABLE {TABLE} AS SELECT {', '.join(kept)} FROM"
        f" (SELECT {', '.join(typed)} FROM (SELECT {', '.join(raw)} FROM {relation.sql}))"
    )
    if counts:  # a row of count 0 is no record, so its values need not be valid
        connection.execute(f"DELETE FROM {TABLE} WHERE {quote(counts)} = 0")
    connection.execute(f"CREATE TABLE {FAULTS} (name VARCHAR, look VARCHAR, failures BIGINT)")
    names, faults = [*columns], list[tuple[str, str, int]]()
    for first in range(0, len(names), AT_ONCE):
        some = names[first : first + AT_ONCE]
        looked = (f"histogram({beside}.{quote(str(first + i))})" for i in range(len(some)))
        found = connection.execute(f"SELECT {', '.join(looked)} FROM {TABLE}").fetchall()[0]
        faults += [
            (name, seen, failures)
            for name, counted in zip(some, found, strict=True)
            for seen, failures in (counted or {"": 0}).items()
        ]
    rows = ", ".join(["(?, ?, ?)"] * len(faults))
    connection.execute(f"INSERT INTO {FAULTS} VALUES {rows}", list(chain.from_iterable(faults)))
    connection.execute(f"ALTER TABLE {TABLE} DROP COLUMN {beside}")
    connection.execute("CHECKPOINT")  # on a full disk, closing would lose the copy without an error
    return int(connection.execute(f"SELECT count(*) FROM {TABLE}").fetchall()[0][0])


def _sql_of(
    i: int, name: str, columns: Mapping[str, ReadColumn], read: str, relation: Relation
) -> tuple[str, str]:
    """SQL of the stored value, null if it means no answer, and SQL of the value computed from it."""
    column, (stored, kind) = columns[name], relation.columns[read]
    part, codes, objects = (
        part_of_date(column),
        missing_codes(column),
        relation.objects.get(read),
    )
    # A format applies to text, and to numbers of eight digits that are a date.
    applies = objects and (f"NOT {objects}.date" if part else f"{objects}.text")

    def by_format(form: Form | None, sql: Callable[[Form | None], str], applies: str | None) -> str:
        if form is None or applies is None:
            return sql(form)
        return f"CASE WHEN {applies} THEN {sql(form)} ELSE {sql(None)} END"

    numbers, raw = written_numbers(column), f"raw{i}"
    given = by_format(numbers, lambda form: answered(stored, kind, *codes, form), applies)
    given += f" AS {raw}, {applies or True} AS applies{i}"
    applies = applies and f"applies{i}"
    if part:
        days = written_dates(column)
        part_of = partial(part_in_sql, raw, kind, part.part)
        return given, by_format(days, part_of, applies)
    return given, by_format(numbers, partial(convert, raw, kind, sql_type(column)), applies)
