"""Inequalities of a plan hold in every published record, also where columns are compressed."""

import numpy as np
import pytest

from schemas.plan import Plan
from tasks.bundle.records import synthetic_records
from tests.shortest import from_yaml
from tests.tasks.made_up import drawn_evenly

PLAN = """
rows: 3000
alpha: "2"
columns:
  start: {type: integer, bounds: [0, 364]}
  end: {type: integer, bounds: [0, 364], nullable: true}
  weight: {type: continuous, bounds: [0, 120], step: 0.1}
  age: {type: integer, bounds: [0, 99]}
  trade: {type: categorical, categories: [a, b, c, d, e, f, g, h, i, j, k, l]}
releases:
  - name: everybody
    kind: microdata-margins
    mechanism: discrete-laplace
    columns: [start, end, weight, age, trade]
    bins: {start: 5, end: 5, weight: 6, age: [0, 2, 18, 65, 100]}
    rules:
      - end >= start + 3
      - if: {age: {below: 2}}
        then: weight < 15
synthesis:
  - {name: people, from: everybody, rows: 5000}
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("keep", "days"), [(6, 5), (4, "fine")], ids=["no group of days", "days in groups"]
)
def test_every_record_obeys_though_the_survey_does_not(keep, days):
    document = from_yaml(PLAN)
    records = document["releases"][0]
    records["compress"] = {"keep": keep}
    records["bins"] |= {"start": days, "end": days}
    plan = Plan.model_validate(document)
    draw = drawn_evenly(plan.built["everybody"])
    made = synthetic_records(plan, plan.synthesis[0], lambda _: draw).columns
    start, end, weight, age = (made[name] for name in ("start", "end", "weight", "age"))
    spell = (end - start).compressed()
    assert spell.min() == 3
    assert spell.max() > 300
    assert np.all(weight[age < 2] < 15)
    assert weight[age < 2].max() > 10
    assert weight[age >= 2].max() > 100
    assert 0 < np.ma.getmaskarray(end).sum() < 2500
