"""Whatever the plan and the noise: every member has a unit, sizes match, and members are in order."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchmarks.linked import require_whole
from dpcore.line.statistic import Noisy
from dpcore.post.records.rules import breaks_rules
from schemas.plan import Plan
from tasks.bundle.records import joined, record_blocks
from tests.shortest import document

pytestmark = pytest.mark.usefixtures("short_fits")

COLUMNS = {
    "area": {"type": "categorical", "categories": ["N", "S"]},
    "age": {"type": "integer", "bounds": [0, 99]},
    "job": {"type": "categorical", "categories": ["a", "b", "c"]},
    "pay": {"type": "continuous", "bounds": [0, 10]},
}


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    """Plans of two to five members, some columns of which may be null, in any order."""
    columns = {n: c | {"nullable": draw(st.booleans())} for n, c in COLUMNS.items()}
    columns["area"]["nullable"] = False
    first = draw(st.sampled_from(["age", "-age", "job", "-pay"]))
    chosen = ["area", *draw(st.sets(st.sampled_from(["age", "job", "pay"]), min_size=1))]
    section = {"name": "t", "kind": "microdata-margins", "columns": chosen}
    bins = {"age": [0, 15, 40, 100], "pay": 3}
    section["bins"] = {n: b for n, b in bins.items() if n in chosen}
    more = {
        "rows": 50,
        "privacy_unit": {"column": "home", "max_rows": draw(st.integers(2, 5))},
        "neighbours": draw(st.sampled_from(["add-remove", "replace-one"])),
        "linked": {"order": [first], "shared": ["area"]},
        "synthesis": [{"name": "t", "from": "t", "rows": draw(st.integers(1, 60))}],
    }
    return Plan.model_validate(document(columns, [section], beta="1e-6", **more))


BLOCK = 25
"""As if this many records were drawn at a time."""


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr("dpcore.releases.abilities.BLOCK", BLOCK)


@pytest.mark.slow
@pytest.mark.usefixtures("small_blocks")
@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(plan=plans(), seed=st.integers(0, 2**32 - 1), scale=st.sampled_from([0, 3, 300]))
def test_the_two_tables_fit_together(plan: Plan, seed: int, scale: int):
    release = plan.built["t"]
    random = np.random.default_rng(seed)
    noisy = Noisy(random.integers(-scale, scale + 1, release.mechanism.size))
    blocks = [*record_blocks(plan, plan.synthesis[0], lambda _: noisy)]
    assert all(len(block.codes) <= BLOCK for block in blocks)
    assert not breaks_rules(joined(blocks).codes, release.rules).any()
    units, members = (
        pd.concat(
            pd.DataFrame({name: values.tolist() for name, values in table.columns.items()})
            for table in tables
        )
        for tables in zip(*(block.linked_tables("t", plan) for block in blocks), strict=True)
    )
    require_whole(units, members)
    assert len(units) == plan.synthesis[0].rows
    for name in members.columns.intersection([n for n in COLUMNS if not plan.columns[n].nullable]):
        assert members[name].notna().all()
