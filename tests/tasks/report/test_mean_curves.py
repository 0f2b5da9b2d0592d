"""A plan with curves: what is refused when it is read, and what its bundle and page hold."""

import numpy as np
import pytest

from schemas.plan import load_plan
from tests.schemas.refusals import refused
from tests.tasks.made_up import opened_once
from tests.tasks.report.pages import page_of

HOURS = ["h00", "h06", "h12", "h18"]


def with_curves(document: dict) -> dict:
    hours = {
        name: {"type": "continuous", "bounds": [0, 3], "unit": "kW", "nullable": name == "h06"}
        for name in HOURS
    }
    return document | {
        "columns": document["columns"] | hours,
        "curves": {"load": {"columns": HOURS, "time": [0, 6, 12, 18], "step_at_most": 1}},
        "releases": [
            {"name": "load", "kind": "mean-curve", "curve": "load"},
            {"name": "load-by-sex", "kind": "mean-curve", "curve": "load", "by": "sex"},
        ],
        "rows": 4000,
        "synthesis": [],
    }


@pytest.mark.parametrize(
    ("place", "value", "says"),
    [
        ("curves.load.time", [0, 6, 12], "time: has 3 times for 4 columns; state one time"),
        ("curves.load.time", [0, 6, 6, 12], "time: must ascend"),
        ("curves.load.columns", ["h00", "h00", "h12", "h18"], "columns: a column is listed twice"),
        ("curves.load.columns", ["h00", "h60", "h12", "h18"], "declares no column 'h60'"),
        ("curves.load.columns", ["h00", "sex", "h12", "h18"], "curve: 'sex' is not numeric"),
        ("curves.load.step_at_most", 0, "greater than 0"),
        ("columns.h12.bounds", "open", "step_at_most needs stated bounds"),
        ("curves", {"a<b": {"columns": HOURS}}, "curves.a<b: a name must begin with a letter"),
        ("releases", [{"name": "x", "kind": "mean-curve", "curve": "laod"}], "mean 'load'"),
    ],
)
def test_what_cannot_be_a_curve_is_refused(plan_document, place, value, says):
    assert says in refused(with_curves(plan_document), {place: value})


def test_a_plan_without_curves_has_the_digest_that_it_had(plan_document):
    assert "curves" not in load_plan(plan_document).public()
    plan = load_plan(with_curves(plan_document))
    assert load_plan(plan.public() | {"source": "none.csv"}).digest == plan.digest


@pytest.mark.slow
def test_a_bundle_has_the_curve_as_a_function_and_the_page_draws_it(plan_document, tmp_path):
    bundle = opened_once(tmp_path, with_curves(plan_document))
    table = bundle.table("load")
    assert list(table["time"]) == [0, 6, 12, 18]
    found = bundle.evaluate("load", {"time": [3, 18]})
    assert found["estimate"][0] == pytest.approx(np.mean(table["estimate"][:2]))
    assert found["upper_simultaneous_90"][1] == pytest.approx(table["upper_simultaneous_90"][3])
    by = bundle.evaluate("load-by-sex", {"sex": ["F", "M"], "time": [0, 0]})
    both = bundle.table("load-by-sex")
    np.testing.assert_allclose(by["estimate"], both["estimate"][both["time"] == 0])
    page = page_of(bundle.path)
    captions = [" ".join(each.words.split()) for each in page.all("figcaption")]
    assert any("the whole curve with 90% probability" in each for each in captions)
    assert any("the whole curve of a group with 90% probability" in each for each in captions)
