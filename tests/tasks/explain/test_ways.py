"""What is expected of the ways that a plan does not take is what a plan would get that takes them."""

import math

import pytest

from dpcore.advice.usable import GOOD, verdict
from schemas.plan import load_plan
from tasks.explain.verdicts import verdicts
from tasks.explain.ways import model_widths, widths_text
from tasks.inference.fit import DIRECTLY, MOMENTS, TABLES

FORMULAS = ["income ~ age + sex", "income ~ children"]


def made(document, releases, analyses=()):
    document |= {"releases": releases, "analyses": [*analyses], "synthesis": []}
    return load_plan(document)


@pytest.mark.slow
def test_a_way_that_is_not_taken_has_the_width_of_a_plan_that_takes_it(plan_document):
    plan_document |= {"source": "t.csv", "rows": 20_000}
    direct = [{"name": f"m{i}", "kind": "model", "formula": f} for i, f in enumerate(FORMULAS)]
    asked = [{"name": f"a{i}", "title": f, "formula": f} for i, f in enumerate(FORMULAS)]
    sums = {"name": "sums", "kind": "moments", "columns": ["age", "sex", "children", "income"]}
    alone = model_widths(made(plan_document, direct))
    together = model_widths(made(plan_document, [sums], asked))
    for one, other in zip(alone, together, strict=True):
        assert (one.taken, other.taken) == (DIRECTLY, MOMENTS)
        assert one.formula == other.formula
        assert {*one.widths} == {*other.widths} == {DIRECTLY, MOMENTS, TABLES}
        assert one.widths[DIRECTLY] < one.widths[MOMENTS]
        assert one.widths == pytest.approx(other.widths, rel=1e-6)


def test_the_way_that_is_taken_is_marked_and_one_that_cannot_answer_is_named(plan_document):
    plan_document |= {"source": "t.csv", "rows": 20_000}
    curved = {"name": "m", "kind": "model", "formula": "children ~ age", "family": "poisson"}
    *_, row = "\n".join(widths_text(made(plan_document, [curved]))).splitlines()
    assert "*" in row
    assert "not possible" in row


def test_the_reason_why_a_formula_cannot_be_measured_directly_is_stated(plan_document):
    plan_document |= {"source": "t.csv", "rows": 20_000}
    plan_document["columns"]["income"] = {"type": "integer", "bounds": [0, 9999]}
    pair = {"name": "pair", "kind": "margins", "ways": 2, "columns": ["age", "income"]}
    pair |= {"mechanism": "discrete-gaussian", "bins": {"income": "fine"}}
    formula = "log(income) ~ age"
    asked = {"name": "a", "title": "log", "formula": formula}
    *_, note = widths_text(made(plan_document, [pair], [asked]))
    assert note.startswith(f"Note: {formula} cannot be measured directly: has no finite value")
    assert "a lower bound above 0" in note


def test_a_design_leaves_one_way(plan_document):
    plan_document["weights"] = {"column": "w", "largest": 100, "step": "0.1", "total": 8000}
    curved = {"name": "m", "kind": "model", "formula": FORMULAS[0]}
    plan_document["source"] = "t.csv"
    (only,) = model_widths(made(plan_document, [curved]))
    assert {*only.widths} == {DIRECTLY}


@pytest.mark.parametrize("rows", [50, 5000])
@pytest.mark.parametrize("formula", ["income ~ 1", "income ~ 0 + C(sex)"])
def test_the_verdict_on_a_mean_is_that_of_its_width(plan_document, formula, rows):
    """Nothing is cut from a mean: noise is in proportion to bounds, which a response may not fill."""
    mean = {"name": "m", "kind": "model", "formula": formula}
    plan = made(plan_document | {"rows": rows}, [mean])
    (only,), (said,) = model_widths(plan), verdicts(plan)
    width = only.widths[DIRECTLY]
    if math.isfinite(width):
        assert f" {width:.3g} times as wide" in said.words
        assert said.says == verdict(GOOD * math.sqrt(width**2 - 1))
    else:
        assert said.says == "not usable"
    assert math.isfinite(width) is not (rows == 50 and "sex" in formula)


@pytest.mark.slow
def test_a_method_that_is_clearly_better_at_this_budget_is_named(plan_document):
    plan_document |= {"source": "t.csv", "rows": 20_000}
    asked = {"name": "a", "title": "A", "formula": FORMULAS[0]}
    sums = {"name": "sums", "kind": "moments", "columns": ["age", "sex", "children", "income"]}
    alone = {"name": "m", "kind": "model", "formula": FORMULAS[0]}
    for plan, better in (
        (made(plan_document, [sums], [asked]), 1),
        (made(plan_document, [alone]), 0),
    ):
        said = [line for line in widths_text(plan) if "has narrower intervals" in line]
        assert [line.endswith("if it is measured directly") for line in said] == [True] * better


def test_codes_that_count_as_numbers_are_said_to(plan_document):
    plan_document["columns"]["code"] = {"type": "categorical", "categories": [1, 2, 3]}
    formulas = ["income ~ code + age", "income ~ C(code) + age", "income ~ {code == 2} + children"]
    models = [{"name": f"m{i}", "kind": "model", "formula": f} for i, f in enumerate(formulas)]
    lines = widths_text(made(plan_document, models))
    notes = [line for line in lines if line.startswith("Note: in")]
    assert notes == [
        "Note: in income ~ code + age the codes of code are used as numbers. Write C(code) for a"
        " coefficient of each category."
    ]
