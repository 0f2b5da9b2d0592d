"""Parts of dates are whole numbers, computed while the survey is read; what has no part is a fault."""

import datetime
import itertools

import duckdb
import pytest
from pydantic import TypeAdapter, ValidationError

from dpcore.domain.domain import Domain
from dpcore.errors import DataError
from schemas.plan import Plan, published_plan
from schemas.survey.columns import Column
from schemas.survey.dates import RANGES, PartOfDate
from schemas.survey.source import TableSource
from tasks.audit.rehearsal import rehearse_shortly
from tasks.survey.ingest import ingest
from tasks.survey.tally import Counting, tallies
from tasks.survey.validate import validate
from tests.schemas.refusals import refused
from tests.tasks.survey.tables import csv, write
from tests.tasks.survey.test_ingest import contents, faults

PARTS = {
    part: TypeAdapter(Column).validate_python(
        {
            "type": "integer",
            "bounds": [*limits],
            "from": {"column": "admitted", "part": part},
            "nullable": True,
        }
    )
    for part, limits in RANGES.items()
}
DAYS = {part: PARTS[part] for part in ("year", "month", "weekday")}


def parts(source: str, folder, columns=PARTS, rows: int = 1):
    database = ingest(source, columns, rows, folder / "work")
    return contents(database), faults(database)


@pytest.mark.parametrize("kind", ["TIMESTAMP", "TIMESTAMP_NS", "TIMESTAMPTZ", "VARCHAR"])
def test_parts_are_those_of_python_s_calendar(kind, tmp_path):
    moments = [
        datetime.datetime(year, month, day, hour, 59)
        for year, month, day, hour in itertools.product(
            (1970, 1999, 2000, 2024, 2026), (1, 2, 12), (1, 28), (0, 13, 23)
        )
    ]
    listed = ", ".join(f"('{moment}{'+00' * (kind == 'TIMESTAMPTZ')}')" for moment in moments)
    source = write(
        tmp_path / "t.parquet", f"SELECT x::{kind} AS admitted FROM (VALUES {listed}) AS t(x)"
    )
    found, failed = parts(source, tmp_path, rows=len(moments))
    assert sorted(found) == sorted((m.year, m.month, m.isoweekday(), m.hour) for m in moments)
    assert not any(failed.values())


DATES = {
    "2026-11-22": (2026, 11, 7),
    " 2026-11-22 ": (2026, 11, 7),
    "2026-11-22 17:30": (2026, 11, 7),
    "2026-11-22T17:30:00.5Z": (2026, 11, 7),
}
NO_DATES = ["22.11.2026", "2026-11", "2026-02-29", "2026-11-22 24:00", "2026-11-22T17:30:00+02:00"]
NO_DATES += ["0000-01-01", "infinity", "20261122", "SECRET_7391"]


def test_text_is_a_date_in_one_form_alone(tmp_path):
    source = csv(tmp_path / "t.csv", "\n".join(["admitted", *DATES, *NO_DATES]) + "\n")
    found, failed = parts(source, tmp_path, DAYS, len(DATES) + len(NO_DATES))
    assert found == [*DATES.values(), *[(None, None, None)] * len(NO_DATES)]
    assert failed == dict.fromkeys(DAYS, len(NO_DATES))


WITHOUT_PARTS = [
    "DATE 'infinity'",
    "TIMESTAMP '-infinity'",
    "TIMESTAMPTZ 'infinity'",
    "'infinity'::TIMESTAMP::TIMESTAMP_S",
    "DATE '0044-03-15 (BC)'",
    "DATE '10000-01-01'",
    "DATE '5881580-07-01'",
    "20200101",
    "TIME '10:00:00'",
    "INTERVAL 3 DAYS",
    "['2020-01-01']",
]


@pytest.mark.slow
def test_what_has_no_parts_is_counted_and_raises_nothing(tmp_path):
    columns = {
        f"{part}{i}": of.model_copy(update={"from_": PartOfDate(column=f"x{i}", part=part)})
        for i in range(len(WITHOUT_PARTS))
        for part, of in PARTS.items()
    }
    select = ", ".join(f"unnest([{x}, NULL]) AS x{i}" for i, x in enumerate(WITHOUT_PARTS))
    with duckdb.connect(str(tmp_path / "t.duckdb")) as connection:
        connection.execute(f"CREATE TABLE t AS SELECT {select}")
    source = TableSource(database=str(tmp_path / "t.duckdb"), table="t")
    found, failed = parts(source, tmp_path, columns, 2)
    assert found == 2 * [(None,) * len(columns)]
    assert failed == dict.fromkeys(columns, 1)


