"""An explanation says where a histogram would serve records better."""

import pytest

from dpcore.accounting.budget import Budget
from schemas.plan import Plan
from tasks.explain.explain import explain
from tasks.explain.records import hardly_met, records_text
from tests.shortest import document


def plan_of(columns: int, categories: int, drawn: bool = True, rows: int = 300) -> Plan:
    listed = [f"answer {i}" for i in range(categories)]
    questions = {f"q{i}": {"type": "categorical", "categories": listed} for i in range(columns)}
    pairs = {"name": "pairs", "kind": "microdata-margins", "columns": [*questions]}
    records = [{"name": "people", "from": "pairs", "rows": 300}] if drawn else []
    more = {"beta": "1e-6", "neighbours": "add-remove", "synthesis": records, "rows": rows}
    return Plan.model_validate(document(questions, [pairs], **more))


@pytest.mark.slow
def test_a_small_table_is_better_drawn_from_a_histogram():
    (line,) = records_text(plan_of(6, 2))
    assert line.startswith("pairs: draw the records from a histogram instead, because all columns")
    assert line in explain(plan_of(6, 2), None, Budget())


@pytest.mark.slow
@pytest.mark.parametrize(("columns", "categories"), [(9, 2), (5, 4)])
def test_whether_a_larger_table_is_depends_on_the_number_of_records(columns, categories):
    assert not [*records_text(plan_of(columns, categories))]
    assert [*records_text(plan_of(columns, categories, rows=10_000))]


@pytest.mark.parametrize(
    "plan",
    [plan_of(13, 2), plan_of(6, 2, drawn=False), plan_of(2, 2), plan_of(1, 2)],
    ids=["8192", "none", "one table", "one column"],
)
def test_it_is_silent_where_it_does_not_know(plan):
    assert not [*records_text(plan)]


def test_a_limit_far_below_the_expected_error_is_named_with_both_before_the_charge():
    def judged(limit: float, **criterion: object) -> Plan:
        stated = plan_of(6, 3).model_dump(mode="json", by_alias=True)
        criteria = [{"distance": "pairs", "at_most": limit}, {"distance": ["q1"], "at_most": limit}]
        good = {"name": "good", "kind": "quality", "records": "people", "weight": "20"}
        stated["releases"].append(good | {"accept": criteria})
        return Plan.model_validate(stated)

    (line,) = hardly_met(judged(0.05))
    assert line.startswith(
        "good: people will hardly meet the limit 0.05 of the mean distance of pairs"
    )
    assert "up to 1 is expected in a table of pairs." in line
    assert line in explain(judged(0.05), None, Budget())
    assert not [*hardly_met(judged(0.5))]
