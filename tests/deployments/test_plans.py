"""The worked plans load, explain themselves without data, cover their tables and run on them."""

from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dpcore.accounting.budget import Budget, total
from schemas.plan import load_plan
from schemas.releases.margins import MarginsSection
from schemas.survey.columns import CategoricalColumn
from tasks.explain.explain import explain
from tasks.explain.runs import price_of_run, runs_left
from tasks.ledger import Ledger
from tasks.workplace.home import ledger_url
from tests.conftest import ROOT

PLANS = sorted((ROOT / "deployments" / "plans").glob("*.yaml"))
TABLES = {
    "acs_ma": "acs_nist_ma2019/ma2019.parquet",
    "adult": "adult_raw/adult_raw.parquet",
    "eusilc": "eusilc_households/eusilc.parquet",
    "eusilc_linked": "eusilc_households/eusilc.parquet",
    "fair": "fair_affairs/fair.parquet",
    "nltcs": "nltcs/nltcs.parquet",
}
"""Where the real table of a plan lies in the folder of test data."""

every_plan = pytest.mark.parametrize("path", PLANS, ids=lambda path: path.stem)


@pytest.fixture
def real_table(path: Path, test_data: Path) -> Path:
    """The real table of a plan; the test skips where it is absent."""
    table = test_data / TABLES[path.stem]
    if not table.is_file():
        pytest.skip(f"{TABLES[path.stem]} is not among the real tables")
    return table


def test_every_worked_plan_has_a_table_to_be_tried_on():
    assert {path.stem for path in PLANS} == set(TABLES)


@every_plan
def test_a_plan_loads_and_asks_for_less_than_it_was_granted(path):
    plan = load_plan(path)
    assert plan.budget.granted.budget.covers(plan.requested)
    assert plan.budget.requested.beta < 1 / plan.rows
    assert plan.synthesis
    assert all(column.description for column in plan.columns.values())


@every_plan
def test_a_plan_explains_its_cost_and_error_without_data(path):
    plan = load_plan(path, {"source": "nowhere.parquet"})
    text = explain(plan, None, Budget())
    assert plan.publication.title in text
    for section in plan.releases:
        assert text.count(section.name) >= 2  # what it costs, and how wrong it will be
    assert "would be refused" not in text


@every_plan
def test_what_a_plan_declares_covers_its_table(path, real_table):
    plan, table = load_plan(path), pd.read_parquet(real_table)
    if plan.adjacency.public_rows:
        assert len(table) == plan.rows
    assert set(plan.read_columns) <= set(table)
    for name, column in plan.columns.items():
        values = table[name].dropna()
        assert column.nullable or len(values) == len(table), name
        if isinstance(column, CategoricalColumn):
            kind = type(column.categories[0])
            assert {kind(value) for value in values.unique()} <= set(column.categories), name
        elif column.outside == "refuse":
            assert values.between(*column.bounds).all(), name


@pytest.mark.slow
@every_plan
def test_a_plan_runs_on_its_table_and_its_people_resemble_the_real_ones(
    path, real_table, tmp_path, prefect
):
    from flows.release import release

    plan = load_plan(path)
    bundle = Path(release(str(path), "r1", str(tmp_path / "out"), {"source": str(real_table)}))
    assert Ledger(ledger_url()).spent(plan.dataset) == plan.requested
    for synthesis in plan.synthesis:
        real = pd.read_parquet(real_table)
        if plan.weights and plan.section(synthesis.from_).counts_weights:
            real = real.sample(10**6, replace=True, weights=plan.weights.column, random_state=7)
        synthetic = pd.read_parquet(bundle / "microdata" / f"{synthesis.name}.parquet")
        assert len(synthetic) == synthesis.rows
        if not isinstance(plan.section(synthesis.from_), MarginsSection):
            continue
        coded = {
            name: (codes(real[name], column), codes(synthetic[name], column))
            for name, column in plan.columns.items()
            if name in synthetic and isinstance(column, CategoricalColumn)
        }
        # One hundredth for the small surveys, less for the others; chance does not double it.
        assert np.mean([distance(a, b) for a, b in coded.values()]) < 0.025
        pairs = [pair_distances(*coded[a], *coded[b]) for a, b in combinations(coded, 2)]
        as_published, independent = np.mean(pairs, axis=0)
        assert as_published < 0.85 * independent


def codes(values: pd.Series, column: CategoricalColumn) -> np.ndarray:
    """(rows,) positions in the list of categories; a null comes after the last."""
    kind = type(column.categories[0])
    positions = {category: i for i, category in enumerate(column.categories)}
    found = values.map(lambda value: positions[kind(value)], na_action="ignore")
    return found.fillna(len(positions)).to_numpy(dtype=np.int64)


def distance(real: np.ndarray, synthetic: np.ndarray) -> float:
    """Total variation between the shares of the codes in two tables."""
    size = max(real.max(), synthetic.max()) + 1
    shares = [np.bincount(table, minlength=size) / len(table) for table in (real, synthetic)]
    return float(np.abs(shares[0] - shares[1]).sum()) / 2


def pair_distances(
    real: np.ndarray, synthetic: np.ndarray, other_real: np.ndarray, other_synthetic: np.ndarray
) -> tuple[float, float]:
    """Distance of a real pair table from the synthetic one, and from independence."""
    base = max(other_real.max(), other_synthetic.max()) + 1
    pair = real * base + other_real
    shuffled = np.random.default_rng(7).permutation(other_real)
    return (
        distance(pair, synthetic * base + other_synthetic),
        distance(pair, real * base + shuffled),
    )


@pytest.mark.parametrize("name", ["events", "panel"])
def test_a_worked_series_fits_its_grant_to_the_last_run(name):
    plan = load_plan(ROOT / "deployments" / "series" / f"{name}.yaml")
    assert runs_left(plan, plan.budget.caps) == plan.series.periods == 12
    left = plan.budget.caps - total(price_of_run(plan, run) for run in range(1, 13))
    assert left.rho < plan.budget.caps.rho / 10  # and hardly anything is left
