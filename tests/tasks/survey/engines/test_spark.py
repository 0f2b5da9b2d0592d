"""A survey that stays on Spark: what DuckDB says of a copy; files that change are refused."""

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpcore.domain.domain import Domain
from dpcore.errors import DataError, InputError
from schemas.survey.source import SparkSource
from schemas.survey.unit import COUNT
from tasks.survey.engines.spark import open_spark
from tasks.survey.linked import wide_records
from tasks.survey.reading import held_open
from tasks.survey.tally import Counting, tallies
from tasks.survey.validate import validate
from tests.bare import leave_out_audits, release, small_plan
from tests.tasks.conftest import START_BRIEFLY
from tests.tasks.survey import test_forms as forms
from tests.tasks.survey import test_linked as linked
from tests.tasks.survey.engines.agreement import (
    ADDED,
    cases,
    embedded,
    faulty_table,
    outcome,
    settled,
    settled_here,
)
from tests.tasks.survey.tables import column

pytestmark = pytest.mark.slow

AGE = {"age": column("integer", bounds=(0, 99))}


def at(spark, folder: Path) -> SparkSource:
    return SparkSource(spark=spark._session.sparkContext.master, parquet=str(folder))


def written(folder: Path, *parts: pa.Table) -> Path:
    folder.mkdir(exist_ok=True)
    for i, part in enumerate(parts):
        pq.write_table(part, folder / f"{i}.parquet")
    return folder


@pytest.mark.parametrize(
    "name",
    [
        "every kind of axis",
        "every fault",
        "parts of dates",
        "what is written otherwise",
    ],
)
def test_refusals_and_tallies_are_those_of_duckdb(name, spark, tmp_path):
    table, columns, rows, domains = cases()[name]
    domains = domains[-3:]  # a query takes seconds
    expected = embedded((table, columns, rows, domains), tmp_path)
    half = table.num_rows // 2
    source = at(spark, written(tmp_path / "parts", table[:half], table[half:]))
    assert outcome(lambda: open_spark(source, columns, rows), columns, rows, domains) == expected
    assert expected


def test_values_that_are_not_valid_count_as_in_duckdb(spark, tmp_path):
    """Those of a table with the rule own-cell are among its other forms."""
    invalid = "clamp"
    source = at(spark, written(tmp_path / "parts", faulty_table()))
    found = settled(lambda columns: open_spark(source, columns, 7, ADDED), invalid)
    assert found == settled_here(invalid, tmp_path)


def test_a_table_gives_the_tally_of_its_other_forms(spark, tmp_path):
    text = pa.string()
    table = forms.arrow(forms.TABLE, person=text, digit=text, amount=pa.float64())
    days = forms.on_days(forms.TABLE, pa.date32())["day"]
    table = table.set_column(table.column_names.index("day"), "day", days)
    plan = forms.plan_of("own-cell", True)
    source = at(spark, written(tmp_path / "parts", table[:4], table[4:]))
    session = open_spark(source, plan.read_columns, plan.rows, plan.adjacency)
    with held_open(session):
        found = forms.tallied(plan, session)
    first = forms.parquet(forms.arrow(forms.TABLE), tmp_path)
    assert found == forms.counted(plan, first, tmp_path / "w")


def test_counts_are_added_up_in_the_engine(spark, tmp_path):
    read, domain = {**AGE, "n": COUNT}, Domain((AGE["age"].axis("age"),))
    table = pa.table({"age": [7, 8, 7], "n": [2, 5, 2**40]})
    session = open_spark(at(spark, written(tmp_path / "a", table)), read, 7 + 2**40, counts="n")
    with held_open(session):
        (found,) = tallies(session, [domain], Counting(rows=7 + 2**40, counts="n"))
    assert (found.cells.tolist(), found.counts.tolist()) == ([7, 8], [2 + 2**40, 5])
    broken = at(spark, written(tmp_path / "b", pa.table({"age": [7, 8], "n": [2, -5]})))
    session = open_spark(broken, read, 2, counts="n")
    with held_open(session), pytest.raises(DataError, match="column 'n', counts: 1 row"):
        validate(session, read)


