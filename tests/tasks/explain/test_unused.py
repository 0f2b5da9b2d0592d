"""``explain`` names the columns of which nothing is published."""

from dpcore.accounting.budget import Budget
from schemas.plan import load_plan
from tasks.explain.explain import explain


def test_columns_in_no_release_are_named(plan_document):
    plan = load_plan(plan_document)
    assert "Columns in no release" not in explain(plan, None, Budget())
    plan_document["columns"]["shoe"] = {"type": "integer", "bounds": [30, 50]}
    plan = load_plan(plan_document)
    assert "Columns in no release: shoe.\n" in explain(plan, None, Budget())


def test_a_release_of_what_is_public_is_named(plan_document):
    plan_document["columns"]["here"] = {"type": "categorical", "categories": ["yes"]}
    plan_document["budget"]["requested"] = {"alpha": "1"}
    said = "to publish it with noise in alive."
    for relation, told in (("replace-one", True), ("add-remove", False)):
        plan_document["neighbours"] = relation
        plan_document["releases"] = [{"name": "alive", "kind": "histogram", "columns": ["here"]}]
        plan_document["synthesis"] = []
        plan = load_plan(plan_document)
        assert (said in explain(plan, None, Budget())) == told
