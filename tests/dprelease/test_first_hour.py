"""Who knows no key gets good records: a table, its questionnaire, and the plan that is proposed."""

import numpy as np
import pandas as pd
import pytest
import yaml

import dprelease
from flows.cli import main
from tests.bare import leave_out_audits

QUESTIONS = """\
column,description,values,lower,upper,step,unit,missing
visits,Visits to a doctor,,0,300,1,visits,
spending,Medical spending,,0,100000,0.01,dollars,
creatinine,Creatinine,,0,30,0.01,mg/dl,empty
income,Family income,,-20000,500000,1,dollars,
health,Health,good; fair; poor,,,,,
"""

ROWS = 8000


@pytest.fixture(scope="module")
def survey() -> pd.DataFrame:
    generator = np.random.default_rng(11)
    ill = generator.random(ROWS) < 0.25
    visits = np.where(generator.random(ROWS) < 0.7, 0, generator.geometric(np.where(ill, 0.1, 0.4)))
    spending = np.rint(100 * np.exp(generator.normal(4, 1.5, ROWS) + ill)) / 100
    creatinine = np.rint(100 * generator.lognormal(0.1, 0.25, ROWS)) / 100
    table = pd.DataFrame(
        {
            "visits": np.minimum(visits, 300),
            "spending": np.where(visits > 0, np.minimum(spending, 1e5), 0.0),
            "creatinine": np.where(generator.random(ROWS) < 0.1, np.nan, creatinine),
            "income": np.rint(generator.lognormal(10.3, 0.8, ROWS)).clip(0, 500_000).astype(int),
            "health": np.where(ill, np.where(visits > 9, "poor", "fair"), "good"),
        }
    )
    table.loc[table.income < 9000, "income"] = 0
    return table


@pytest.fixture(scope="module")
def records(survey, tmp_path_factory) -> pd.DataFrame:
    folder = tmp_path_factory.mktemp("first-hour")
    survey.to_csv(folder / "survey.csv", index=False)
    (folder / "questions.csv").write_text(QUESTIONS)
    asked = ["--questionnaire", str(folder / "questions.csv"), "--for", "records"]
    assert main(["init", str(folder / "survey.csv"), *asked, "--out", str(folder / "p.yaml")]) == 0
    plan = yaml.safe_load((folder / "p.yaml").read_text())
    plan |= {"rows": ROWS, "publication": {"title": "First hour"}}
    for key in ("granted", "requested"):
        plan["budget"][key] |= {"alpha": "2", "beta": "1e-6"}
    plan["source"] = str(folder / "survey.csv")
    with pytest.MonkeyPatch.context() as patch:
        leave_out_audits(patch.setattr)
        bundle = dprelease.release(plan, ledger=folder / "l.sqlite", out=folder, progress=False)
    return bundle.table("microdata/records")


pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", ["visits", "spending", "creatinine", "income"])
def test_records_are_distributed_as_the_survey(name, survey, records):
    """Every bound is three times what draws came to, so a draw fails with a negligible chance."""
    real, made = survey[name].dropna().to_numpy(float), records[name].dropna().to_numpy(float)
    grid = np.unique(np.concatenate([real, made]))
    sides = [np.searchsorted(np.sort(each), grid, "right") / len(each) for each in (real, made)]
    assert np.abs(sides[0] - sides[1]).max() < 0.08
    assert abs(real.mean() - made.mean()) < 0.4 * real.std()
    assert (
        made.mean() < 3 * real.mean()
    )  # eighteen times where a tail is spread evenly to its bound
    assert abs((real == 0).mean() - (made == 0).mean()) < 0.04
    assert abs(survey[name].isna().mean() - records[name].isna().mean()) < 0.04


def test_what_goes_together_still_does(survey, records):
    for one, other in (("visits", "spending"), ("spending", "income")):
        real, made = (
            table[[one, other]].corr("spearman").iloc[0, 1] for table in (survey, records)
        )
        assert abs(real - made) < 0.25
    poor = records[records.health == "poor"].visits.mean()
    assert poor > 3 * records.visits.mean()  # in the survey, ten times
