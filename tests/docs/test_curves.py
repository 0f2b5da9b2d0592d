"""Readings at any time become curves by the view that the page of mean curves shows."""

import duckdb
import numpy as np
import pandas as pd
import pytest

import dprelease
from schemas.plan import load_plan
from tests.bare import leave_out_audits
from tests.conftest import ROOT
from tests.shortest import document as shortest

PAGE = ROOT / "docs" / "pages" / "kinds" / "mean-curve.md"
TIMES = ["h00", "h06", "h12", "h18"]
HOUSEHOLDS = 500


@pytest.mark.slow
def test_the_view_of_the_page_makes_a_curve_of_each_household(tmp_path, monkeypatch):
    random = np.random.default_rng(3)
    hours = random.uniform(0, 24, 20 * HOUSEHOLDS)
    readings = pd.DataFrame(
        {"household": np.repeat(np.arange(HOUSEHOLDS), 20), "hour": hours, "kw": 3 - hours / 12}
    )
    quarter = np.floor(readings.hour / 6).astype(int)
    wanted = readings.pivot_table("kw", "household", quarter, "mean").mean()
    with duckdb.connect(str(tmp_path / "meters.duckdb")) as file:
        file.execute("CREATE TABLE readings AS SELECT * FROM readings")
        file.execute(PAGE.read_text().split("```sql\n")[1].split("```")[0])
    column = {"type": "continuous", "bounds": [0, 3], "nullable": True}
    plan = load_plan(
        shortest(
            dict.fromkeys(TIMES, column),
            [
                {
                    "name": "load",
                    "kind": "mean-curve",
                    "curve": "load",
                    "mechanism": "discrete-gaussian",
                }
            ],
            alpha="20",
            beta="1e-6",
            rows=HOUSEHOLDS,
            curves={"load": {"columns": TIMES}},
            source={"database": str(tmp_path / "meters.duckdb"), "table": "curves"},
        )
    )
    leave_out_audits(monkeypatch.setattr)
    bundle = dprelease.release(plan, release_id="r1", out=tmp_path / "out", progress=False)
    found = bundle.table("load")
    assert np.all(np.abs(found["estimate"] - wanted.to_numpy()) < 6 * found["standard_error"])
    assert np.ptp(wanted) > 60 * float(found["standard_error"].max())
