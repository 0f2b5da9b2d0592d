"""The tally is one expression: every engine counts the same records in the same cells.

PostgreSQL is the server of the ledger's tests; Spark is a standalone master with two workers on
loopback, started for these tests and stopped after.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import duckdb
import ibis
import pyarrow as pa
import pytest

from dpcore.domain import Axis
from schemas.unit import UnitColumn
from tasks.bounding import bounded
from tasks.cells import count_cells
from tasks.survey import connect
from tests.tasks.test_ledger_postgresql import fresh_url
from tests.tasks.test_tally import AXES, COLUMNS, records, survey

pytestmark = pytest.mark.slow

BINNED = ("age bins", "children bins", "income bins", "wealth bins")
DOMAINS = [tuple(COLUMNS), BINNED, ()]


@pytest.fixture(scope="module")
def typed(tmp_path_factory) -> pa.Table:
    """The survey as it is after ingest, with its awkward values."""
    frame = records(4000)
    with connect(survey(tmp_path_factory.mktemp("engines"), frame, COLUMNS)) as connection:
        return connection.sql("FROM survey").to_arrow_table()


def tallied(table: Any, axes: tuple[Axis, ...]) -> list[tuple[int | None, int]]:
    found = count_cells(table, axes).to_pyarrow()
    return list(zip(found["cell"].to_pylist(), found["records"].to_pylist(), strict=True))


def assert_agrees(table: Any, typed: pa.Table) -> None:
    """Value by value with DuckDB, which the other tests hold against numpy."""
    embedded = ibis.duckdb.from_connection(duckdb.connect()).create_table("survey", typed)
    for names in DOMAINS:
        axes = tuple(AXES[name] for name in names)
        assert tallied(table, axes) == tallied(embedded, axes), names
    axes = tuple(AXES[name] for name in COLUMNS)
    assert tallied(kept(table), axes) == tallied(kept(embedded), axes)


def kept(table: Any) -> Any:
    """At most three records of each age: a unit with nulls, doubles and truth values beside it."""
    named = table.mutate(unit=table["age"].cast("string"))
    return bounded(named, UnitColumn(column="unit", max_rows=3))


def test_postgresql_counts_what_duckdb_counts(typed, tmp_path):
    table = ibis.connect(fresh_url("postgresql", tmp_path)).create_table("survey", typed)
    assert_agrees(table, typed)


def test_spark_workers_count_what_duckdb_counts(typed, spark, tmp_path):
    duckdb.from_arrow(typed).write_parquet(str(tmp_path / "survey.parquet"))
    assert_agrees(spark.read_parquet(str(tmp_path / "survey.parquet"), table_name="survey"), typed)


@pytest.fixture(scope="module")
def spark(tmp_path_factory) -> Iterator[Any]:
    """Ibis on a session of a master and two workers, each a process of its own."""
    pyspark = pytest.importorskip("pyspark")
    folder = tmp_path_factory.mktemp("spark")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    master = f"spark://127.0.0.1:{port}"
    program = [str(Path(pyspark.__file__).parent / "bin" / "spark-class")]
    place = ["--host", "127.0.0.1", "--webui-port", "0"]
    deploy = "org.apache.spark.deploy"
    worker = [f"{deploy}.worker.Worker", *place, "--cores", "1", "--memory", "1g", master]
    environment = os.environ | {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    with ExitStack() as stack:
        log = stack.enter_context((folder / "log").open("w"))
        commands = [[f"{deploy}.master.Master", *place, "--port", str(port)], worker, worker]
        for command in commands:
            process = subprocess.Popen(
                [*program, *command], cwd=folder, env=environment, stdout=log, stderr=log
            )
            stack.callback(process.wait)
            stack.callback(process.terminate)
        await_workers(folder / "log")
        builder = pyspark.sql.SparkSession.builder.master(master)
        for key, value in {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.executor.memory": "512m",
            "spark.sql.shuffle.partitions": "2",
            "spark.ui.enabled": "false",
            "spark.sql.warehouse.dir": str(folder / "warehouse"),
        }.items():
            builder = builder.config(key, value)
        session = builder.getOrCreate()
        stack.callback(session.stop)
        yield ibis.pyspark.connect(session)


def await_workers(log: Path) -> None:
    deadline = time.monotonic() + 180
    while log.read_text().count("Successfully registered with master") < 2:
        if time.monotonic() > deadline:
            raise RuntimeError(log.read_text())
        time.sleep(0.5)
