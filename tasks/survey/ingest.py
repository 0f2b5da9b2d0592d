"""Copies the plan's columns of the survey into a private DuckDB file, in the declared types.

    Parquet, CSV, table --(one streaming read)--> WORKSPACE/survey.duckdb
                                                    survey       the plan's columns alone
                                                    conversion   column, values of the wrong type

A value that cannot be converted to its column's type without loss (text or 3.7 in an integer
column) becomes null in ``survey`` and is counted in ``conversion``; ``tasks.survey.validate`` reports
it with all other faults, and ``tasks.survey.tally`` refuses a column that has any.
Values outside the bounds are moved to the nearest bound if the column says ``clamp``, and kept if it
says ``refuse``; null, NaN and infinity are never moved.

Everything in the workspace is private: only its owner can read it, and DuckDB's temporary files are
in it too.  Errors name columns and rules, never values: DuckDB's own messages quote the data, so
``call_guarded`` drops them.
"""

import glob
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TypeVar

import duckdb
import pyarrow as pa
from pyarrow import parquet

from dpcore.domain.adjacency import REPLACE_ONE, Adjacency
from dpcore.errors import DataError, DPReleaseError, InputError
from dpcore.suggestion import suggestion
from schemas.survey.columns import (
    IdentifierColumn,
    ReadColumn,
    missing_codes,
    multiples_in,
    part_of_date,
    sources,
)
from schemas.survey.source import TableSource
from tasks.survey.counts import total_of_counts
from tasks.survey.csv_file import DELIMITERS, CSVFile, csv_fault, csv_headers, with_one_line_end
from tasks.survey.dates import part_in_sql
from tasks.survey.memory import MemoryTable
from tasks.survey.sql import answered, clamp, convert, multiples_in_sql, quote, sql_type, text
from tasks.workplace.home import private_folder

FILE = "survey.duckdb"
TABLE = "survey"
FAULTS = "conversion"
LINES = "survey.csv"
MEMORY_LIMIT = "2GiB"
"""The memory that DuckDB may use; beyond it, it writes temporary files into the workspace."""

PACKAGE = "package://"
EXTRAS = {"statsmodels": "demo"}
"""Packages that an optional extra of dprelease installs."""

T = TypeVar("T")


def call_guarded(action: Callable[[], T], error: type[DPReleaseError], message: str) -> T:
    """Call ``action``; if it fails, raise ``error`` with the message instead of its exception.

    Libraries that read data quote it in their exceptions.  The new error is raised outside the
    ``except`` block, so that neither its cause nor its context holds a value.
    """
    try:
        return action()
    except DPReleaseError:
        raise
    except Exception as failure:
        kind = type(failure).__name__
    raise error(f"{message} ({kind})")


@contextmanager
def connect(path: Path, read_only: bool = True) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection to a private DuckDB file, closed at the end; raises ``InputError``.

    DuckDB may not fetch extensions from the network, writes temporary files beside the file only, and
    shows no progress bar.
    """
    config: dict[str, str | bool | int | float | list[str]] = {
        "temp_directory": str(path.parent / "spill"),
        "memory_limit": MEMORY_LIMIT,
        "preserve_insertion_order": "false",
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
    }
    connection = call_guarded(
        lambda: duckdb.connect(str(path), read_only=read_only, config=config),
        InputError,
        f"{path}: cannot be opened as a DuckDB file",
    )
    try:
        hide_bar(connection)
        # A cast between times with and without a zone is by the session's; none here depends on it.
        connection.execute("SET TimeZone = 'UTC'")
        yield connection
    finally:
        connection.close()


def hide_bar(connection: duckdb.DuckDBPyConnection) -> None:
    """Show no progress bar; in a notebook without widgets there is none, and this cannot be set."""
    with suppress(duckdb.InvalidInputException):
        connection.execute("SET enable_progress_bar = false")


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
    says how many records each row stands for, if one does.  An earlier file is replaced once the new one
    is complete.  Raises ``InputError`` if the source cannot be found or read, ``DataError`` if it lacks
    a column, if a count is not valid, or if ``rows`` is public and it has another number of records.
    """
    refuse_lookalikes(columns)
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
            relation = _locate(source, columns, connection)
            require_columns(sources(columns).values(), relation.columns)
            if counts and relation.columns[counts][1] == "BOOLEAN":
                raise DataError(f"column {counts!r}, counts: has truth values, not whole numbers")
            found = _copied(source, connection, relation, columns, counts, workspace)
            if counts:
                found = call_guarded(
                    lambda: _total(connection, counts), DataError, "the counts cannot be added up"
                )
        require_rows(found, rows, adjacency)
        os.replace(partial, finished)
    finally:
        _remove(partial)
    return finished


