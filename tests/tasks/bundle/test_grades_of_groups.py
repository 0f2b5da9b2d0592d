"""Pairs that were counted in groups of cells are graded by their groups, as they are published."""

import numpy as np
import pytest

from dpcore.domain.tally import Tally
from dpcore.line.privacy_line import perturb
from dpcore.sampling.source import SeededSource
from schemas.bundle.grades import grade
from schemas.plan import Plan
from tasks.bundle.records import synthetic_records
from tests.shortest import from_yaml

ROWS = 4000
PLAN = """
rows: 4000
alpha: "6"
beta: "1e-6"
columns:
  sex: {type: categorical, categories: [f, m]}
  age: {type: integer, bounds: [0, 99]}
  visits: {type: integer, bounds: [0, 99]}
releases:
  - name: pairs
    kind: microdata-margins
    columns: [sex, age, visits]
    bins: {age: fine, visits: fine}
    compress: {keep: KEEP}
synthesis:
  - {name: people, from: pairs, rows: 4000}
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("keep", "names", "assumed"),
    [(9, "sex.age", False), (9, "age.visits", False), (3, "sex.age", False), (2, "sex.age", True)],
)
def test_pairs_of_wide_columns_are_compared_with_the_table_that_was_counted(keep, names, assumed):
    """``assumed``: most records are in one group of many ages, so that age is hardly known."""
    plan = Plan.model_validate(from_yaml(PLAN.replace("KEEP", str(keep))))
    release, random = plan.built["pairs"], np.random.default_rng(3)
    sex = random.integers(2, size=ROWS)
    age = random.integers(100, size=ROWS)
    visits = np.minimum(random.poisson(3 + age / 10), 99)
    relation = 1 + np.sign(age - visits)
    cells = release.domain.pack(np.stack([sex, age, visits, relation], axis=1))
    exact = release.statistic(Tally.of(release.domain, cells, np.ones(ROWS, dtype=np.int64)))
    noisy = perturb(exact, release.mechanism, release.share, SeededSource(keep))
    records = synthetic_records(plan, plan.synthesis[0], {"pairs": noisy}.__getitem__)
    support = records.support("people", noisy).columns
    (row,) = np.flatnonzero(support["columns"] == names.replace(".", " x "))
    found = {key: support[key][row] for key in support}

    (table,) = (t for t in release.publish(noisy).tables if t.name == f"pairs.{names}")
    counts = np.asarray(table.columns["count"], dtype=float)
    assert found["cells"] == len(counts)
    groups = release.groups(release.settled(noisy)[0])
    places = [records.domain.names.index(name) for name in names.split(".")]
    first, second = (groups[place][records.codes[:, place]] for place in places)
    size = groups[places[1]].max() + 1
    made = np.bincount(first * size + second, minlength=len(counts))
    distance = np.abs(made / ROWS - counts / ROWS).sum() / 2
    assert found["distance"] == pytest.approx(distance, abs=0.02)
    assert 0 < found["expected_distance"] < 0.2
    largest = np.bincount(first * size + second).max() / ROWS
    assert found["outside_largest"] == pytest.approx(1 - largest)
    (alone,) = np.flatnonzero(support["columns"] == "age")
    ages = groups[records.domain.names.index("age")].max() + 1
    # The counts of single ages, whose noise would make this column useless, are no table of readers.
    assert (support["cells"][alone], support["grade"][alone]) == (ages, "accurate")
    usual = grade(True, found["distance"] + found["expected_distance"], found["outside_largest"])
    assert (usual, found["grade"]) == ("accurate", "rough" if assumed else "accurate")


TRADES = [f"trade {i}" for i in range(40)]


@pytest.mark.parametrize(("few", "graded"), [(4, "accurate"), (40, "rough")])
def test_merged_categories_of_most_records_are_rough_however_small_each_group_is(few, graded):
    """``few``: as many trades are common, and the others have one record each."""
    whole = from_yaml(PLAN.replace("KEEP", "9"), rows=4000)
    whole["columns"] = {
        "sex": whole["columns"]["sex"],
        "trade": {"type": "categorical", "categories": TRADES},
    }
    whole["releases"][0] |= {"columns": ["sex", "trade"], "bins": {}}
    plan, random = Plan.model_validate(whole), np.random.default_rng(4)
    release, trade = plan.built["pairs"], np.arange(ROWS) % few
    trade[: len(TRADES)] = np.arange(len(TRADES))
    cells = release.domain.pack(np.stack([random.integers(2, size=ROWS), trade], axis=1))
    exact = release.statistic(Tally.of(release.domain, cells, np.ones(ROWS, dtype=np.int64)))
    noisy = perturb(exact, release.mechanism, release.share, SeededSource(5))
    records = synthetic_records(plan, plan.synthesis[0], {"pairs": noisy}.__getitem__)
    support = records.support("people", noisy).columns
    assert dict(zip(support["columns"], support["grade"], strict=True))["sex x trade"] == graded
