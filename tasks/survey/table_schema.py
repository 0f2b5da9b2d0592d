"""Reads the names and types of a table's columns, and nothing else of the table.

It reads the schema in a Parquet file's footer, a DuckDB file's catalogue, or a CSV file's first line:
no values, no numbers of records, no statistics, no dictionary of an enumeration.
"""

import re
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from dpcore.errors import InputError
from schemas.first_plan.described import ColumnType
from schemas.first_plan.question import Question
from schemas.survey.source import TableSource
from tasks.survey.csv_file import csv_headers
from tasks.survey.office_files import READERS
from tasks.survey.office_labels import office_questions, office_schema
from tasks.survey.private_file import call_guarded, confine, connect
from tasks.survey.sources import find_file, no_table


def table_schema(source: str | TableSource) -> Mapping[str, ColumnType]:
    """Names and kinds of the columns in the table's order.

    Raises ``InputError`` if there is no such table, or if the first line of a CSV file has numbers: it
    might be a record.
    """
    if isinstance(source, TableSource):
        return _of_duckdb(source)
    path = find_file(source)
    if path.suffix.lower() == ".parquet":
        message = f"{source}: cannot be read as a Parquet file"
        schema = call_guarded(lambda: pq.read_schema(path), InputError, message)
        return {field.name: _of_arrow(field.type) for field in schema}
    if path.suffix.lower() in READERS:
        message = f"{source}: cannot be read as a file of {path.suffix[1:]}"
        return _named_columns(
            source, call_guarded(lambda: office_schema(path), InputError, message)
        )
    message = f"{source}: cannot be read as CSV"
    headers = call_guarded(lambda: csv_headers(path, source), InputError, message)
    header = max(headers.values(), key=len)
    return _named_columns(source, {name: _named(name) for name in header})


def questions_of(source: str) -> Mapping[str, Question]:
    """The file's own metadata on its columns, in Stata and SPSS files; empty for others."""
    message = f"{source}: its labels cannot be read"
    return call_guarded(lambda: office_questions(find_file(source)), InputError, message)


def frame_schema(frame: Any) -> Mapping[str, ColumnType]:
    """Names and types of the columns of a pandas data frame or an Arrow table; no value is read.

    Columns of objects may hold anything, so their type is left open.
    """
    if isinstance(frame, pa.Table):
        return {field.name: _of_arrow(field.type) for field in frame.schema}
    if not hasattr(frame, "dtypes") or not hasattr(frame, "columns"):
        raise InputError(
            f"table: is a {type(frame).__name__}; give a path, a pandas data frame or an Arrow table"
        )
    named = zip(map(str, frame.columns), map(str, frame.dtypes), strict=True)
    return {
        name: next(
            (kind for form, kind in DTYPES.items() if re.match(form, dtype, re.IGNORECASE)),
            ColumnType.OPEN,
        )
        for name, dtype in named
    }


DTYPES = {
    r"bool": ColumnType.TRUTH,
    r"u?int": ColumnType.WHOLE,
    r"float|double|decimal": ColumnType.REAL,
    r"category|str": ColumnType.TEXT,
    r"date(32|64)": ColumnType.DAY,
    r"datetime|timestamp": ColumnType.TIME,
}
"""The kind of a column by the beginning of its pandas type's name, in lower case."""


def _of_arrow(kind: pa.DataType) -> ColumnType:
    types = pa.types
    if types.is_dictionary(kind):
        return _of_arrow(kind.value_type)
    if types.is_boolean(kind):
        return ColumnType.TRUTH
    if types.is_integer(kind):
        return ColumnType.WHOLE
    if types.is_floating(kind) or types.is_decimal(kind):
        return ColumnType.REAL
    if types.is_date(kind) or types.is_timestamp(kind):
        return ColumnType.DAY if types.is_date(kind) else ColumnType.TIME
    text = (types.is_string, types.is_large_string, types.is_string_view)
    return ColumnType.TEXT if any(is_a(kind) for is_a in text) else ColumnType.OTHER


def _named_columns(source: str, columns: Mapping[str, ColumnType]) -> Mapping[str, ColumnType]:
    """Return the columns; raises ``InputError`` if a name is a number, which may be a value."""
    for place, name in enumerate(columns, 1):
        if VALUE.fullmatch(name) and not YEAR.fullmatch(name):
            raise InputError(
                f"{source}: field {place} of the first line is a number. If the line is a record, put a"
                " line of column names before it; if not, give the column a name"
            )
    return columns


VALUE = re.compile(r"\s*[+-]?\d+([.,]\d+)*\s*")
YEAR = re.compile(r"(19|20)\d\d")
"""The pattern of a name that is a year: tables may have such columns, but plans leave them out."""

DATES = {"date": ColumnType.DAY, "datetime": ColumnType.TIME, "timestamp": ColumnType.TIME}


def _named(name: str) -> ColumnType:
    """The kind that the name of a CSV column suggests."""
    parts = re.sub("(?<=[a-z])(?=[A-Z])", " ", name).lower()
    said = (DATES[word] for word in re.findall("[a-z]+", parts) if word in DATES)
    return next(said, ColumnType.OPEN)


DUCKDB_KINDS = {
    r"BOOLEAN": ColumnType.TRUTH,
    r"U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?": ColumnType.WHOLE,
    r"FLOAT|DOUBLE|DECIMAL\(.*\)": ColumnType.REAL,
    r"VARCHAR|ENUM\(.*\)": ColumnType.TEXT,
    r"DATE": ColumnType.DAY,
    r"TIMESTAMP.*": ColumnType.TIME,
}


def _of_duckdb(source: TableSource) -> Mapping[str, ColumnType]:
    with connect(find_file(source)) as connection:
        confine(connection)
        found = connection.execute(
            "SELECT table_name, column_name, data_type FROM duckdb_columns()"
            " WHERE NOT internal ORDER BY column_index"
        ).fetchall()
    columns = {name: _of_sql(kind) for table, name, kind in found if table == source.table}
    if not columns:
        known = dict.fromkeys(table for table, *_ in found)
        raise InputError(no_table(source.database, source.table, known))
    return columns


def _of_sql(kind: str) -> ColumnType:
    fits = (name for form, name in DUCKDB_KINDS.items() if re.fullmatch(form, kind, re.DOTALL))
    return next(fits, ColumnType.OTHER)
