"""The worked plans load, explain themselves without data, cover their tables and run on them."""

from pathlib import Path

import pandas as pd
import pytest

from dpcore.accounting.budget import Budget, total
from schemas.plan import load_plan
from schemas.survey.columns import CategoricalColumn
from tasks.explain.explain import explain
from tasks.explain.runs import price_of_run, runs_left
from tasks.ledger import Ledger
from tasks.report.page import REPORT
from tasks.workplace.home import ledger_url
from tests.bare import leave_out_audits, release
from tests.conftest import ROOT, short_fits

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


@pytest.mark.slow
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
def test_a_plan_runs_on_its_table(path, real_table, tmp_path, monkeypatch):
    plan = load_plan(path)
    if path.stem != "fair":  # one audit is enough; the demo of the pages has a long fit
        leave_out_audits(monkeypatch.setattr)
    with short_fits():
        bundle = release(path, "r1", tmp_path / "out", source=str(real_table))
    assert Ledger(ledger_url()).spent(plan.dataset) == plan.requested
    for synthesis in plan.synthesis:
        synthetic = pd.read_parquet(bundle / "microdata" / f"{synthesis.name}.parquet")
        assert len(synthetic) == synthesis.rows
    page = (bundle / REPORT).read_text(encoding="utf-8")
    assert len(page) < 1_000_000
    assert all(name in page for name in (plan.publication.title, *plan.built))


@pytest.mark.parametrize("name", ["events", "panel"])
def test_a_worked_series_fits_its_grant_to_the_last_run(name):
    plan = load_plan(ROOT / "deployments" / "series" / f"{name}.yaml")
    assert runs_left(plan, plan.budget.caps) == plan.series.periods == 12
    left = plan.budget.caps - total(price_of_run(plan, run) for run in range(1, 13))
    assert left.rho < plan.budget.caps.rho / 10  # and hardly anything is left