@pytest.fixture
def catalogued(spark, tmp_path):
    """A table of the catalogue, whose files have names that are patterns; its source and folder."""
    folder = written(tmp_path / "a b%20", pa.table({"age": [7, 8]}), pa.table({"age": [7, 9]}))
    (folder / "0.parquet").rename(folder / "[0]*.parquet")
    spark._session.sql("CREATE DATABASE IF NOT EXISTS persons")
    spark._session.sql(f"CREATE TABLE persons.survey USING parquet LOCATION '{folder}'")
    yield SparkSource(spark=spark._session.sparkContext.master, table="persons.survey"), folder
    spark._session.sql("DROP TABLE persons.survey")


def counted(session):
    with held_open(session):
        validate(session, AGE)
        (found,) = tallies(session, [Domain((AGE["age"].axis("age"),))], Counting(rows=4))
    return dict(zip(found.cells.tolist(), found.counts.tolist(), strict=True))


def test_a_table_of_the_catalogue_is_tallied_where_it_is(spark, catalogued):
    source, _ = catalogued
    assert counted(open_spark(source, AGE, 4)) == {7: 2, 8: 1, 9: 1}
    spark._session.sql("CREATE VIEW persons.old AS SELECT age + 1 AS age FROM persons.survey")
    try:
        found = counted(open_spark(source.model_copy(update={"table": "persons.old"}), AGE, 4))
    finally:
        spark._session.sql("DROP VIEW persons.old")
    assert found == {8: 2, 9: 1, 10: 1}


def test_a_table_without_files_is_refused(spark, catalogued):
    spark._session.sql("CREATE VIEW persons.none AS SELECT 7 AS age")
    source = catalogued[0].model_copy(update={"table": "persons.none"})
    try:
        with pytest.raises(InputError, match="is not stored in files"):
            open_spark(source, AGE, 1)
    finally:
        spark._session.sql("DROP VIEW persons.none")


@pytest.mark.parametrize(("form", "change"), [("table", "more"), ("parquet", "fewer")])
def test_files_that_change_meanwhile_are_refused(change, form, spark, catalogued):
    source, folder = catalogued
    if form == "parquet":
        folder = written(folder.parent / "parts", *map(pq.read_table, folder.iterdir()))
        source = at(spark, folder)
    session = open_spark(source, AGE, 4)
    with held_open(session):
        validate(session, AGE)
        if change == "fewer":
            (folder / "1.parquet").unlink()
        else:
            pq.write_table(pa.table({"age": [9, 9]}), folder / "2.parquet")
        with pytest.raises(DataError, match=r"changed while they were read|could not be tallied"):
            tallies(session, [Domain((AGE["age"].axis("age"),))], Counting(rows=4))


def test_what_the_workers_send_does_not_grow_with_the_records(spark, tmp_path):
    """Eight bytes a record would be 1.6 MB; Spark writes down the bytes of every task's result."""
    small = sent(spark, written(tmp_path / "small", pa.table({"age": [7] * 50})), 50)
    records = pa.table({"age": [i % 100 for i in range(200_000)]})
    large = sent(spark, written(tmp_path / "large", records), 200_000)
    assert 0 < large < small + 100_000


def sent(spark, folder: Path, rows: int) -> int:
    """Bytes of all results that workers sent while a survey was validated and tallied."""
    context = spark._session.sparkContext
    (log,) = Path(context.getConf().get("spark.eventLog.dir")).iterdir()
    before = log.stat().st_size
    session = open_spark(at(spark, folder), AGE, rows)
    with held_open(session):
        validate(session, AGE)
        tallies(session, [Domain((AGE["age"].axis("age"),))], Counting(rows=rows))
    context._jsc.sc().listenerBus().waitUntilEmpty()
    with log.open() as events:
        events.seek(before)
        ended = [e for e in map(json.loads, events) if e["Event"] == "SparkListenerTaskEnd"]
    return sum(event["Task Metrics"]["Result Size"] for event in ended)


