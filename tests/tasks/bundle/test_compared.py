"""Two numbers are as often equal or in order in the records as in the survey, though no plan says so."""

import numpy as np
import pandas as pd
import pytest

from dpcore.line.privacy_line import perturb
from dpcore.sampling.source import SeededSource
from schemas.plan import Plan
from tasks.bundle.records import synthetic_records
from tasks.draw import tally_releases
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


@pytest.mark.slow
def test_records_have_the_relation_of_the_survey(tmp_path):
    table, plan = survey(), Plan.model_validate(from_yaml(PLAN))
    table.to_parquet(tmp_path / "survey.parquet")
    private = ingest(str(tmp_path / "survey.parquet"), plan.read_columns, ROWS, tmp_path / "work")
    release = plan.built["everybody"]
    tally = tally_releases(plan, ["everybody"], private)["everybody"]
    noisy = perturb(release.statistic(tally), release.mechanism, release.share, SeededSource(1))
    found = synthetic_records(plan, plan.synthesis[0], {"everybody": noisy}.__getitem__)
    records = pd.DataFrame({name: pd.array(found.columns[name]) for name in table})
    assert shares(table)[2] == 0
    assert shares(records) == pytest.approx(shares(table), abs=0.03)
    assert "relapse_against_death" in {
        table.name.split(".")[1] for table in release.publish(noisy).tables
    }