def _remove(partial: Path) -> None:
    for path in (partial, partial.with_name(f"{partial.name}.wal")):
        path.unlink(missing_ok=True)


def refuse_lookalikes(columns: Iterable[str]) -> None:
    """Raise ``InputError`` if two columns of the plan differ only in capitals."""
    seen: dict[str, str] = {}
    for name in columns:
        other = seen.setdefault(name.lower(), name)
        if other != name:
            raise InputError(f"columns {other!r} and {name!r} differ only in capitals: rename one")


def require_columns(columns: Iterable[str], found: Iterable[str]) -> None:
    """Raise ``DataError`` if the survey table lacks a column that the plan reads."""
    missing = [name for name in dict.fromkeys(columns) if name not in found]
    if missing:
        raise DataError(
            f"the survey table lacks the columns {', '.join(map(repr, missing))}"
            " (names must match exactly, with capitals and blanks"
            f"{suggestion(missing[0], found)})"
        )


def require_once(columns: Iterable[str], found: Sequence[str]) -> None:
    """Raise ``DataError`` if the survey table has two columns of one name."""
    for name in columns:
        if found.count(name) > 1:
            raise DataError(f"the survey table has two columns {name!r}: rename one")


def require_rows(found: int, rows: int, adjacency: Adjacency) -> None:
    """Raise ``DataError`` if ``rows`` is public and wrong; the tally checks a private number."""
    if adjacency.public_rows and found != rows:
        raise DataError(
            f"the survey table does not have the {rows} records that `rows` in the plan states;"
            " count the records at the source and correct the plan (the number becomes public)"
        )


@dataclass(frozen=True)
class _Relation:
    """A table as SQL, and its columns: exact name -> (SQL expression, DuckDB type)."""

    sql: str
    columns: Mapping[str, tuple[str, str]]
    csv: CSVFile | None = None


def _locate(
    source: str | TableSource | MemoryTable,
    declared: Mapping[str, ReadColumn],
    connection: duckdb.DuckDBPyConnection,
) -> _Relation:
    if isinstance(source, TableSource):
        return _attached(source, connection)
    if isinstance(source, MemoryTable):
        return _registered(source, declared, connection)
    columns = set(sources(declared).values())
    path = find_file(source)
    # Without the escapes, DuckDB would read every file that [...] or * in the name matches.
    if _suffix(path) == ".parquet":
        sql = f"read_parquet({text(glob.escape(str(path)))}, hive_partitioning=false)"
        unreadable = f"{source}: cannot be read as a Parquet file"
        names = call_guarded(lambda: parquet.read_schema(path).names, InputError, unreadable)
        require_once(columns, names)
        return _described(sql, connection, unreadable, names)
    return call_guarded(
        lambda: _csv(source, path, columns), InputError, f"{source}: cannot be read as CSV"
    )


def find_file(source: str | TableSource) -> Path:
    """The file of a source; raises ``InputError`` if there is none, or its name has another ending."""
    if isinstance(source, TableSource):
        name, path = source.database, Path(source.database)
    else:
        name = source
        path = find_in_package(source) if source.startswith(PACKAGE) else Path(source)
        if _suffix(path) not in (".parquet", ".csv", ".csv.gz"):
            raise InputError(f"{source}: the survey table must be a .parquet, .csv or .csv.gz file")
    if not call_guarded(path.is_file, InputError, f"{name}: cannot be opened"):
        raise InputError(f"{name}: there is no such file")
    if not os.access(path, os.R_OK):
        raise InputError(f"{name}: this user may not read it")
    return path


