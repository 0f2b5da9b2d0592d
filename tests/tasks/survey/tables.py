"""Made-up columns and tables, and what no error of a private step may hold."""

import traceback
from pathlib import Path

import duckdb
import ibis
import pandas as pd
import pyarrow as pa
import pytest
from pydantic import TypeAdapter

from schemas.survey.columns import Column
from schemas.survey.source import PostgreSQLSource
from tests.tasks.ledger.test_postgresql import fresh_url

SECRETS = ("SECRET_7391", "987654321")

AWKWARD = [
    "it's",
    'say "x"',
    "'; DROP TABLE survey; --",
    "100 %",
    "%s {0} $1 ?",
    "Zürich 🌲",
    "\\n",
]
AWKWARD += [" ", "line\nbreak", "NULL"]


def column(type: str, **rest: object) -> Column:
    return TypeAdapter(Column).validate_python({"type": type, **rest})


def write(path: Path, select: str) -> str:
    """The answer of a query as a file."""
    duckdb.execute(f"COPY ({select}) TO '{path}'")
    return str(path)


def csv(path: Path, text: str) -> str:
    path.write_text(text, encoding="utf-8")
    return str(path)


def in_postgresql(frame: pd.DataFrame, folder: Path, patch: pytest.MonkeyPatch) -> PostgreSQLSource:
    """The frame as a table of a server, as a plan names it."""
    url = fresh_url("postgresql", folder)
    patch.setenv("SURVEY_DATABASE", url)
    ibis.connect(url).create_table("survey", pa.Table.from_pandas(frame, preserve_index=False))
    return PostgreSQLSource(postgresql="env:SURVEY_DATABASE", table="public.survey")


def assert_tells_nothing(error: BaseException) -> None:
    told = "".join(traceback.format_exception(error)) + repr(error) + str(error.args)
    assert error.__cause__ is None
    assert error.__context__ is None
    assert not any(secret in told for secret in SECRETS)
