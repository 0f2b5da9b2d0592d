"""A survey that stays in PostgreSQL: what DuckDB says of a copy, from one snapshot, without a copy."""

from dataclasses import replace

import ibis
import pyarrow as pa
import pytest

from dpcore.domain.domain import Domain
from dpcore.errors import DataError, InputError
from schemas.survey.columns import made_total
from schemas.survey.dates import PartOfDate
from schemas.survey.source import PostgreSQLSource
from schemas.survey.unit import COUNT, Weights
from tasks.survey.engines.postgresql import open_postgresql
from tasks.survey.reading import held_open
from tasks.survey.tally import Counting, tallies
from tasks.survey.validate import validate
from tests.tasks.ledger.test_postgresql import PASSWORD, fresh_url
from tests.tasks.survey import test_forms as forms
from tests.tasks.survey.engines.agreement import (
    ADDED,
    SECRETS,
    cases,
    embedded,
    faulty_table,
    outcome,
    settled,
    settled_here,
)
from tests.tasks.survey.tables import column

pytestmark = pytest.mark.slow

SOURCE = PostgreSQLSource(postgresql="env:SURVEY_DATABASE", table="public.survey")
AGE = {"age": column("integer", bounds=(0, 99))}
YEAR = column("integer", bounds=(1900, 2100), **{"from": {"column": "x", "part": "year"}})


@pytest.fixture
def database(tmp_path, monkeypatch):
    """A connection that may write, to a database that a plan can name."""
    psycopg = pytest.importorskip("psycopg")
    url = fresh_url("postgresql", tmp_path)
    monkeypatch.setenv("SURVEY_DATABASE", url)
    with psycopg.connect(url, autocommit=True) as connection:
        yield connection


@pytest.mark.parametrize("name", cases())
def test_refusals_and_tallies_are_those_of_duckdb(name, database, tmp_path):
    table, columns, rows, domains = case = cases()[name]
    ibis.postgres.from_connection(database).create_table("survey", table)
    expected = embedded(case, tmp_path)
    assert (
        outcome(lambda: open_postgresql(SOURCE, columns, rows), columns, rows, domains) == expected
    )
    assert expected


@pytest.mark.parametrize("invalid", ["clamp", "own-cell", "drop"])
def test_values_that_are_not_valid_count_as_in_duckdb(invalid, database, tmp_path):
    ibis.postgres.from_connection(database).create_table("survey", faulty_table())
    found = settled(lambda columns: open_postgresql(SOURCE, columns, 7, ADDED), invalid)
    assert found == settled_here(invalid, tmp_path)


def test_counts_are_added_up_in_the_engine(database):
    read = {**AGE, "n": COUNT}
    table = pa.table({"age": [30, 40, 30], "n": [2, 5, 7]})
    ibis.postgres.from_connection(database).create_table("survey", table)
    survey = open_postgresql(SOURCE, read, 14, counts="n")
    with held_open(survey):
        (tally,) = tallies(
            survey, [Domain((AGE["age"].axis("age"),))], Counting(rows=14, counts="n")
        )
        assert (tally.cells.tolist(), tally.counts.tolist()) == ([30, 40], [9, 5])
    database.execute("UPDATE survey SET n = NULL WHERE age = 40")
    survey = open_postgresql(SOURCE, read, 9, counts="n")
    with held_open(survey), pytest.raises(DataError, match="column 'n', counts: 1 row"):
        validate(survey, read)


def test_what_changes_meanwhile_is_not_seen(database):
    database.execute("CREATE TABLE survey AS SELECT 7 AS age FROM generate_series(1, 5)")
    domain = Domain((AGE["age"].axis("age"),))
    session = open_postgresql(SOURCE, AGE, 5)
    with held_open(session):
        validate(session, AGE)
        database.execute("UPDATE survey SET age = 987654321")
        database.execute("INSERT INTO survey VALUES (8)")
        validate(session, AGE)
        (found,) = tallies(session, [domain], Counting(rows=5))
        assert (found.cells.tolist(), found.counts.tolist()) == ([7], [5])
    assert session.table.get_backend().con.closed


def test_the_session_can_write_nothing(database):
    database.execute("CREATE TABLE survey AS SELECT 7 AS age")
    session = open_postgresql(SOURCE, AGE, 1)
    with held_open(session):
        for statement in ("DELETE FROM public.survey", "CREATE TEMPORARY TABLE t (x int)"):
            with pytest.raises(Exception, match="read-only transaction"):
                session.table.get_backend().raw_sql(statement)
            session.table.get_backend().con.rollback()


def test_numbers_at_the_ends_of_what_the_engine_computes_stop_no_query(database):
    weights = Weights(column="w", largest="4", step="2", total=8)
    number = column("continuous", bounds=(0.0, 100.0), grid=64, nullable=True)
    columns = {"x": made_total(number, "own-cell"), "w": made_total(weights.read, "own-cell")}
    database.execute(
        "CREATE TABLE survey AS SELECT x::float8, w::float8 FROM (VALUES ('5e-324', '1.7e308'),"
        " ('1e-300', '5e-324'), ('50', '2'), ('-5e-324', '0')) AS t(x, w)"
    )
    domain = Domain((columns["x"].axis("x"),))
    with held_open(open_postgresql(SOURCE, columns, 4)) as session:
        how = Counting(rows=4, adjacency=ADDED, columns=columns, invalid="own-cell")
        (plain,) = tallies(session, [domain], how)
        (weighed,) = tallies(session, [domain], replace(how, weights=weights))
    assert dict(zip(plain.cells.tolist(), plain.counts.tolist(), strict=True)) == {
        0: 2,
        32: 1,
        64: 1,
    }
    assert dict(zip(weighed.cells.tolist(), weighed.counts.tolist(), strict=True)) == {0: 2, 32: 1}


