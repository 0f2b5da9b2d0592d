"""The names of a survey in the ledger, which do not depend on the plan: one survey has one budget.

    survey.parquet, ./survey.parquet, a link to it     ["file", "/data/survey.parquet"]
    {database: survey.duckdb, table: Persons}          ["file", "/data/survey.duckdb", "persons"]
    {postgresql: env:ANY_URL, table: s.persons}        ["postgresql", CLUSTER, DATABASE, "s.persons"]
    {spark: yarn, parquet: s3a://bucket/x/}            ["s3", "bucket", "/x"]
    {spark: yarn, table: survey.persons}               ["spark", "spark_catalog.survey.persons"]

A database is named by the identity that its server states, because an address can be written in many
ways.  A copy, or a view, counts as another source: people who can make one are trusted with the survey.
"""

from __future__ import annotations

import json
import os
import posixpath
from collections.abc import Collection
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urlsplit

from schemas.survey.source import PostgreSQLSource, SparkSource, TableSource
from tasks.survey.engines.postgresql import identity
from tasks.survey.memory import MemoryTable
from tasks.survey.sources import PACKAGE, find_in_package

Source = str | TableSource | PostgreSQLSource | SparkSource | MemoryTable


def names_of(source: Source, known: Collection[str] = ()) -> list[str]:
    """The source's name, and all ``known`` names of the same survey or of a part of it.

    Empty for a table in memory.  Raises ``InputError`` if a database cannot be reached.
    """
    if isinstance(source, MemoryTable):
        return []
    own = _name(source)
    others = [name for name in known if _overlap(json.loads(name), own)]
    return list(dict.fromkeys([json.dumps(own), *others]))


def _name(source: str | TableSource | PostgreSQLSource | SparkSource) -> list[str]:
    if isinstance(source, TableSource):
        return [*_file(source.database), source.table.lower()]  # DuckDB's names have no case
    if isinstance(source, PostgreSQLSource):
        return ["postgresql", *identity(source), source.table]
    if isinstance(source, str):
        return _file(str(find_in_package(source)) if source.startswith(PACKAGE) else source)
    if source.table:
        parts = source.table.lower().split(".")
        return ["spark", ".".join(["spark_catalog", *parts][-3:])]
    return _place(str(source.parquet))


def _file(path: str) -> list[str]:
    return ["file", os.path.normcase(Path(path).resolve())]


def _place(path: str) -> list[str]:
    """The name of files that Spark reads, on this machine or in a store, in one spelling."""
    url = urlsplit(path)
    if url.scheme in ("", "file"):
        return _file(unquote(url.path) if url.scheme else path)
    scheme = {"s3a": "s3", "s3n": "s3", "abfss": "abfs", "wasbs": "wasb"}.get(
        url.scheme, url.scheme
    )
    inside = posixpath.normpath(posixpath.join("/", unquote(url.path).lstrip("/")))
    return [scheme, url.netloc.lower(), inside]


def _overlap(known: list[str], own: list[str]) -> bool:
    """Whether two names denote one survey: a file under two names, or a folder and a file in it."""
    if known == own:
        return True
    if known[0] != own[0] or own[0] in ("postgresql", "spark"):
        return False
    if own[0] != "file":
        return known[1] == own[1] and _inside(known[2], own[2])
    return known[2:] == own[2:] and (_inside(known[1], own[1]) or _same_file(known[1], own[1]))


def _inside(one: str, other: str) -> bool:
    first, second = PurePosixPath(one), PurePosixPath(other)
    return first == second or first in second.parents or second in first.parents


def _same_file(one: str, other: str) -> bool:
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False  # one of them is not on this machine, or no longer
