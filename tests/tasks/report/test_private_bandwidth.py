"""A plan with private bandwidths, from the ledger to the bundle and its reader."""

import numpy as np
import pytest

from schemas.plan import load_plan
from tasks.bundle.reader import open_bundle
from tasks.ledger import Ledger
from tasks.workplace.home import ledger_url
from tests.conftest import write_plan
from tests.tasks.made_up import publish_made_up

PRIVATE = {"private": "quantiles", "smallest": 0.02}


@pytest.fixture
def plan(tmp_path, plan_document):
    plan_document["releases"] = [
        {
            "name": "wealth",
            "kind": "density",
            "columns": ["income"],
            "bandwidth": PRIVATE,
            "mechanism": "binned-laplace",
        },
        {
            "name": "path",
            "kind": "function",
            "columns": ["age"],
            "bandwidth": PRIVATE | {"private": "interquartile-range"},
        },
        {
            "name": "people",
            "kind": "histogram",
            "columns": ["sex", "income"],
            "bins": {"income": 3},
        },
    ]
    plan_document["synthesis"] = [
        {"name": "everybody", "from": "people", "rows": 100},
        {"name": "incomes", "from": "wealth", "rows": 50},
    ]
    return load_plan(write_plan(tmp_path, plan_document))


def test_a_private_bandwidth_is_charged_once_published_and_read_back(tmp_path, plan):
    bundle = open_bundle(publish_made_up(plan, "r1", tmp_path / "out"))
    charges = Ledger(ledger_url()).release("survey", "r1")
    assert charges["wealth"].event["event"] == "staged"
    assert charges["wealth"].budget == plan.built["wealth"].share
    for name, column in (("wealth", "income"), ("path", "age")):
        table = bundle.table(name)
        found = bundle.evaluate(name, {column: table[column]})
        np.testing.assert_allclose(
            found["estimate"], table["estimate"], rtol=1e-4, atol=1e-3 * table["estimate"].max()
        )
        facts = next(r.facts for r in bundle.manifest.releases if r.name == name)
        assert facts["bandwidth_choice"]["rule"] in ("quantiles", "interquartile-range")
    assert len(bundle.sample("incomes", 500)["income"]) == 500
    (refined,) = (s.refined_by for s in bundle.manifest.synthesis if s.name == "everybody")
    assert refined == {"income": "wealth"}
