"""An explanation says where a histogram would serve records better."""

import pytest

from dpcore.accounting.budget import Budget
from schemas.plan import Plan
from tasks.explain.explain import explain
from tasks.explain.records import records_text


def plan_of(columns: int, categories: int, **synthesis) -> Plan:
    names = [f"q{i}" for i in range(columns)]
    listed = [f"answer {i}" for i in range(categories)]
    asked = {"alpha": "1", "beta": "1e-6"}
    records = {"name": "people", "from": "pairs", "rows": 300}
    return Plan.model_validate(
        {
            "dprelease": 1,
            "dataset": "d",
            "source": "nowhere.parquet",
            "rows": 300,
            "privacy_unit": "row",
            "neighbours": "add-remove",
            "budget": {"granted": asked, "requested": asked},
            "columns": {name: {"type": "categorical", "categories": listed} for name in names},
            "releases": [{"name": "pairs", "kind": "microdata-margins", "columns": names}],
            "synthesis": [records] if synthesis.get("drawn", True) else [],
            "publication": {"title": "A survey"},
        }
    )


def test_a_small_table_is_better_drawn_from_a_histogram():
    (line,) = records_text(plan_of(6, 2))
    assert line.startswith("pairs: its columns have 64 cells together")
    assert line in explain(plan_of(6, 2), None, Budget())


@pytest.mark.parametrize(
    "plan", [plan_of(9, 2), plan_of(5, 4), plan_of(6, 2, drawn=False)], ids=["512", "1024", "none"]
)
def test_it_is_silent_where_it_does_not_know(plan):
    assert not [*records_text(plan)]
