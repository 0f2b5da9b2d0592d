"""One survey has one name in the ledger, however a plan spells the way to it."""

import json
import os
from pathlib import Path

import pyarrow as pa
import pytest

from dpcore.errors import BudgetError, InputError
from schemas.survey.source import PostgreSQLSource, SparkSource, TableSource
from tasks.ledger import Ledger
from tasks.survey.memory import MemoryTable
from tasks.survey.naming import names_of
from tasks.workplace.home import ledger_url
from tests.bare import leave_out_audits, release, small_plan
from tests.tasks.ledger.test_postgresql import fresh_url

FILE = "survey.parquet"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / FILE).write_bytes(b"PAR1")
    (folder / "other.parquet").write_bytes(b"PAR1")
    (folder / "link.parquet").symlink_to(FILE)
    (folder / "hard.parquet").hardlink_to(folder / FILE)
    (tmp_path / "alias").symlink_to(folder)
    monkeypatch.chdir(folder)
    return folder


def spellings(folder: Path) -> list:
    spark = [f"file://{folder}/{FILE}", str(folder / FILE), str(folder), f"{folder}/", "."]
    return [
        FILE,
        f"./{FILE}",
        f"../data//{FILE}",
        str(folder / FILE),
        str(folder.parent / "alias" / FILE),
        "link.parquet",
        "hard.parquet",
        *(SparkSource(spark="local[2]", parquet=path) for path in spark),
        SparkSource(spark="yarn", parquet=str(folder / FILE)),
    ]


def test_files_links_and_folders_are_the_survey_that_they_lead_to(folder):
    (known,) = names_of(FILE)
    for source in spellings(folder):
        assert known in names_of(source, [known]), source
    assert names_of("other.parquet", [known]) == [
        json.dumps(["file", str(folder / "other.parquet")])
    ]


def test_a_table_of_a_database_file_has_no_case_and_is_not_another_table(folder):
    (known,) = names_of(TableSource(database=FILE, table="Persons"))
    for database in (f"./{FILE}", "link.parquet", "hard.parquet"):
        assert known in names_of(TableSource(database=database, table="PERSONS"), [known])
    assert known not in names_of(TableSource(database=FILE, table="homes"), [known])


@pytest.mark.parametrize(
    ("path", "same"),
    [
        ("s3://Bucket/survey/", True),
        ("s3a://bucket/x/../survey", True),
        ("s3a://bucket/s%75rvey", True),
        ("s3a://bucket/survey/part-0.parquet", True),
        ("s3a://bucket/survey2", False),
        ("hdfs://bucket/survey", False),
    ],
)
def test_addresses_of_stores_have_one_spelling(path, same):
    (known,) = names_of(SparkSource(spark="yarn", parquet="s3a://bucket/survey"))
    assert (known in names_of(SparkSource(spark="local[1]", parquet=path), [known])) == same


def test_a_table_of_spark_s_catalogue_is_the_same_from_every_master():
    (known,) = names_of(SparkSource(spark="yarn", table="survey.persons"))
    other = SparkSource(spark="local[2]", table="spark_catalog.Survey.PERSONS")
    assert names_of(other, [known]) == [known]


@pytest.mark.slow
def test_a_database_is_named_by_its_server_and_not_by_its_address(tmp_path, monkeypatch):
    url = fresh_url("postgresql", tmp_path)
    port, database = url.rpartition(":")[2].split("/")
    login = url.partition("@")[0]
    password = login.rpartition(":")[2]
    monkeypatch.setenv("PGPASSWORD", password)
    (known,) = names_of(_source(monkeypatch, url))
    assert password not in known
    for same in (
        f"{login}@localhost:{port}/{database}",
        f"postgres://ledger@127.0.0.1:{port}/{database}?application_name=x",
        f"postgresql:///{database}?host=127.0.0.1&port={port}&user=ledger",
    ):
        assert names_of(_source(monkeypatch, same)) == [known]
    other = fresh_url("postgresql", tmp_path)
    assert names_of(_source(monkeypatch, other)) != [known]


def _source(monkeypatch: pytest.MonkeyPatch, url: str) -> PostgreSQLSource:
    monkeypatch.setenv("ANY_URL", url)
    return PostgreSQLSource(postgresql="env:ANY_URL", table="public.persons")


@pytest.mark.slow
@pytest.mark.parametrize("alias", ["./survey.parquet", "link.parquet"])
def test_a_second_dataset_over_a_survey_is_refused_before_it_is_read(
    tmp_path, own_home, monkeypatch, alias
):
    leave_out_audits(monkeypatch.setattr)
    plan = small_plan(tmp_path)
    (tmp_path / "link.parquet").symlink_to("survey.parquet")
    monkeypatch.chdir(tmp_path)
    release(plan, "r1", tmp_path / "out")
    monkeypatch.setattr("flows.course.ingest_survey", None)
    evil = {"dataset": "evil", "source": alias, "budget.granted.alpha": "1000"}
    with pytest.raises(BudgetError, match="belongs to the dataset 'survey'"):
        release(plan, "r2", tmp_path / "out", **evil)
    assert Ledger(ledger_url()).datasets() == ["survey"]


@pytest.mark.slow
def test_a_retry_may_read_another_file_only_of_its_own_dataset(tmp_path, own_home, monkeypatch):
    leave_out_audits(monkeypatch.setattr)
    plan = small_plan(tmp_path)
    os.link(tmp_path / "survey.parquet", tmp_path / "again.parquet")
    release(plan, "r1", tmp_path / "out", source=str(tmp_path / "survey.parquet"))
    release(plan, "r2", tmp_path / "out", source=str(tmp_path / "again.parquet"))
    assert set(Ledger(ledger_url()).sources().values()) == {"survey"}


def test_a_table_in_memory_is_refused_where_the_ledger_is_shared(tmp_path, own_home, monkeypatch):
    from schemas.plan import load_plan
    from tasks.budget.charge import check_survey

    plan = load_plan(small_plan(tmp_path))
    assert names_of(MemoryTable(pa.table({"age": [1]}))) == []
    check_survey.fn(plan, [])
    Ledger(ledger_url()).mark_served()
    with pytest.raises(InputError, match="write it to a file"):
        check_survey.fn(plan, [])