def _suffix(path: Path) -> str:
    return "".join(
        path.suffixes[-2:] if path.suffix.lower() == ".gz" else path.suffixes[-1:]
    ).lower()


def find_in_package(source: str) -> Path:
    """The path of ``package://NAME/PATH``; the package itself is not imported."""
    package, _, inside = source.removeprefix(PACKAGE).partition("/")
    outside = Path(inside).is_absolute() or ".." in Path(inside).parts
    if not package.isidentifier() or not inside or outside:
        raise InputError(f"{source}: must have the form {PACKAGE}NAME/PATH")
    spec = call_guarded(lambda: find_spec(package), InputError, f"{source}: cannot be looked up")
    if spec is None:
        wanted = f'"dprelease[{EXTRAS[package]}]"' if package in EXTRAS else package
        raise InputError(f"{source}: {package} is not installed; run: pip install {wanted}")
    for folder in spec.submodule_search_locations or ():
        if (Path(folder) / inside).is_file():
            return Path(folder) / inside
    raise InputError(f"{source}: the installed package {package} has no such file")


def _attached(source: TableSource, connection: duckdb.DuckDBPyConnection) -> _Relation:
    find_file(source)
    call_guarded(
        lambda: connection.execute(f"ATTACH {text(source.database)} AS source (READ_ONLY)"),
        InputError,
        f"{source.database}: is not a DuckDB database, or another process is writing to it",
    )
    found = _described(
        f"source.{quote(source.table)}",
        connection,
        f"{source.database}: the table {source.table!r} cannot be read",
    )
    # Text of a database has a collation, under which other text may equal it: its bytes have none.
    bytewise = {
        name: (f"decode(encode({value}))" if kind == "VARCHAR" else value, kind)
        for name, (value, kind) in found.columns.items()
    }
    return replace(found, columns=bytewise)


def _registered(
    source: MemoryTable, declared: Mapping[str, ReadColumn], connection: duckdb.DuckDBPyConnection
) -> _Relation:
    columns = sources(declared).values()
    # What cannot be text is no category, and no identifier.
    wrong = {
        column: "" if isinstance(declared[name], IdentifierColumn) else "\0"
        for name, column in sources(declared).items()
        if sql_type(declared[name]) == "VARCHAR"
    }
    unreadable = f"{source}: cannot be read as an Arrow table"
    names = call_guarded(lambda: source.names, InputError, unreadable)
    require_once(columns, names)
    require_columns(columns, names)
    read = {
        name: call_guarded(
            lambda: source.column(name, wrong.get(name)),  # noqa: B023 - it is called here
            DataError,
            f"{source}: column {name!r} cannot be read",
        )
        for name in dict.fromkeys(columns)
    }
    connection.register("memory", pa.table(read))
    return _described("memory", connection, unreadable, list(read))


def _described(
    sql: str,
    connection: duckdb.DuckDBPyConnection,
    message: str,
    names: Sequence[str] | None = None,
) -> _Relation:
    """A table with its columns; ``names``: those in the file, where DuckDB renames lookalikes."""
    found = call_guarded(
        lambda: connection.execute(f"DESCRIBE SELECT * FROM {sql}").fetchall(), InputError, message
    )
    known = [name for name, *_ in found]
    own = known if names is None else names
    if len(own) != len(known):
        raise InputError(message)
    kinds = [kind for _, kind, *_ in found]
    return _Relation(sql, dict(zip(own, zip(map(quote, known), kinds, strict=True), strict=True)))


def _csv(source: str, path: Path, columns: Collection[str]) -> _Relation:
    """A CSV file, all text, its columns taken by position.

    The header is read here because DuckDB renames columns that are equal or differ only in capitals,
    as it does for a Parquet file.  The delimiter is the one that finds most of the plan's columns in
    the header, so it does not depend on the records.
    """
    headers = csv_headers(path, source)
    delimiter = max(DELIMITERS, key=lambda d: len(set(headers[d]) & set(columns)))
    header = headers[delimiter]
    if not header:
        raise DataError("the survey table is empty: its first line must name the columns")
    require_once(columns, header)
    file = CSVFile(path, delimiter, len(header))
    names = {name: (f"c{i}", "VARCHAR") for i, name in enumerate(header)}
    return _Relation(file.sql(), names, file)


