"""Two years' worth of scheduled runs in series: 24 runs, three of them killed, and nothing overspent."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dpcore.accounting.budget import total
from schemas.plan import load_plan
from tasks.budget.reconcile import reconcile
from tasks.bundle.reader import open_bundle
from tasks.bundle.verify import verify_budget, verify_files
from tasks.explain.runs import price_of_run, runs_left
from tasks.ledger import Ledger
from tests.conftest import ROOT

pytestmark = pytest.mark.slow

SERIES = ROOT / "deployments" / "series"


def calls() -> pd.DataFrame:
    """Made-up events: persons who call for help, some of them in several months."""
    random, size = np.random.default_rng(6), 30_000
    return pd.DataFrame(
        {
            "person": random.integers(0, 22_000, size),
            "month": [f"2027-{month:02}" for month in random.integers(1, 13, size)],
            "region": random.choice(
                ["east", "north", "south", "west"], size, p=[0.1, 0.2, 0.3, 0.4]
            ),
            "kind": random.choice(["accident", "fire", "illness", "violence"], size),
        }
    )


def run_a_year(folder: Path, plan: Path, source: Path, killed: str) -> dict:
    environment = {
        **os.environ,
        "OPENBLAS_NUM_THREADS": "1",
        "DPRELEASE_HOME": str(folder / "home"),
        "DPRELEASE_LEDGER": f"sqlite:///{folder}/ledger.sqlite",
    }
    program = [sys.executable, "-m", "tests.flows.year", folder, plan, source, killed]
    done = subprocess.run(
        list(map(str, program)), cwd=ROOT, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout)


def check(folder: Path, path: Path, ids: list[str]) -> list:
    """Every release is whole, charged once, and together they cost what the plan said beforehand."""
    plan = load_plan(path)
    ledger = Ledger(f"sqlite:///{folder}/ledger.sqlite", create=False)
    bundles = [open_bundle(folder / "out" / plan.dataset / name) for name in ids]
    for bundle in bundles:
        verify_files(bundle.path, bundle.manifest)
        verify_budget(bundle.manifest, ledger)
    assert set(ledger.releases(plan.dataset)) == set(ids)
    assert ledger.spent(plan.dataset) == total(price_of_run(plan, run) for run in range(1, 13))
    assert plan.budget.caps.covers(ledger.spent(plan.dataset))
    assert runs_left(plan, ledger.remaining(plan.dataset), ledger) == 0
    assert reconcile(ledger, folder / "out", plan.dataset) == []
    return bundles


def test_a_year_of_events(tmp_path):
    table, plan = calls(), SERIES / "events.yaml"
    table.to_parquet(tmp_path / "calls.parquet")
    told = run_a_year(tmp_path, plan, tmp_path / "calls.parquet", "4,9")
    assert told["kills"] == 2
    assert told["ids"][0] == "events-20270202-050000"  # six in Vienna
    last = check(tmp_path, plan, told["ids"])[-1].table("calls.region.kind")
    first = table.groupby("person")["month"].transform("min") == table["month"]
    counted = table[first].groupby(["person", "month"]).cumcount() < 3
    to_date = np.array(last["quantity"]) == "to-date"
    exact = table[first][counted].groupby(["region", "kind"]).size().to_numpy()
    error = (np.array(last["estimate"])[to_date] - exact) / np.array(last["standard_error"])[
        to_date
    ]
    assert np.abs(error).max() < 6
