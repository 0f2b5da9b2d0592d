"""Where the survey is may be written in several forms, none of which holds a secret."""

import pytest

from dpcore.errors import InputError, PlanError
from schemas.plan import load_plan
from schemas.survey.source import PostgreSQLSource, SparkSource, TableSource
from tests.conftest import write_plan

SECRET = "hush-hush"


@pytest.mark.parametrize(
    ("source", "says"),
    [
        (
            {"postgresql": f"postgresql://me:{SECRET}@h/d", "table": "s.t"},
            "may not contain a password",
        ),
        (
            {"postgresql": f"postgres://h/d?password={SECRET}", "table": "s.t"},
            "may not contain a password",
        ),
        ({"postgresql": f"host=h password={SECRET}", "table": "s.t"}, "must be env:NAME or a URL"),
        ({"postgresql": f"mysql://me:{SECRET}@h/d", "table": "s.t"}, "must be env:NAME or a URL"),
        ({"postgresql": f"postgresql://[{SECRET}/d", "table": "s.t"}, "cannot be read as a URL"),
        (f"postgresql://me:{SECRET}@h/d", "source: write a database as {postgresql: URL, "),
        ({"postgresql": "env:DB"}, "source.table: missing"),
        (
            {"spark": "spark://h:1", "parquet": f"s3a://id:{SECRET}@b/x"},
            "may not contain an access key",
        ),
        ({"spark": "spark://h:1", "parquet": "x", "table": "s.t"}, "needs either parquet (a path)"),
        ({"spark": "spark://h:1"}, "needs either parquet (a path) or table"),
        ({"spark": "h:1", "parquet": "x"}, "source.spark: must be spark://HOST:PORT, local[2]"),
        ("s3://bucket/x.parquet", "remote files as {spark: MASTER, parquet: URL}"),
        ({"table": "s.t"}, "source: must be a file, "),
    ],
)
def test_a_source_that_is_none_or_holds_a_secret_is_refused(source, says, plan_document, tmp_path):
    plan_document["source"] = source
    with pytest.raises(PlanError) as caught:
        load_plan(write_plan(tmp_path, plan_document))
    assert says in str(caught.value)
    assert SECRET not in str(caught.value)
    assert len(str(caught.value).splitlines()) == 2


@pytest.mark.slow
def test_only_paths_are_relative_to_the_plan(plan_document, tmp_path):
    def loaded(source: object) -> object:
        plan_document["source"] = source
        return load_plan(write_plan(tmp_path, plan_document)).source

    assert loaded("t.parquet") == str(tmp_path / "t.parquet")
    assert loaded("package://p/t.csv") == "package://p/t.csv"
    table = TableSource(database=str(tmp_path / "d.duckdb"), table="t")
    assert loaded({"database": "d.duckdb", "table": "t"}) == table
    cluster = {"spark": "local[1]", "parquet": "x"}
    assert loaded(cluster) == SparkSource(spark="local[1]", parquet=str(tmp_path / "x"))
    for elsewhere in ({"parquet": "s3a://x"}, {"table": "s.t"}):
        assert loaded({"spark": "yarn", **elsewhere}) == SparkSource(spark="yarn", **elsewhere)
    place = {"postgresql": "postgresql://me@h/d", "table": "s.t"}
    assert loaded(place) == PostgreSQLSource(**place)


def test_the_variable_is_read_when_the_survey_is(monkeypatch):
    source = PostgreSQLSource(postgresql="env:DB", table="s.t")
    monkeypatch.delenv("DB", raising=False)
    with pytest.raises(InputError, match="the environment variable DB is not set"):
        source.url()
    monkeypatch.setenv("DB", f"postgresql://me:{SECRET}@h/d")
    assert source.url() == f"postgresql://me:{SECRET}@h/d"
    assert SECRET not in repr(source)


def test_the_place_of_the_survey_is_no_part_of_the_digest(plan_document, tmp_path):
    copied = load_plan(write_plan(tmp_path, plan_document)).digest
    plan_document["source"] = {"postgresql": "env:DB", "table": "s.t"}
    assert load_plan(write_plan(tmp_path, plan_document)).digest == copied