def _total(connection: duckdb.DuckDBPyConnection, counts: str) -> int:
    import ibis  # slow to import

    return total_of_counts(ibis.duckdb.from_connection(connection).table(TABLE), counts)


def _copied(
    source: object,
    connection: duckdb.DuckDBPyConnection,
    relation: _Relation,
    columns: Mapping[str, ReadColumn],
    counts: str | None,
    workspace: Path,
) -> int:
    """``_copy``; of a CSV file that cannot be read, a copy with one kind of line ends, or its fault."""

    def copied(relation: _Relation) -> int:
        return _copy(connection, relation, columns, counts)

    message = (
        f"the survey table could not be copied: {source} is damaged, or the disk of {workspace} is"
        " full"
    )
    if (given := relation.csv) is None:
        return call_guarded(lambda: copied(relation), DataError, message)
    with suppress(duckdb.Error):
        return copied(relation)
    file = plain = replace(given, path=workspace / LINES)
    try:
        if call_guarded(
            lambda: with_one_line_end(given.path, plain.path, source), DataError, message
        ):
            with suppress(duckdb.Error):
                return copied(replace(relation, sql=plain.sql()))
        else:
            file = given
        used = {relation.columns[name][0] for name in sources(columns).values()}
        fault = call_guarded(lambda: csv_fault(connection, file, used), DataError, message)
    finally:
        plain.path.unlink(missing_ok=True)
    raise DataError(f"{source}: {fault}" if fault else message)


def _copy(
    connection: duckdb.DuckDBPyConnection,
    relation: _Relation,
    columns: Mapping[str, ReadColumn],
    counts: str | None,
) -> int:
    """Fill the two tables, reading the source once; returns its number of rows (private).

    Beside each column the copy first has a column that marks the values that could not be converted;
    the marks are counted and dropped.  They are nearly all equal, so they take almost no space.
    """
    raw, typed, kept = [], [], []
    read = sources(columns)
    for i, (name, column) in enumerate(columns.items()):
        expression, kind = relation.columns[read[name]]
        raw.append(f"{answered(expression, kind, *missing_codes(name, columns))} AS raw{i}")
        if part := part_of_date(column):
            value = part_in_sql(f"raw{i}", kind, part.part)
        elif heap := multiples_in(column):
            base = columns[heap.column]
            number = clamp(convert(f"raw{i}", kind, sql_type(base)), base)
            value = multiples_in_sql(f"({number})", heap.multiples_of)
        else:
            value = convert(f"raw{i}", kind, sql_type(column))
        typed.append(f"raw{i}, {value} AS value{i}")
        kept.append(f"{clamp(f'value{i}', column)} AS {quote(name)}")
        kept.append(f"raw{i} IS NOT NULL AND value{i} IS NULL AS {quote(f'?{i}')}")
    connection.execute(
        f"CREATE OR REPLACE TABLE {TABLE} AS SELECT {', '.join(kept)} FROM"
        f" (SELECT {', '.join(typed)} FROM (SELECT {', '.join(raw)} FROM {relation.sql}))"
    )
    if counts:  # a row of count 0 stands for no record, so its values need not be valid
        connection.execute(f"DELETE FROM {TABLE} WHERE {quote(counts)} = 0")
    counted = ", ".join(f"count(*) FILTER ({quote(f'?{i}')})" for i in range(len(columns)))
    numbers = connection.execute(f"SELECT {counted}, count(*) FROM {TABLE}").fetchone()
    assert numbers is not None  # an aggregate has one row
    connection.execute(f"CREATE TABLE {FAULTS} (name VARCHAR, failures BIGINT)")
    for i, (name, failures) in enumerate(zip(columns, numbers[:-1], strict=True)):
        connection.execute(f"INSERT INTO {FAULTS} VALUES (?, ?)", [name, failures])
        connection.execute(f"ALTER TABLE {TABLE} DROP COLUMN {quote(f'?{i}')}")
    return int(numbers[-1])
