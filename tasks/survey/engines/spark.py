"""Opens a survey that stays on Spark: Parquet files, or a catalogue table that is stored in files.

The files are listed at the beginning. After every reading, their names, lengths and times of
modification are compared; if one differs, nothing of that reading is used.  A copy in Spark's memory
would not be safer, because Spark may read a file again at any time.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from dpcore.domain.adjacency import REPLACE_ONE, Adjacency
from dpcore.errors import DataError, InputError
from dpcore.suggestion import suggestion
from schemas.survey.columns import ReadColumn
from schemas.survey.source import SparkSource
from tasks.survey.engines import open_session
from tasks.survey.private_file import call_guarded
from tasks.survey.reading import Session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SETTINGS = {
    "spark.sql.caseSensitive": "true",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
}
"""Settings that rule out, whatever the cluster's defaults, skipped records, confused columns, shifted
times, and queries that stop at an ancient date."""

EVERY_FILE = {"recursiveFileLookup": "true"}
"""An option to read only columns inside files; Spark would also make columns from folder names."""

MISSING = ("PATH_NOT_FOUND", "TABLE_OR_VIEW_NOT_FOUND", "SCHEMA_NOT_FOUND")
"""Spark's error classes for a path or table that does not exist."""

OPTIONS = "SPARK_SUBMIT_OPTS"
SILENT = f"-Dlog4j2.configurationFile={Path(__file__).with_name('silent.properties').as_uri()}"
"""Options for the Java machine that switch off Spark's log from the first line."""

VIEW = "dprelease_survey"
"""The survey's name in the session; no other run uses the session."""


def open_spark(
    source: SparkSource,
    columns: Mapping[str, ReadColumn],
    rows: int,
    adjacency: Adjacency = REPLACE_ONE,
    counts: str | None = None,
) -> Session:
    """A session with the cluster; raises ``InputError`` and ``DataError``, without any value."""
    session, close = _connect(source)
    try:
        table, unchanged = _table(session, source)
        types = {name: str(kind.copy(nullable=True)) for name, kind in table.schema().items()}
        return open_session(
            types, lambda _: table, columns, rows, adjacency, counts, close, unchanged
        )
    except BaseException:
        close()
        raise


def _connect(source: SparkSource) -> tuple[SparkSession, Callable[[], object]]:
    """A session with its own settings, and a function that ends it; an earlier context stays open."""
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise InputError(
            'a survey on Spark needs pyspark and Java; run: pip install "dprelease[spark]"'
        ) from None
    builder = SparkSession.builder.master(source.spark).appName("dprelease")
    builder = builder.config("spark.ui.showConsoleProgress", "false")
    before = SparkSession.getActiveSession()
    if SILENT not in os.environ.get(OPTIONS, ""):
        os.environ[OPTIONS] = f"{os.environ.get(OPTIONS, '')} {SILENT}".strip()
    session = before or call_guarded(
        builder.getOrCreate, InputError, f"source.spark: {source.spark} cannot be reached"
    )
    if session.sparkContext.master != source.spark:
        raise InputError("source.spark: this process is connected to another Spark master")
    session.sparkContext.setLogLevel("OFF")  # an earlier context may have another level
    own = session.newSession()
    for key, value in SETTINGS.items():
        own.conf.set(key, value)
    return own, (lambda: None) if before else session.stop


def _table(session: SparkSession, source: SparkSource) -> tuple[Any, Callable[[], object]]:
    """The survey as an Ibis table, and a function that raises ``DataError`` if its files changed."""
    import ibis

    unreadable = f"{source.place}: cannot be read by Spark as {source.form}"
    before = call_guarded(lambda: _files_if_any(session, source), InputError, unreadable)
    if before is None:
        known = call_guarded(lambda: _tables(session, source), InputError, unreadable)
        meant = suggestion(source.place, known, most=3, least=0)
        raise InputError(f"{source.place}: Spark does not find this {source.what}{meant}")
    if not before[0]:
        unknown = "is not stored in files, so a change during the run would go unnoticed"
        raise InputError(f"{source.place}: {'has no files' if source.parquet else unknown}")

    def unchanged() -> None:
        now = call_guarded(
            lambda: _files(session, source), DataError, "the survey's files cannot be listed again"
        )
        if now != before:
            raise DataError("the survey's files changed while they were read: run again")

    if not call_guarded(lambda: _create_view(session, source), InputError, unreadable):
        raise DataError("the survey table has two columns of the same name: rename one")
    return ibis.pyspark.connect(session).table(VIEW), unchanged


def _tables(session: SparkSession, source: SparkSource) -> list[str]:
    schema = source.place.rpartition(".")[0]
    if source.parquet or not session.catalog.databaseExists(schema):
        return []
    return [f"{schema}.{table.name}" for table in session.catalog.listTables(schema)]


def _frame(session: SparkSession, source: SparkSource) -> DataFrame:
    if source.parquet:
        return session.read.parquet(
            escape_pattern(source.parquet), mergeSchema="true", **EVERY_FILE
        )
    return session.table(source.place)


def _create_view(session: SparkSession, source: SparkSource) -> bool:
    """Give the survey its name in the session; False if two of its columns have the same name."""
    from pyspark.errors import AnalysisException

    try:
        _frame(session, source).createOrReplaceTempView(VIEW)
    except AnalysisException as error:
        if error.getErrorClass() != "COLUMN_ALREADY_EXISTS":
            raise
        return False
    return True


def _files_if_any(session: SparkSession, source: SparkSource) -> tuple[Any, ...] | None:
    """The result of ``_files``; None if the path or table does not exist."""
    from pyspark.errors import AnalysisException

    try:
        return _files(session, source)
    except AnalysisException as error:
        if error.getErrorClass() not in MISSING:
            raise
        return None


def _files(session: SparkSession, source: SparkSource) -> tuple[Any, ...]:
    """The number of files, and a digest of their names, lengths and times of modification."""
    from pyspark.sql import functions

    files = (
        [escape_pattern(source.parquet)]
        if source.parquet
        else _files_of_table(session, source.place)
    )
    if not files:
        return (0,)
    listed = session.read.format("binaryFile").options(**EVERY_FILE).load(files)
    # Without their content, so that it is not read. A xor does not depend on the order of files.
    digest = functions.xxhash64("path", "length", "modificationTime")
    return tuple(listed.select(functions.count("*"), functions.bit_xor(digest)).collect()[0])


def _files_of_table(session: SparkSession, table: str) -> list[str]:
    """Paths in the form that Spark reads: not encoded as a URL, and with pattern characters escaped."""
    session.catalog.refreshTable(table)
    return [escape_pattern(unquote(file)) for file in session.table(table).inputFiles()]


def escape_pattern(path: str) -> str:
    """A path with Spark's pattern characters escaped."""
    return re.sub(r"([\[\]{}*?\\])", r"\\\1", path)
