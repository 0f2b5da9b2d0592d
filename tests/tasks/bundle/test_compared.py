"""Two numbers are as often equal or in order in the records as in the survey, though no plan says so."""

import numpy as np
import pandas as pd
import pytest

from dpcore.line.privacy_line import perturb
from dpcore.post.records.rules import breaks_rules
from dpcore.sampling.source import SeededSource
from schemas.plan import Plan
from tasks.bundle.records import synthetic_records
from tasks.draw import tally_releases
from tasks.explain.analysis import check_analyses
from tasks.survey.ingest import ingest
from tests.shortest import from_yaml

ROWS = 6000

PLAN = f"""
rows: {ROWS}
alpha: "2"
beta: "1e-6"
columns:
  relapse: {{type: integer, bounds: [0, 999], unit: days}}
  death: {{type: integer, bounds: [0, 1499], unit: days, nullable: true}}
  sex: {{type: categorical, categories: [f, m]}}
releases:
  - name: everybody
    kind: microdata-margins
    columns: [relapse, death, sex]
    bins: {{relapse: fine, death: fine}}
    compress: {{}}
    mechanism: discrete-gaussian
synthesis:
  - {{name: people, from: everybody, rows: {ROWS}}}
"""


def survey() -> pd.DataFrame:
    """A relapse is never after death; half had none before it, and of a tenth the death is not known."""
    random = np.random.default_rng(5)
    death = random.integers(0, 1000, ROWS)
    relapse = np.where(random.random(ROWS) < 0.5, death, (death * random.random(ROWS)).astype(int))
    sex = np.where(random.random(ROWS) < 0.5, "f", "m")
    known = pd.Series(death, dtype="Int64").mask(random.random(ROWS) < 0.1)
    return pd.DataFrame({"relapse": relapse, "death": known, "sex": sex})


def shares(table: pd.DataFrame) -> np.ndarray:
    known = table.dropna()
    order = np.sign(known["relapse"].astype(float) - known["death"].astype(float)).astype(int)
    return np.bincount(1 + order, minlength=3) / len(table)


def published(plan: Plan, table: pd.DataFrame, folder) -> tuple[pd.DataFrame, set[str], int]:
    """The records, the columns of the published tables, and how many records' cells break a rule."""
    table.to_parquet(folder / "survey.parquet")
    private = ingest(str(folder / "survey.parquet"), plan.read_columns, ROWS, folder / "work")
    release = plan.built["everybody"]
    tally = tally_releases(plan, ["everybody"], private)["everybody"]
    noisy = perturb(release.statistic(tally), release.mechanism, release.share, SeededSource(1))
    found = synthetic_records(plan, plan.synthesis[0], {"everybody": noisy}.__getitem__)
    records = pd.DataFrame({name: pd.array(found.columns[name]) for name in table})
    tables = {each.name.split(".")[1] for each in release.publish(noisy).tables}
    return records, tables, int(breaks_rules(release.sample(noisy, ROWS)[1], release.rules).sum())


@pytest.mark.slow
def test_records_have_the_relation_of_the_survey(tmp_path):
    table = survey()
    records, tables, _ = published(Plan.model_validate(from_yaml(PLAN)), table, tmp_path)
    assert shares(table)[2] == 0
    assert shares(records) == pytest.approx(shares(table), abs=0.03)
    assert "relapse_against_death" in tables


@pytest.mark.slow
def test_a_rule_about_one_of_the_columns_leaves_their_relation_alone(tmp_path):
    table, whole = survey(), from_yaml(PLAN)
    table["visit"] = np.random.default_rng(6).integers(
        table["relapse"] * 9 // 10, 1 + table["relapse"]
    )
    whole["columns"]["visit"] = whole["columns"]["relapse"]
    section = whole["releases"][0]
    section["columns"].append("visit")
    section["bins"]["visit"] = "fine"
    section["rules"] = ["relapse >= visit"]
    records, tables, broken = published(Plan.model_validate(whole), table, tmp_path)
    assert broken == 0
    assert "relapse_against_death" in tables
    assert "relapse_against_visit" not in tables
    assert (records["visit"] <= records["relapse"]).all()
    assert shares(records) == pytest.approx(shares(table), abs=0.05)


def test_a_model_of_compared_columns_is_explained():
    asked = {"name": "days", "title": "Days", "formula": "relapse ~ death"}
    whole = from_yaml(PLAN) | {"analyses": [asked]}
    ((_, found),) = check_analyses(Plan.model_validate(whole))
    assert [each.name for each in found.coefficients] == ["Intercept", "death"]
