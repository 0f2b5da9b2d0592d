"""A plan of many releases: each draw is read a fixed number of times, and never an older one."""

import numpy as np
import yaml

from dpcore.accounting.budget import Budget
from dpcore.line.statistic import Noisy
from schemas.plan import load_plan
from tasks.bundle.publish import drawn_plan
from tasks.ledger import ChargeRequest, Ledger, charges_of
from tasks.workplace.home import ledger_url
from tasks.workplace.job import ReleaseJob
from tests import bare


def plan_of(folder, number: int):
    """A plan of as many small histograms."""
    document = yaml.safe_load(bare.small_plan(folder).read_text())
    histogram = {"kind": "histogram", "columns": ["sex"]}
    document["releases"] = [{"name": f"h{i}", **histogram} for i in range(number)]
    document["synthesis"] = []
    path = folder / "plan.yaml"
    path.write_text(yaml.safe_dump(document))
    return path


def test_what_is_kept_is_of_these_draws(tmp_path, monkeypatch):
    """Another ledger has other draws under the same release id."""
    plan, seen = load_plan(plan_of(tmp_path, 2)), []
    for name in ("one", "other", "one"):
        monkeypatch.setenv("DPRELEASE_LEDGER", f"sqlite:///{tmp_path}/{name}.db")
        ledger = Ledger(ledger_url())
        if ledger.first_grant("survey", Budget.of(2), "the board", "a test"):
            ledger.reserve(ChargeRequest("survey", "r1", plan.digest, charges_of(plan)))
            for release in plan.built:
                draw = Noisy(np.array([len(seen) + 5, 7]))
                ledger.commit("survey", "r1", release, draw)
        drawn = drawn_plan(ReleaseJob(plan, "r1"))
        assert drawn is drawn_plan(ReleaseJob(plan, "r1"))
        seen.append([each.draw for each in drawn.counted])
    assert seen[0] == seen[2] != seen[1]
