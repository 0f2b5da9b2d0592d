"""The tally is one expression: every engine counts the same records in the same cells.

PostgreSQL is the server of the ledger's tests; Spark is a master and two workers on loopback.
"""

from __future__ import annotations

from typing import Any

import duckdb
import ibis
import pyarrow as pa
import pytest

from dpcore.domain.axes import Axis
from dpcore.domain.words import blocks
from schemas.plan.series import Periods
from schemas.survey.unit import UnitColumn
from tasks.survey.bounding import keep_periods, keep_records
from tasks.survey.cells import count_cells
from tasks.survey.private_file import connect
from tests.tasks.ledger.test_postgresql import fresh_url
from tests.tasks.survey.test_tally import AXES, COLUMNS, records, survey

pytestmark = pytest.mark.slow

BINNED = ("age bins", "children bins", "income bins", "wealth points")
DOMAINS = [tuple(COLUMNS), BINNED, ()]
PERIODS = ("region-2", "children")


@pytest.fixture(scope="module")
def typed(tmp_path_factory) -> pa.Table:
    """The survey as it is after ingest, with its awkward values."""
    frame = records(4000)
    with connect(survey(tmp_path_factory.mktemp("engines"), frame, COLUMNS)) as connection:
        return connection.sql("FROM survey").to_arrow_table()


def tallied(table: Any, axes: tuple[Axis, ...]) -> list[tuple[int | None, ...]]:
    """The words of each occupied cell, and its records."""
    return [tuple(row.values()) for row in count_cells(table, axes).to_pyarrow().to_pylist()]


def assert_agrees(table: Any, typed: pa.Table) -> None:
    """Value by value with DuckDB, which the other tests hold against numpy."""
    embedded = ibis.duckdb.from_connection(duckdb.connect()).create_table("survey", typed)
    for names in DOMAINS:
        axes = tuple(AXES[name] for name in names)
        assert tallied(table, axes) == tallied(embedded, axes), names
    axes = tuple(AXES[name] for name in COLUMNS)
    assert len(blocks([axis.size for axis in axes * 4])) > 1
    assert tallied(table, axes * 4) == tallied(embedded, axes * 4)
    assert tallied(kept(table), axes) == tallied(kept(embedded), axes)
    for name in PERIODS:
        assert tallied(kept(table, name), axes) == tallied(kept(embedded, name), axes), name


def kept(table: Any, period: str | None = None) -> Any:
    """At most three records of each age: a unit with nulls, doubles and truth values beside it.

    With ``period``, in each of the first two values of that column.
    """
    named, unit = (
        table.mutate(unit=table["age"].cast("string")),
        UnitColumn(column="unit", max_rows=3),
    )
    if period:
        named = keep_periods(named, unit, Periods(AXES[period], 2), "clamp")
    return keep_records(named, unit)


def test_postgresql_counts_what_duckdb_counts(typed, tmp_path):
    table = ibis.connect(fresh_url("postgresql", tmp_path)).create_table("survey", typed)
    assert_agrees(table, typed)


def test_spark_workers_count_what_duckdb_counts(typed, spark, tmp_path):
    duckdb.from_arrow(typed).write_parquet(str(tmp_path / "survey.parquet"))
    assert_agrees(spark.read_parquet(str(tmp_path / "survey.parquet"), table_name="survey"), typed)
