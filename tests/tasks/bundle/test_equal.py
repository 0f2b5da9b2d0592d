"""Columns that are often equal in the survey are as often equal in the records."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dpcore.line.privacy_line import perturb
from dpcore.sampling.source import SeededSource
from schemas.plan import Plan
from tasks.audit.rehearsal import rehearse_shortly
from tasks.bundle.records import SyntheticRecords, synthetic_records
from tasks.draw import tally_releases
from tasks.survey.ingest import ingest
from tests.shortest import from_yaml

ROWS, PAIR = 6000, "pay_equals_bill"

FITTED = 10
"""Records by which a fit may miss a noisy count."""

PLAN = f"""
rows: {ROWS}
neighbours: add-remove
alpha: "2"
beta: "1e-6"
columns:
  pay: {{type: integer, bounds: [0, 400]}}
  bill: {{type: integer, bounds: [10, 500], nullable: true}}
  limit: {{type: integer, bounds: [0, 699]}}
  works: {{type: categorical, categories: ["no", "yes"]}}
releases:
  - name: everybody
    kind: microdata-margins
    columns: [pay, bill, limit, works]
    bins: {{pay: [0, 1, 60, 130, 210, 401], bill: [10, 80, 160, 300, 501], limit: 7}}
    often_equal: [[pay, bill]]
    rules: [limit >= bill, {{if: {{works: ["no"]}}, then: {{pay: {{below: 210}}}}}}]
  - {{name: shared, kind: heaping, columns: [pay, bill]}}
synthesis:
  - {{name: people, from: everybody, rows: {ROWS}}}
"""


def survey() -> pd.DataFrame:
    """Of those who work two in three have a bill of what they are paid, of others one in five."""
    random = np.random.default_rng(5)
    works = random.random(ROWS) < 0.6
    pay = np.minimum(random.gamma(3, 40, ROWS), 400).astype(int)
    pay = np.where(random.random(ROWS) < 0.5, pay // 50 * 50, pay)
    pay = np.where(works, pay, np.minimum(pay, 209))
    alike = (random.random(ROWS) < np.where(works, 0.67, 0.2)) & (pay >= 10)
    bill = pd.Series(np.where(alike, pay, random.integers(10, 501, ROWS)), dtype="Int64")
    bill[(random.random(ROWS) < 0.1) & ~alike] = pd.NA
    limit = np.minimum(bill.fillna(0).astype(int) + random.integers(0, 200, ROWS), 699)
    named = np.where(works, "yes", "no")
    return pd.DataFrame({"pay": pay, "bill": bill, "limit": limit, "works": named})


def equal(table: pd.DataFrame) -> pd.Series:
    return (table["pay"] == table["bill"]).fillna(False).astype(bool)


def plan_of(compress: bool) -> Plan:
    document = from_yaml(PLAN)
    if compress:
        records = document["releases"][0]
        records |= {"compress": {}, "bins": {"limit": 7}, "rules": records["rules"][:1]}
    return Plan.model_validate(document)


def made(
    plan: Plan, table: pd.DataFrame, folder: Path
) -> tuple[SyntheticRecords, dict[tuple[str, ...], float]]:
    table.to_parquet(folder / "survey.parquet")
    private = ingest(str(folder / "survey.parquet"), plan.read_columns, ROWS, folder / "work")
    tallies = tally_releases(plan, [*plan.built], private)
    draws = {
        name: perturb(built.statistic(tallies[name]), built.mechanism, built.share, SeededSource(i))
        for i, (name, built) in enumerate(plan.built.items())
    }
    records = synthetic_records(plan, plan.synthesis[0], draws.__getitem__)
    release = plan.built["everybody"]
    stated = {
        names: release.supported_margin(draws["everybody"], names)
        for names in [(PAIR,), ("works", PAIR)]
    }
    for names, found in stated.items():
        assert found is not None, names
    graded = set(records.support("people", draws["everybody"]).columns["columns"].tolist())
    assert "works x pay" in graded or "pay x works" in graded
    assert not any(PAIR in names for names in graded)  # which is no column of the records
    return records, {names: found[1] for names, found in stated.items()}


@pytest.mark.slow
@pytest.mark.parametrize("compress", [False, True])
def test_records_are_equal_as_often_as_rows_within_the_stated_error(tmp_path, compress):
    table = survey()
    found, errors = made(plan_of(compress), table, tmp_path)
    assert PAIR in found.domain.names
    records = pd.DataFrame({name: pd.array(found.columns[name]) for name in table})
    difference = equal(records).sum() - equal(table).sum()
    assert abs(difference) < 3 * errors[PAIR,] + FITTED
    for works in ("no", "yes"):
        there, here = (equal(t)[t["works"] == works].sum() for t in (table, records))
        assert abs(here - there) < 3 * errors["works", PAIR] + FITTED
    assert (records["limit"] >= records["bill"]).dropna().all()
    assert records["bill"].dropna().between(10, 500).all()
    round_pay = (records["pay"][equal(records)] % 50 == 0).mean()
    assert round_pay > 0.35


@pytest.mark.slow
def test_the_rehearsal_knows_which_records_are_equal():
    rehearse_shortly(plan_of(False))
