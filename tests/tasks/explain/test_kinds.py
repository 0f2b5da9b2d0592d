"""``explain`` compares the kinds of tables that a plan could draw, and names the best."""

import pytest

from schemas.plan import Plan
from tasks.explain.explain import explain, kinds_text
from tests.conftest import plan_of_every_kind


def plan_of(releases: list[dict], synthesis: tuple[dict, ...] = (), **sizes: int) -> Plan:
    columns = {
        name: {"type": "categorical", "categories": list(range(size))}
        for name, size in sizes.items()
    }
    document = plan_of_every_kind() | {"columns": columns, "releases": releases, "rows": 20_000}
    document["synthesis"] = list(synthesis)
    document["budget"]["requested"] = {"alpha": "1", "beta": "0", "gamma": "0"}
    return Plan.model_validate(document)


def of_all(kind: str, sizes: dict[str, int], **more: object) -> dict:
    return {"name": "r", "kind": kind, "columns": list(sizes), **more}


BINARY = dict.fromkeys("abcdef", 2)
MANY = dict.fromkeys("abcdefghijkl", 2)


@pytest.mark.parametrize(
    ("sizes", "verdict"),
    [
        (BINARY, "r: best for tables of 1, 2 and 3 columns: histogram."),
        (
            dict.fromkeys("abcdef", 10),
            "r: best for tables of 1 and 2 columns: margins, ways: 2; of 3 columns: none is accurate.",
        ),
    ],
)
def test_the_best_kind_is_named(sizes, verdict):
    plan = plan_of([of_all("margins", sizes, ways=2)], **sizes)
    text = kinds_text(plan)
    assert text[-1] == verdict
    assert any("margins, ways: 2 (as planned)" in line for line in text[2].splitlines())
    assert "not measured" in text[2]
    assert text[-1] in explain(plan, None, plan.requested)


def test_records_are_advised_by_what_their_tables_can_bear():
    histogram = of_all("histogram", MANY)
    alone = kinds_text(plan_of([histogram], **MANY))
    records = kinds_text(plan_of([histogram], ({"name": "p", "from": "r", "rows": 9},), **MANY))
    assert alone[-1].endswith("of 3 columns: histogram.")
    assert records[-1].startswith("r: best for records: microdata-margins, ways: 2; for tables of")
    assert "records, 3 columns" in records[2]
    assert "records, 3 columns" not in alone[2]