@pytest.mark.parametrize("kind", ["date", "timestamp", "timestamptz"])
def test_dates_without_parts_are_counted_and_stop_no_query(kind, database):
    part = {"column": "on", "part": "year"}
    columns = {"year": column("integer", bounds=(1, 9999), nullable=True, **{"from": part})}
    listed = ["infinity", "-infinity", "0044-03-15 BC", "10000-01-02", "250000-01-01", "2026-11-22"]
    rows = ", ".join(f"('{written}'::{kind})" for written in listed)
    database.execute(f'CREATE TABLE survey AS SELECT * FROM (VALUES {rows}, (NULL)) AS t("on")')
    with held_open(open_postgresql(SOURCE, columns, 7)) as session:
        with pytest.raises(DataError, match="'year', type: 5 rows"):
            validate(session, columns)
        (tally,) = tallies(
            session,
            [Domain((columns["year"].axis("year"),))],
            Counting(rows=7, adjacency=ADDED, invalid="clamp"),
        )
    assert (tally.cells.tolist(), tally.counts.tolist()) == ([2025, 9999], [1, 6])


@pytest.mark.parametrize(
    ("of", "kind"),
    [
        (column("integer", bounds=(0, 9)), "numeric"),
        (column("integer", bounds=(0, 9)), "text"),
        (column("continuous", bounds=(0.0, 9.0)), "numeric"),
        (column("categorical", categories=["a"]), "character"),
        (column("categorical", categories=["a"]), "mine"),
        (column("categorical", categories=[True]), "integer"),
        (YEAR, "text"),
        (YEAR.model_copy(update={"from_": PartOfDate(column="x", part="hour")}), "date"),
    ],
)
def test_a_type_that_does_not_fit_is_refused_and_not_converted(of, kind, database):
    database.execute("CREATE DOMAIN mine AS text")
    database.execute(f"CREATE TABLE survey (x {kind})")
    with pytest.raises(DataError, match=r"column 'x', type: .* in the engine; the plan"):
        open_postgresql(SOURCE, {"x": of}, 1)


def test_a_table_gives_the_tally_of_its_other_forms_whatever_its_collation(database, tmp_path):
    database.execute(
        "CREATE COLLATION loose (provider = icu, locale = 'und-u-ks-level1', deterministic = false)"
    )
    text = 'text COLLATE "loose"'
    database.execute(
        f"CREATE TABLE survey (person {text}, digit {text}, name {text}, age int, amount float8,"
        " pay float8, works bool, day date)"
    )
    rows = [(str(p), d and str(d), *r) for p, d, *r in zip(*forms.TABLE.values(), strict=True)]
    with database.cursor() as cursor:
        cursor.executemany("INSERT INTO survey VALUES (%s, %s, %s, %s, %s, %s, %s, %s)", rows)
    for number, (rule, unit, _) in enumerate(forms.SOME):
        (folder := tmp_path / str(number)).mkdir()
        plan = forms.plan_of(rule, unit)
        source = forms.parquet(forms.arrow(forms.TABLE), folder)
        session = open_postgresql(SOURCE, plan.read_columns, plan.rows, plan.adjacency)
        with held_open(session):
            assert forms.tallied(plan, session) == forms.counted(plan, source, folder / "w")


def test_an_error_of_the_engine_is_told_without_its_words(database):
    database.execute("CREATE TABLE records AS SELECT 'SECRET_7391' AS x")
    database.execute("CREATE VIEW survey AS SELECT x::integer AS age FROM records")
    with pytest.raises(DataError, match="could not be checked") as caught:
        validate(open_postgresql(SOURCE, AGE, 1), AGE)
    told = repr(caught.value)
    assert not any(secret in told for secret in SECRETS)
    assert caught.value.__context__ is None


def test_a_place_that_is_not_there_is_told_without_the_password(database, monkeypatch):
    database.execute("CREATE TABLE surveys_2024 (age int)")
    with pytest.raises(
        InputError, match=r"no table 'public\.survey'; did you mean 'public.surveys_"
    ):
        open_postgresql(SOURCE, AGE, 1)
    monkeypatch.setenv("SURVEY_DATABASE", f"postgresql://ledger:{PASSWORD}@127.0.0.1:1/x")
    with pytest.raises(InputError, match="env:SURVEY_DATABASE: the database cannot be") as caught:
        open_postgresql(SOURCE, AGE, 1)
    assert PASSWORD not in repr(caught.value)
    assert caught.value.__context__ is None
    monkeypatch.delenv("SURVEY_DATABASE")
    with pytest.raises(InputError, match="variable SURVEY_DATABASE is not set"):
        open_postgresql(SOURCE, AGE, 1)
