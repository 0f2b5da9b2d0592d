"""The worked plan of regions loads, explains itself, and its regions are those of the real table."""

from pathlib import Path

import pandas as pd
import pytest

from dpcore.accounting.budget import Budget
from dpcore.line.privacy_line import perturb
from dpcore.sampling.source import SeededSource
from schemas.plan import load_plan
from tasks.explain.explain import explain
from tasks.survey.steps import ingest_survey, validate_survey
from tasks.survey.tally import tallies
from tests.conftest import ROOT

FOLDER = ROOT / "deployments" / "regions"
PLAN = FOLDER / "austria.yaml"


@pytest.fixture
def people(test_data: Path, tmp_path: Path) -> pd.DataFrame:
    """The table with the groups of states, at ``tmp_path / "people.parquet"``."""
    table = test_data / "eusilc_households" / "eusilc.parquet"
    if not table.is_file():
        pytest.skip("the table is not among the real tables")
    joined = pd.read_parquet(table).merge(pd.read_csv(FOLDER / "austria.csv"))
    joined.to_parquet(tmp_path / "people.parquet")
    return joined


def test_it_explains_the_error_of_every_level_without_data():
    plan = load_plan(PLAN, {"source": "nowhere.parquet"})
    text = explain(plan, None, Budget())
    for level in ("over all regions", "by group", "by db040"):
        assert f"standard error of a count {level}" in text


def test_its_counts_are_near_the_real_ones_and_nobody_lives_outside(people, tmp_path):
    plan = load_plan(PLAN, {"source": str(tmp_path / "people.parquet")})
    survey = ingest_survey.fn(plan, tmp_path / "private")
    validate_survey.fn(plan, survey)
    release = plan.built["people"]
    (tally,) = tallies(survey, [release.domain], plan.rows, plan.adjacency, plan.unit)
    exact = release.statistic(tally)
    tables = release.publish(perturb(exact, release.mechanism, release.share, SeededSource(1)))
    states = pd.DataFrame(dict(tables.tables[-1].columns))
    found = states.groupby("db040", dropna=False)["estimate"].sum()
    real = people["db040"].value_counts()
    errors = (found[real.index] - real).abs()
    assert errors.max() < 6 * release.mechanism.stddev * release.width**0.5
    assert abs(found[found.index.isna()].sum()) < 6 * release.mechanism.stddev * release.width**0.5