def test_a_plan_is_released_from_spark_and_its_place_is_not_published(spark, tmp_path, monkeypatch):
    leave_out_audits(monkeypatch.setattr)
    plan = small_plan(tmp_path)
    source = at(spark, tmp_path / "survey.parquet")
    asked = {"source": source.model_dump(exclude_none=True)}
    bundle = release(plan, "r1", tmp_path / "out", **asked)
    published = b"".join(file.read_bytes() for file in bundle.rglob("*") if file.is_file())
    assert len(published) > 10_000
    assert source.spark.encode() not in published
    assert b"survey.parquet" not in published


@pytest.mark.parametrize(
    ("of", "values"),
    [
        (column("integer", bounds=(0, 9)), pa.array([1.0])),
        (column("categorical", categories=[1]), pa.array([1], pa.uint64())),
    ],
)
def test_a_type_that_does_not_fit_is_refused_and_not_converted(of, values, spark, tmp_path):
    pq.write_table(pa.table({"x": values}), tmp_path / "t.parquet")
    with pytest.raises(DataError, match=r"column 'x', type: .* in the engine; the plan"):
        open_spark(at(spark, tmp_path), {"x": of}, 1)


def test_a_place_that_is_not_there_is_told(spark, tmp_path):
    (tmp_path / "text.parquet").write_text("no Parquet")
    (tmp_path / "empty").mkdir()
    twice = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["age", "age"])
    pq.write_table(twice, tmp_path / "twice.parquet")
    master = spark._session.sparkContext.master
    for source, told in [
        (at(spark, tmp_path / "nowhere"), "nowhere: Spark does not find this file or folder$"),
        (SparkSource(spark=master, table="no.where"), "no.where: Spark does not find this table$"),
        (at(spark, tmp_path / "text.parquet"), "cannot be read by Spark as Parquet files"),
        (at(spark, tmp_path / "empty"), "empty: has no files$"),
        (
            at(spark, tmp_path / "twice.parquet"),
            "^the survey table has two columns of the same name",
        ),
    ]:
        with pytest.raises(InputError, match=told) as caught:
            open_spark(source, AGE, 1)
        assert caught.value.__context__ is None
    with pytest.raises(InputError, match="connected to another Spark master"):
        open_spark(SparkSource(spark="spark://127.0.0.1:1", parquet="x"), AGE, 1)


OWN = """
import sys
from pydantic import TypeAdapter
from pyspark.sql import SparkSession
from schemas.survey.columns import Column
from schemas.survey.source import SparkSource
from tasks.survey.engines.spark import open_spark
from tasks.survey.linked import wide_records
from tasks.survey.reading import held_open
from tasks.survey.validate import validate

age = {"age": TypeAdapter(Column).validate_python({"type": "integer", "bounds": (0, 9)})}
survey = open_spark(SparkSource(spark="local[1]", parquet=sys.argv[1]), age, 2)
try:
    with held_open(survey):
        validate(survey, age)
finally:
    assert SparkSession.getActiveSession() is None
"""


def test_a_session_of_its_own_is_stopped_and_tells_no_value(tmp_path):
    pq.write_table(pa.table({"age": pa.array([7, 987654321])}), tmp_path / "t.parquet")
    run = subprocess.run(
        [sys.executable, "-c", OWN, str(tmp_path / "t.parquet")],
        env=os.environ | START_BRIEFLY,
        capture_output=True,
        text=True,
    )
    assert run.stderr.startswith("Traceback"), "Spark says something first"
    assert "'age', bounds: 1 row outside the bounds" in run.stderr
    assert "987654321" not in run.stdout + run.stderr


def test_wide_records_are_those_that_duckdb_makes(spark, tmp_path):
    records = linked.made_up()
    frame = pd.DataFrame(records, columns=["home", *linked.COLUMNS]).astype({"owns": "boolean"})
    source = at(spark, written(tmp_path / "parts", pa.Table.from_pandas(frame)))
    session = open_spark(source, linked.READ, 1, linked.HOMES)
    with held_open(session):
        table = wide_records(session.table, linked.TWO, linked.OLDEST)
        there = table.to_pyarrow().to_pylist()
    expected = linked.oracle(records, linked.TWO, linked.OLDEST)
    assert Counter(tuple(record.items()) for record in there) == expected
