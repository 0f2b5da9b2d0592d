"""Bring the survey table in: a private copy of the plan's columns, typed as the plan declares.

    Parquet, CSV, table --(one streaming read)--> WORKSPACE/survey.duckdb
                                                    survey       the plan's columns, nothing else
                                                    conversion   column, values of the wrong type

A value that cannot be turned into its column's type without loss (text or 3.7 in an integer
column) becomes null in ``survey`` and is counted in ``conversion``, where ``tasks.validate``
reports it beside every other fault; ``tasks.tally`` refuses a column as long as one is counted.
Values outside the bounds are moved to the nearest bound where the column says ``clamp``, and kept
where it says ``refuse``; null, NaN and infinity are never moved.

Everything in the workspace is private: the folder and the file are for their owner only, and what
DuckDB spills while it works lies there too.  Errors name columns and rules, never values: DuckDB's
own messages quote the data, so ``guarded`` drops them.
"""

import csv
import glob
import gzip
import os
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TypeVar

import duckdb
from pyarrow import parquet

from dpcore.adjacency import REPLACE_ONE, Adjacency
from dpcore.errors import DataError, DPReleaseError, InputError
from schemas.columns import ReadColumn
from schemas.source import TableSource
from tasks.home import private_folder
from tasks.sql import clamped, converted, quote, sql_type, text

FILE = "survey.duckdb"
TABLE = "survey"
FAULTS = "conversion"
MEMORY_LIMIT = "2GiB"
"""What DuckDB may keep in memory; beyond it, work spills into the workspace."""

PACKAGE = "package://"
DELIMITERS = (",", ";", "\t")
EXTRAS = {"statsmodels": "demo"}
"""Packages that an optional part of this software brings along."""

T = TypeVar("T")


def guarded(action: Callable[[], T], error: type[DPReleaseError], message: str) -> T:
    """The result of ``action``; if it fails, ``error`` with the message and nothing of the failure.

    Errors of the libraries that read data quote what they read.  The new error is raised after the
    old one is forgotten, so that neither its cause nor its context holds a value.
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

    DuckDB may not fetch extensions from the network, spills beside the file only, and does not
    draw its progress bar into the output of the command line.
    """
    config: dict[str, str | bool | int | float | list[str]] = {
        "temp_directory": str(path.parent / "spill"),
        "memory_limit": MEMORY_LIMIT,
        "preserve_insertion_order": "false",
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
    }
    connection = guarded(
        lambda: duckdb.connect(str(path), read_only=read_only, config=config),
        InputError,
        f"{path}: cannot be opened as a DuckDB file",
    )
    try:
        connection.execute("SET enable_progress_bar = false")
        yield connection
    finally:
        connection.close()


def ingest(
    source: str | TableSource,
    columns: Mapping[str, ReadColumn],
    rows: int,
    workspace: Path,
    adjacency: Adjacency = REPLACE_ONE,
) -> Path:
    """Copy the plan's columns of the survey table into the workspace; returns the file.

    The source and the file are private; all else is the plan's.  An earlier file is replaced once the
    new one is whole.  Raises ``InputError`` where the source cannot be found or read, ``DataError``
    where it lacks a column or has not ``rows`` records, if those are public.
    """
    refuse_lookalikes(columns)
    guarded(
        lambda: private_folder(workspace),
        InputError,
        f"{workspace}: cannot be made a private folder",
    )
    finished, partial = workspace / FILE, workspace / f"{FILE}.partial"
    _remove(partial)
    try:
        with connect(partial, read_only=False) as connection:
            partial.chmod(0o600)
            relation = _locate(source, columns, connection)
            require_columns(columns, relation.columns)
            found = guarded(
                lambda: _copy(connection, relation, columns),
                DataError,
                "the survey table could not be copied: it is damaged or not of its form, or there "
                "is too little room in the workspace",
            )
        require_rows(found, rows, adjacency)
        os.replace(partial, finished)
    finally:
        _remove(partial)
    return finished


def _remove(partial: Path) -> None:
    for path in (partial, partial.with_name(f"{partial.name}.wal")):
        path.unlink(missing_ok=True)


