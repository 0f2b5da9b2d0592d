"""What models and other questions are answered from, where columns were measured in merged cells."""

import pytest

from dpcore.estimates.questions import quantile
from schemas.plan import Plan
from tasks.bundle.drawn import DrawnPlan
from tests.shortest import from_yaml
from tests.tasks.made_up import drawn_evenly

PLAN = """
rows: 3000
alpha: "20"
columns:
  pay: {type: integer, bounds: [0, 99], nullable: true}
  sex: {type: categorical, categories: [f, m]}
releases:
  - name: pairs
    kind: microdata-margins
    mechanism: discrete-laplace
    columns: [pay, sex]
    bins: {pay: 50}
    compress: {keep: 3}
synthesis: [{name: people, from: pairs, rows: 3000}]
"""


@pytest.mark.usefixtures("short_fits")
def test_a_quantile_is_as_fine_as_the_table_of_its_column_alone():
    plan = Plan.model_validate(from_yaml(PLAN))
    draw = drawn_evenly(plan.built["pairs"])
    found = DrawnPlan(plan, lambda _: draw).evidence()
    merged, alone = found.domain.axes[0], found.alone["pay"].domain.axes[0]
    assert (merged.size, alone.size) == (3, 51)
    low, high = quantile(found, "pay", 0.5).interval
    assert 40 < low < 50 < high < 60
