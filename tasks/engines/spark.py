"""A survey that stays on Spark: Parquet files, or a table of its catalogue that is kept in files.

The files are listed once, at the beginning, and their names, lengths and times of modification are
compared after every reading: where one differs, nothing of that reading is used.  Spark may read a
file again at any time, so that a copy in its memory would promise no more.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from dpcore.adjacency import REPLACE_ONE, Adjacency
from dpcore.errors import DataError, InputError
from schemas.columns import ReadColumn
from schemas.source import SparkSource
from tasks.engines import begin
from tasks.reading import Session
from tasks.survey import guarded

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SETTINGS = {
    "spark.sql.caseSensitive": "true",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
}
"""No record is skipped and no column mistaken for another, whatever the cluster's defaults."""

EVERY_FILE = {"recursiveFileLookup": "true"}
"""Columns are those inside the files; names of folders are no data."""

MISSING = ("PATH_NOT_FOUND", "TABLE_OR_VIEW_NOT_FOUND", "SCHEMA_NOT_FOUND")
"""Spark's names of errors that say that there is nothing at the place."""

OPTIONS = "SPARK_SUBMIT_OPTS"
SILENT = f"-Dlog4j2.configurationFile={Path(__file__).with_name('silent.properties').as_uri()}"
"""Options for the Java machine that is to be started: none of Spark's log, from its first line."""

VIEW = "dprelease_survey"
"""The survey's name in the session, which is of this run alone."""


def open_spark(
    source: SparkSource,
    columns: Mapping[str, ReadColumn],
    rows: int,
    adjacency: Adjacency = REPLACE_ONE,
) -> Session:
    """A session with the cluster; raises ``InputError`` and ``DataError``, without any value."""
    session, close = _connect(source)
    try:
        table, unchanged = _table(session, source)
        types = {name: str(kind.copy(nullable=True)) for name, kind in table.schema().items()}
        return begin(types, lambda: table, columns, rows, adjacency, close, unchanged)
    except BaseException:
        close()
        raise


def _connect(source: SparkSource) -> tuple[SparkSession, Callable[[], object]]:
    """A session of its own settings, and what ends it; a context that was there before stays."""
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
    session = before or guarded(
        builder.getOrCreate, InputError, f"source.spark: {source.spark} cannot be reached"
    )
    if session.sparkContext.master != source.spark:
        raise InputError("source.spark: this process is connected to another Spark master")
    session.sparkContext.setLogLevel("OFF")  # of a context that was there before
    own = session.newSession()
    for key, value in SETTINGS.items():
        own.conf.set(key, value)
    return own, (lambda: None) if before else session.stop


def _table(session: SparkSession, source: SparkSource) -> tuple[Any, Callable[[], object]]:
    """The survey as Ibis sees it, and what raises ``DataError`` where it is no longer the same."""
    import ibis

    unreadable = f"{source.place}: cannot be read by Spark as {source.form}"
    before = guarded(lambda: _files_if_any(session, source), InputError, unreadable)
    if before is None:
        raise InputError(f"{source.place}: Spark finds no such {source.what}")
    if not before[0]:
        unknown = "Spark names no files, so a change would go unnoticed"
        raise InputError(f"{source.place}: {'holds no file' if source.parquet else unknown}")

    def unchanged() -> None:
        now = guarded(
            lambda: _files(session, source), DataError, "the survey's files cannot be listed again"
        )
        if now != before:
            raise DataError("the survey's files changed while they were read: run again")

    if not guarded(lambda: _viewed(session, source), InputError, unreadable):
        raise DataError("a column stands twice in the survey table")
    return ibis.pyspark.connect(session).table(VIEW), unchanged


def _frame(session: SparkSession, source: SparkSource) -> DataFrame:
    if source.parquet:
        return session.read.parquet(literal(source.parquet), mergeSchema="true", **EVERY_FILE)
    return session.table(source.place)


def _viewed(session: SparkSession, source: SparkSource) -> bool:
    """Give the survey its name in the session; False where two of its columns have one name."""
    from pyspark.errors import AnalysisException

    try:
        _frame(session, source).createOrReplaceTempView(VIEW)
    except AnalysisException as error:
        if error.getErrorClass() != "COLUMN_ALREADY_EXISTS":
            raise
        return False
    return True


def _files_if_any(session: SparkSession, source: SparkSource) -> tuple[Any, ...] | None:
    """The files; None where there is nothing at the place."""
    from pyspark.errors import AnalysisException

    try:
        return _files(session, source)
    except AnalysisException as error:
        if error.getErrorClass() not in MISSING:
            raise
        return None


def _files(session: SparkSession, source: SparkSource) -> tuple[Any, ...]:
    """How many files there are, and a digest of their names, lengths and times of modification."""
    from pyspark.sql import functions

    files = [literal(source.parquet)] if source.parquet else _files_of_table(session, source.place)
    if not files:
        return (0,)
    listed = session.read.format("binaryFile").options(**EVERY_FILE).load(files)
    # Without their content, which is then not read.
    digest = functions.xxhash64("path", "length", "modificationTime")
    return tuple(listed.select(functions.count("*"), functions.bit_xor(digest)).collect()[0])


def _files_of_table(session: SparkSession, table: str) -> list[str]:
    """Paths as Spark takes them: neither encoded as a URL nor with a pattern in them."""
    session.catalog.refreshTable(table)
    return [literal(unquote(file)) for file in session.table(table).inputFiles()]


def literal(path: str) -> str:
    """A path in which Spark finds no pattern."""
    return re.sub(r"([\[\]{}*?\\])", r"\\\1", path)