# What is said of every survey, wherever it is


def refuse_lookalikes(columns: Iterable[str]) -> None:
    seen: dict[str, str] = {}
    for name in columns:
        other = seen.setdefault(name.lower(), name)
        if other != name:
            raise InputError(f"columns {other!r} and {name!r} differ only in capitals: rename one")


def require_columns(columns: Iterable[str], found: Container[str]) -> None:
    missing = [name for name in columns if name not in found]
    if missing:
        raise DataError(
            f"the survey table lacks the columns {', '.join(map(repr, missing))}"
            " (capitals and blanks count)"
        )


def require_once(columns: Iterable[str], found: Sequence[str]) -> None:
    for name in columns:
        if found.count(name) > 1:
            raise DataError(f"column {name!r} stands twice in the survey table")


def require_rows(found: int, rows: int, adjacency: Adjacency) -> None:
    """A private number of records is checked where they are counted, and only for being too large."""
    if adjacency.public_rows and found != rows:
        raise DataError(
            f"the survey table does not have the {rows} records that `rows` in the plan states;"
            " count the records at the source and correct the plan (the number becomes public)"
        )


# Where the table is


@dataclass(frozen=True)
class _Relation:
    """A table as SQL, and its columns: exact name -> (SQL expression, DuckDB type)."""

    sql: str
    columns: Mapping[str, tuple[str, str]]


def _locate(
    source: str | TableSource,
    columns: Mapping[str, ReadColumn],
    connection: duckdb.DuckDBPyConnection,
) -> _Relation:
    if isinstance(source, TableSource):
        return _attached(source, connection)
    path = packaged(source) if source.startswith(PACKAGE) else Path(source)
    suffix = "".join(path.suffixes[-2:] if path.suffix.lower() == ".gz" else path.suffixes[-1:])
    if suffix.lower() not in (".parquet", ".csv", ".csv.gz"):
        raise InputError(f"{source}: the survey table must be a .parquet, .csv or .csv.gz file")
    if not guarded(path.is_file, InputError, f"{source}: cannot be looked at"):
        raise InputError(f"{source}: there is no such file")
    # Without the escapes, DuckDB would read every file that [...] or * in the name matches.
    escaped = text(glob.escape(str(path)))
    if suffix.lower() == ".parquet":
        sql = f"read_parquet({escaped}, hive_partitioning=false)"
        unreadable = f"{source}: cannot be read as a Parquet file"
        names = guarded(lambda: parquet.read_schema(path).names, InputError, unreadable)
        require_once(columns, names)
        return _described(sql, connection, unreadable, names)
    return guarded(
        lambda: _csv(path, escaped, columns), InputError, f"{source}: cannot be read as UTF-8 CSV"
    )


def packaged(source: str) -> Path:
    """The file that ``package://NAME/PATH`` names; the package itself is not imported."""
    package, _, inside = source.removeprefix(PACKAGE).partition("/")
    outside = Path(inside).is_absolute() or ".." in Path(inside).parts
    if not package.isidentifier() or not inside or outside:
        raise InputError(f"{source}: must have the form {PACKAGE}NAME/PATH")
    spec = guarded(lambda: find_spec(package), InputError, f"{source}: cannot be looked up")
    if spec is None:
        wanted = f'"dprelease[{EXTRAS[package]}]"' if package in EXTRAS else package
        raise InputError(f"{source}: {package} is not installed; run: pip install {wanted}")
    for folder in spec.submodule_search_locations or ():
        if (Path(folder) / inside).is_file():
            return Path(folder) / inside
    raise InputError(f"{source}: the installed package {package} has no such file")


def _attached(source: TableSource, connection: duckdb.DuckDBPyConnection) -> _Relation:
    if not Path(source.database).is_file():
        raise InputError(f"{source.database}: there is no such file")
    guarded(
        lambda: connection.execute(f"ATTACH {text(source.database)} AS source (READ_ONLY)"),
        InputError,
        f"{source.database}: cannot be read as a DuckDB database, or is being written to",
    )
    return _described(
        f"source.{quote(source.table)}",
        connection,
        f"{source.database}: the table {source.table!r} cannot be read",
    )


