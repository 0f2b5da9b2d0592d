"""Records of a density or function have a support table, also where values are missing."""

import numpy as np
import pytest

from schemas.plan import Plan
from tasks.bundle.records import synthetic_records
from tests.shortest import from_yaml
from tests.tasks.made_up import drawn_evenly

PLAN = """
rows: 3000
beta: "1e-6"
columns:
  pay: {type: continuous, bounds: [0, 100], grid: 64, nullable: true}
  age: {type: continuous, bounds: [0, 100], grid: 64, point_masses: [0]}
  sex: {type: categorical, categories: [F, M]}
releases: []
synthesis: [{name: people, from: curve, rows: 50}]
"""
KEYS = {"name": "curve", "kind": "density", "mechanism": "spectral-gaussian", "bandwidth": 0.1}
FUNCTION = {"name": "curve", "kind": "function", "bandwidth": 0.1}


@pytest.mark.parametrize(
    "section",
    [
        KEYS | {"columns": ["pay"]},
        KEYS | {"columns": ["pay"], "by": "sex"},
        KEYS | {"columns": ["age", "pay"]},
        FUNCTION | {"columns": ["pay"]},
        FUNCTION | {"columns": ["pay", "age"]},
    ],
)
def test_columns_with_nulls_or_point_masses_have_a_distance(section):
    plan = Plan.model_validate(from_yaml(PLAN, releases=[section]))
    draw = drawn_evenly(plan.built["curve"])
    made = synthetic_records(plan, plan.synthesis[0], lambda _: draw)
    table = made.support("people", draw).columns
    distances = np.ma.filled(np.ma.asarray(table["distance"], dtype=float), np.nan)
    assert ((distances >= 0) & (distances <= 1)).all()