@pytest.mark.slow
def test_a_date_has_no_hour_and_a_table_without_it_is_refused(tmp_path):
    source = write(tmp_path / "t.parquet", "SELECT DATE '2026-11-22' AS admitted")
    assert parts(source, tmp_path) == ([(2026, 11, 7, None)], dict.fromkeys(DAYS, 0) | {"hour": 1})
    with pytest.raises(DataError, match=r"column 'hour', type: 1 row cannot be read"):
        validate(tmp_path / "work" / "survey.duckdb", PARTS)
    source = write(tmp_path / "t.parquet", "SELECT DATE '2026-11-22' AS discharged, 1 AS month")
    with pytest.raises(DataError, match="column 'admitted': the table lacks it"):
        parts(source, tmp_path)


@pytest.mark.slow
def test_a_year_outside_its_bounds_follows_the_rules_of_numbers(tmp_path):
    source = csv(tmp_path / "t.csv", "admitted\n1980-01-01\n2020-01-01\nnever\n\n")
    late = PARTS["year"].model_copy(update={"bounds": (2000, 2030)})
    columns = {"year": late}
    with pytest.raises(DataError) as caught:
        validate(ingest(source, columns, 4, tmp_path / "a"), columns)
    assert "'year', type: 1 row" in str(caught.value)
    assert "'year', bounds: 1 row" in str(caught.value)
    assert "null" not in str(caught.value)
    columns = {"year": late.model_copy(update={"outside": "clamp"})}
    database = ingest(source, columns, 4, tmp_path / "b")
    (tally,) = tallies(database, [Domain((late.axis("year"),))], Counting(rows=4, invalid="clamp"))
    assert dict(zip(tally.cells.tolist(), tally.counts.tolist(), strict=True)) == {
        0: 1,
        20: 1,
        31: 2,
    }


@pytest.mark.slow
@pytest.mark.parametrize("invalid", ["clamp", "own-cell", "drop"])
def test_every_rule_gives_every_record_a_cell_or_none(invalid, plan_document, tmp_path):
    """Of two surveys that differ in one record, however wrong, the tallies differ in that record."""
    plan_document |= {"invalid": invalid, "neighbours": "add-remove", "synthesis": []}
    plan_document["columns"] = {
        "month": {"type": "integer", "bounds": [1, 12], "from": {"column": "on", "part": "month"}}
    }
    plan_document["releases"] = [{"name": "months", "kind": "histogram", "columns": ["month"]}]
    plan_document["budget"] |= {
        key: {"alpha": "1", "beta": "0", "gamma": "0"} for key in ("granted", "requested")
    }
    plan = Plan.model_validate(plan_document)
    domain = plan.built["months"].domain
    found = []
    for i, last in enumerate(["2026-11-22", "0000-99-99", "x", ""]):
        source = csv(tmp_path / f"{i}.csv", f"on,n\n2026-03-01,1\n{last},1\n")
        held = ingest(source, plan.read_columns, 2, tmp_path / str(i), plan.adjacency)
        (tally,) = tallies(
            held,
            [domain],
            Counting(rows=2, adjacency=plan.adjacency, columns=plan.read_columns, invalid=invalid),
        )
        found.append(dict(zip(tally.cells.tolist(), tally.counts.tolist(), strict=True)))
    assert found[0] == {2: 1, 10: 1}
    assert all(one == found[1] for one in found[2:])
    assert found[1] == {"clamp": {0: 1, 2: 1}, "own-cell": {2: 1, 12: 1}, "drop": {2: 1}}[invalid]


@pytest.mark.slow
def test_the_bounds_are_those_of_the_part(plan_document):
    def months(**changes):
        column = {"type": "integer", "bounds": [1, 12], "from": {"column": "on", "part": "month"}}
        return plan_document | {"columns": plan_document["columns"] | {"month": column | changes}}

    plan = Plan.model_validate(months())
    assert plan.public()["columns"]["month"]["from"] == {"column": "on", "part": "month"}
    assert "from" not in plan.public()["columns"]["age"]
    assert published_plan(plan.public()).digest == plan.digest
    rehearse_shortly(plan)
    assert "a month lies between 1 and 12" in refused(months(bounds=[0, 12]))
    assert "'year', 'month', 'weekday' or 'hour'" in refused(
        months(**{"from": {"column": "on", "part": "day"}})
    )
    unit = {"column": "on", "max_rows": 2}
    assert "privacy_unit.column: 'on' is already used" in refused(
        months() | {"privacy_unit": unit, "neighbours": "add-remove"}
    )


def test_only_whole_numbers_are_parts():
    with pytest.raises(ValidationError, match="from"):
        TypeAdapter(Column).validate_python(
            {"type": "continuous", "bounds": [0, 1], "from": {"column": "on", "part": "hour"}}
        )
