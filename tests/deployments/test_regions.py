"""The worked plan of regions loads and explains itself."""

from dpcore.accounting.budget import Budget
from schemas.plan import load_plan
from tasks.explain.explain import explain
from tests.conftest import ROOT

PLAN = ROOT / "deployments" / "regions" / "austria.yaml"


def test_it_explains_the_error_of_every_level_without_data():
    plan = load_plan(PLAN, {"source": "nowhere.parquet"})
    text = explain(plan, None, Budget())
    for level in ("over all regions", "by group", "by db040"):
        assert f"standard error of a count {level}" in text
