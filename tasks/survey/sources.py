"""Finds a survey table (a file, a table of a DuckDB file, or in memory) and its columns as SQL.

    Parquet, CSV, CSV.gz    found by its path, or inside an installed package; a pattern is not expanded
    DuckDB table or view    attached read-only, without access to other files; its text is compared byte
                            by byte, without a collation
    Excel, Stata, SPSS      through a reader of an optional extra (``office_files``)
    table in memory         its columns as Arrow

If names of columns differ only in capitals, DuckDB renames them, so columns are found by position.
"""

import glob
import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import duckdb
import pyarrow as pa
from pyarrow import parquet

from dpcore.errors import DataError, InputError
from dpcore.suggestion import suggestion
from schemas.survey.columns import IdentifierColumn, ReadColumn
from schemas.survey.reading import source_in_words, sources
from schemas.survey.source import TableSource
from tasks.survey.csv_file import DELIMITERS, CSVFile, csv_headers
from tasks.survey.memory import OBJECTS, MemoryTable, readable
from tasks.survey.office_files import READERS, office_table
from tasks.survey.private_file import call_guarded, confine
from tasks.survey.sql import quote, sql_type, text

PACKAGE = "package://"
ENDINGS = (".parquet", ".csv", ".csv.gz", ".tsv", ".tsv.gz", *READERS)
OR_ENDINGS = f"{', '.join(ENDINGS[:-1])} or {ENDINGS[-1]}"
UNFITTING = "the survey table is not as the plan declares:"
EXTRAS = {"statsmodels": "demo"}
"""Packages that an optional extra of dprelease installs."""


@dataclass(frozen=True)
class Relation:
    """A table as SQL, and its columns: exact name -> (SQL expression, DuckDB type).

    ``objects``: columns of ``OBJECTS``, in which each value was text, a date or another object.
    """

    sql: str
    columns: Mapping[str, tuple[str, str]]
    csv: CSVFile | None = None
    objects: Mapping[str, str] = field(default_factory=dict)
    again: Callable[[], "Relation"] | None = None
    """For a Parquet file: the table read by Arrow, if one value makes DuckDB refuse the file."""


def locate(
    source: str | TableSource | MemoryTable,
    declared: Mapping[str, ReadColumn],
    connection: duckdb.DuckDBPyConnection,
) -> Relation:
    if isinstance(source, TableSource):
        return _attached(source, connection)
    if isinstance(source, MemoryTable):
        return _registered(source, declared, connection)
    columns = set(sources(declared).values())
    path = find_file(source)
    if path.suffix.lower() in READERS:
        unreadable = f"{source}: cannot be read as a file of {_suffix(path)[1:]}"
        table = call_guarded(lambda: office_table(path), InputError, unreadable)
        return _registered(table, declared, connection)
    # Without the escapes, DuckDB would read every file that [...] or * in the name matches.  With
    # hive_partitioning it would make columns from names of folders such as year=2020.
    if _suffix(path) == ".parquet":
        sql = f"read_parquet({text(glob.escape(str(path)))}, hive_partitioning=false)"
        unreadable = f"{source}: cannot be read as a Parquet file"
        names = call_guarded(lambda: parquet.read_schema(path).names, InputError, unreadable)
        require_once(columns, names)
        confine(connection, path)
        found = _described(sql, connection, unreadable, names)
        again = partial(_streamed, path, declared, connection, unreadable, found.columns)
        return replace(found, again=again)
    confine(connection, path)
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
        if _suffix(path) not in ENDINGS:
            raise InputError(
                f"{source}: must be a file that ends with {OR_ENDINGS}, or a table of a DuckDB file,"
                " which a plan names as {database: FILE, table: NAME}; name it with --table elsewhere"
            )
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


def _attached(source: TableSource, connection: duckdb.DuckDBPyConnection) -> Relation:
    find_file(source)
    call_guarded(
        lambda: connection.execute(f"ATTACH {text(source.database)} AS source (READ_ONLY)"),
        InputError,
        f"{source.database}: is not a DuckDB database, or another process is writing to it",
    )
    confine(connection)
    known = {
        name.lower(): name
        for (name,) in connection.execute(
            "SELECT table_name FROM duckdb_tables() WHERE database_name = 'source' UNION ALL"
            " SELECT view_name FROM duckdb_views() WHERE database_name = 'source' AND NOT internal"
        ).fetchall()
    }
    if source.table.lower() not in known:  # DuckDB's names have no case
        raise InputError(no_table(source.database, source.table, known.values()))
    found = _described(
        f"source.{quote(source.table)}",
        connection,
        f"{source.database}: the table {source.table!r} cannot be read; if it is a view, it may read"
        " only tables of this file",
    )
    # Under a column's collation different texts may be equal; bytes have no collation.
    bytewise = {
        name: (f"decode(encode({value}))" if kind == "VARCHAR" else value, kind)
        for name, (value, kind) in found.columns.items()
    }
    return replace(found, columns=bytewise)


def no_table(place: str, table: str, known: Iterable[str]) -> str:
    """A message that a database has no such table, with the three most similar names."""
    return f"{place}: there is no table {table!r}{suggestion(table, known, most=3, least=0)}"


