"""What is expected of the ways that a plan does not take is what a plan would get that takes them."""

import pytest

from schemas.plan import load_plan
from tasks.explain.ways import DIRECTLY, MOMENTS, TABLES, model_widths, widths_text

FORMULAS = ["income ~ age + sex", "income ~ children"]


def made(document, releases, analyses=()):
    document |= {"releases": releases, "analyses": [*analyses], "synthesis": []}
    return load_plan(document)


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


def test_a_design_leaves_one_way(plan_document):
    plan_document["weights"] = {"column": "w", "largest": 100, "step": "0.1", "total": 8000}
    curved = {"name": "m", "kind": "model", "formula": FORMULAS[0]}
    plan_document["source"] = "t.csv"
    (only,) = model_widths(made(plan_document, [curved]))
    assert {*only.widths} == {DIRECTLY}