def _described(
    sql: str,
    connection: duckdb.DuckDBPyConnection,
    message: str,
    names: Sequence[str] | None = None,
) -> _Relation:
    """A table with its columns; ``names``: their own, where DuckDB renames those that look alike."""
    found = guarded(
        lambda: connection.execute(f"DESCRIBE SELECT * FROM {sql}").fetchall(), InputError, message
    )
    known = [name for name, *_ in found]
    own = known if names is None else names
    if len(own) != len(known):
        raise InputError(message)
    kinds = [kind for _, kind, *_ in found]
    return _Relation(sql, dict(zip(own, zip(map(quote, known), kinds, strict=True), strict=True)))


def csv_headers(path: Path) -> dict[str, list[str]]:
    """The first line of a CSV file as each delimiter would part it; nothing else is taken."""
    opened = gzip.open if path.suffix.lower() == ".gz" else open
    with opened(path, "rt", encoding="utf-8-sig", newline="") as file:
        line = file.readline()
    return {d: next(csv.reader([line], delimiter=d), []) for d in DELIMITERS}


def _csv(path: Path, escaped: str, columns: Mapping[str, ReadColumn]) -> _Relation:
    """A CSV file, all text, its columns taken by position.

    The header is read here because DuckDB renames columns that stand twice or differ in capitals
    only, as it does of a Parquet file.  The delimiter is the one that finds the plan's columns in it,
    so no guess depends on the records.  An empty field is null.
    """
    headers = csv_headers(path)
    delimiter = max(DELIMITERS, key=lambda d: len(set(headers[d]) & set(columns)))
    header = headers[delimiter]
    if not header:
        raise DataError("the survey table is empty: its first line must name the columns")
    require_once(columns, header)
    kinds = ", ".join(f"c{i}: 'VARCHAR'" for i in range(len(header)))
    sql = (
        f"read_csv({escaped}, auto_detect=false, header=true, delim={text(delimiter)}, quote='\"',"
        f" escape='\"', nullstr='', hive_partitioning=false, columns={{{kinds}}})"
    )
    return _Relation(sql, {name: (f"c{i}", "VARCHAR") for i, name in enumerate(header)})


# The copy, and what becomes of each value


def _copy(
    connection: duckdb.DuckDBPyConnection, relation: _Relation, columns: Mapping[str, ReadColumn]
) -> int:
    """Fill the two tables, reading the source once; returns how many records it holds (private).

    Beside each column the copy first keeps a mark of the values that could not be converted; the
    marks are counted and dropped.  They are nearly all equal, so they take next to no space.
    """
    raw, typed, kept = [], [], []
    for i, (name, column) in enumerate(columns.items()):
        expression, kind = relation.columns[name]
        raw.append(f"{expression} AS raw{i}")
        typed.append(f"raw{i}, {converted(f'raw{i}', kind, sql_type(column))} AS value{i}")
        kept.append(f"{clamped(f'value{i}', column)} AS {quote(name)}")
        kept.append(f"raw{i} IS NOT NULL AND value{i} IS NULL AS {quote(f'?{i}')}")
    connection.execute(
        f"CREATE TABLE {TABLE} AS SELECT {', '.join(kept)} FROM"
        f" (SELECT {', '.join(typed)} FROM (SELECT {', '.join(raw)} FROM {relation.sql}))"
    )
    counted = ", ".join(f"count(*) FILTER ({quote(f'?{i}')})" for i in range(len(columns)))
    counts = connection.execute(f"SELECT {counted}, count(*) FROM {TABLE}").fetchone()
    assert counts is not None  # an aggregate has one row
    connection.execute(f"CREATE TABLE {FAULTS} (name VARCHAR, failures BIGINT)")
    for i, (name, failures) in enumerate(zip(columns, counts[:-1], strict=True)):
        connection.execute(f"INSERT INTO {FAULTS} VALUES (?, ?)", [name, failures])
        connection.execute(f"ALTER TABLE {TABLE} DROP COLUMN {quote(f'?{i}')}")
    return int(counts[-1])