def _registered(
    source: MemoryTable, declared: Mapping[str, ReadColumn], connection: duckdb.DuckDBPyConnection
) -> Relation:
    columns, wrong = sources(declared).values(), _wrong(declared)
    shown = {of: source_in_words(name, declared) for name, of in sources(declared).items()}
    unreadable = f"{source}: cannot be read as an Arrow table"
    names = call_guarded(lambda: source.names, InputError, unreadable)
    require_once(columns, names)
    read = {
        name: call_guarded(
            lambda: source.column(name, wrong.get(name)),  # noqa: B023 - called at once
            DataError,
            f"{source}: column {shown[name]!r} cannot be read",
        )
        for name in dict.fromkeys(columns)
        if name in names
    }
    connection.register("memory", pa.table(read))
    confine(connection)
    found = _described("memory", connection, unreadable, list(read))
    objects = {name: found.columns[name][0] for name, of in read.items() if of.type == OBJECTS}
    values = {name: (f"{whole}.value", "VARCHAR") for name, whole in objects.items()}
    return replace(found, columns={**found.columns, **values}, objects=objects)


def _wrong(declared: Mapping[str, ReadColumn]) -> dict[str, str]:
    """For each column of text the text of what cannot be text: no category and no identifier."""
    return {
        column: "" if isinstance(declared[name], IdentifierColumn) else "\0"
        for name, column in sources(declared).items()
        if sql_type(declared[name]) == "VARCHAR"
    }


def _streamed(
    path: Path,
    declared: Mapping[str, ReadColumn],
    connection: duckdb.DuckDBPyConnection,
    unreadable: str,
    first: Mapping[str, tuple[str, str]],
) -> Relation:
    """The plan's columns of a Parquet file, each value read by itself.

    Raises ``DataError`` if another type than the ``first`` reader's would change other values too.
    """
    # The default unit wraps dates of the year 2300 around.
    file = parquet.ParquetFile(path, coerce_int96_timestamp_unit="us")
    wrong = _wrong(declared)
    known = file.schema_arrow
    names = [name for name in dict.fromkeys(sources(declared).values()) if name in known.names]

    def read(batch: pa.RecordBatch) -> pa.RecordBatch:
        columns = [readable(batch.column(name), wrong.get(name)) for name in names]
        return pa.record_batch(columns, names)

    nothing = [pa.array([], known.field(name).type) for name in names]
    schema = read(pa.record_batch(nothing, names)).schema
    batches = map(read, file.iter_batches(columns=names))
    connection.register("memory", pa.RecordBatchReader.from_batches(schema, batches))
    found = _described("memory", connection, unreadable, names)
    for name, (_, kind) in found.columns.items():
        before = first[name][1]
        if kind != before and not (kind == "TIMESTAMP_MS" and before.startswith("TIMESTAMP")):
            raise DataError(unreadable)
    return found


def _described(
    sql: str,
    connection: duckdb.DuckDBPyConnection,
    message: str,
    names: Sequence[str] | None = None,
) -> Relation:
    """A table with its columns; ``names``: the names in the file, if DuckDB renames similar ones."""
    found = call_guarded(
        lambda: connection.execute(f"DESCRIBE SELECT * FROM {sql}").fetchall(), InputError, message
    )
    known = [name for name, *_ in found]
    own = known if names is None else names
    if len(own) != len(known):
        raise InputError(message)
    kinds = [kind for _, kind, *_ in found]
    return Relation(sql, dict(zip(own, zip(map(quote, known), kinds, strict=True), strict=True)))


def _csv(source: str, path: Path, columns: Collection[str]) -> Relation:
    """A CSV file, all text, its columns taken by position."""
    # Read here, because DuckDB renames columns that are equal or differ only in capitals.
    headers = csv_headers(path, source)
    # Chosen by the plan's columns: DuckDB would look at the records.
    delimiter = max(DELIMITERS, key=lambda d: len(set(headers[d]) & set(columns)))
    header = headers[delimiter]
    if not header:
        raise DataError("the survey table is empty: its first line must name the columns")
    require_once(columns, header)
    file = CSVFile(path, delimiter, len(header))
    names = {name: (f"c{i}", "VARCHAR") for i, name in enumerate(header)}
    return Relation(file.sql(), names, file)


def found_columns(
    columns: Mapping[str, ReadColumn], found: Collection[str]
) -> tuple[dict[str, ReadColumn], list[str]]:
    """The columns that the table has, and a line on each column that it lacks.

    Raises ``DataError`` if it has none of them.
    """
    read = sources(columns)
    there = {name: column for name, column in columns.items() if read[name] in found}
    lines = dict.fromkeys(
        # If the table has none of them, its first line may be a record, which no message quotes.
        _lacks(source_in_words(name, columns), read[name], found if there else ())
        for name in columns
        if name not in there
    )
    if not there:
        raise DataError("\n  ".join([UNFITTING, *lines]))
    return there, [*lines]


def _lacks(shown: str, name: str, found: Collection[str]) -> str:
    meant = suggestion(name, found, most=3) if shown == name else "; see its `source_name`"
    exactly = f"names must match exactly, with capitals and blanks{meant}"
    return f"column {shown!r}: the table lacks it ({exactly})"


def require_once(columns: Iterable[str], found: Sequence[str]) -> None:
    """Raise ``DataError`` if the survey table has two columns with the same name."""
    for name in columns:
        if found.count(name) > 1:
            raise DataError(f"the survey table has two columns {name!r}: rename one")
