"""Derived columns follow from the others in every synthetic record, and the bundle says that they do."""

import pytest

from schemas.documents.codebook import codebook
from schemas.plan import Plan
from tasks.bundle.records import SyntheticRecords, synthetic_records
from tests.shortest import from_yaml
from tests.tasks.made_up import drawn_evenly

PLAN = """
rows: 3000
alpha: "4"
columns:
  weight: {type: continuous, bounds: [30, 150], step: 0.1, nullable: true}
  height: {type: integer, bounds: [100, 210]}
  trade:
    type: categorical
    categories: [baker, brewer, smith, founder]
    refines: {sector: {baker: food, brewer: food, smith: metal, founder: metal}}
    nullable: true
  sector:
    type: categorical
    categories: [metal, food]
    nullable: true
    refines: {hot: {metal: "True", food: "False"}}
  hot: {type: categorical, categories: [false, true], nullable: true}
releases:
  - name: everybody
    kind: microdata-margins
    mechanism: discrete-laplace
    columns: [weight, height, trade]
    bins: {weight: 5, height: [100, 150, 180, 211]}
    compress: {keep: 3}
synthesis:
  - name: people
    from: everybody
    rows: 3000
    derived: {BMI: weight / (height / 100) ** 2, heavy: "BMI > 30", per: "1 / (height - 150)"}
"""


@pytest.fixture(scope="module")
def made() -> tuple[SyntheticRecords, Plan]:
    plan = Plan.model_validate(from_yaml(PLAN))
    draw = drawn_evenly(plan.built["everybody"])
    return synthetic_records(plan, plan.synthesis[0], lambda _: draw), plan


@pytest.mark.slow
def test_every_record_agrees_with_its_formulas_and_groups(made):
    columns = {name: values.tolist() for name, values in made[0].columns.items()}
    sectors = {"baker": "food", "brewer": "food", "smith": "metal", "founder": "metal", None: None}
    hot = {"food": False, "metal": True, None: None}
    for weight, height, trade, sector, is_hot, bmi, heavy, per in zip(
        *columns.values(), strict=True
    ):
        assert sector == sectors[trade]
        assert is_hot == hot[sector]
        assert bmi == (None if weight is None else weight / (height / 100) ** 2)
        assert heavy == (None if weight is None else bmi > 30)
        assert per == (None if height == 150 else 1 / (height - 150))
    assert {None, "food", "metal"} == set(columns["sector"])
    assert 150 in columns["height"]


def test_they_are_published_as_derived(made):
    records, plan = made
    table = records.table("people", plan.columns)
    assert list(table.columns) == [
        "weight", "height", "trade", "sector", "hot", "BMI", "heavy", "per",
    ]  # fmt: skip
    assert table.descriptions["BMI"] == "Derived: BMI = weight / (height / 100) ** 2"
    assert table.about["sector"] == "sector"
    assert "BMI" not in table.about
    assert "heavy,categorical,Derived: heavy = BMI > 30,,,,,,true" in codebook(None, plan)


def test_groups_that_follow_from_counts_of_all_columns_are_published_once():
    text = PLAN.partition("releases:")[0]
    counts = {"name": "trades", "kind": "histogram", "columns": ["trade"]}
    records = {"name": "people", "from": "trades", "rows": 20}
    more = {"releases": [counts], "synthesis": [records], "rows": 3000, "alpha": "4"}
    plan = Plan.model_validate(from_yaml(text, **more))
    draw = drawn_evenly(plan.built["trades"])
    made = synthetic_records(plan, plan.synthesis[0], lambda _: draw)
    table = made.table("people", plan.columns)
    assert list(table.columns) == ["trade", "sector", "hot"]
    assert table.descriptions["sector"] == "Derived: the group of trade"
