"""A series, run for real: each run from the survey to a bundle that uses the earlier ones."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

from dpcore.accounting.budget import Budget
from dpcore.errors import BudgetError, InputError, PlanError
from schemas.plan import load_plan
from schemas.plan.selection import select
from tasks.bundle.reader import BundleReader
from tasks.bundle.verify import verify_budget
from tasks.ledger import Ledger
from tasks.workplace.home import ledger_url
from tests.conftest import write_plan

pytestmark = pytest.mark.usefixtures("prefect")

WEEKS = [1, 2, 3]


@pytest.fixture
def plan_path(tmp_path: Path) -> Path:
    """Persons who call for help, each in several weeks; a plan that counts each in one."""
    random = np.random.default_rng(4)
    calls = pd.DataFrame(
        {
            "person": random.integers(0, 300, 2000),
            "week": random.choice(WEEKS, 2000),
            "sex": random.choice(["F", "M"], 2000),
        }
    )
    calls.to_parquet(tmp_path / "calls.parquet")
    return write_plan(
        tmp_path,
        {
            "dprelease": 1,
            "dataset": "calls",
            "source": "calls.parquet",
            "rows": 1000,
            "privacy_unit": {"column": "person", "max_rows": 2},
            "neighbours": "add-remove",
            "series": {"period": "week", "periods": 3, "in_periods": 1},
            "budget": {"granted": {"alpha": "100"}, "requested": {"alpha": "20"}},
            "columns": {
                "week": {"type": "integer", "bounds": [1, 3]},
                "sex": {"type": "categorical", "categories": ["F", "M"]},
            },
            "releases": [{"name": "calls", "kind": "histogram", "columns": ["sex"]}],
            "publication": {"title": "Calls"},
        },
    )


def run(plan_path: Path, number: int | None, release_id: str) -> Path:
    from flows.release import release

    out, stated = str(plan_path.parent / "out"), {"series.run": number} if number else {}
    return Path(release(str(plan_path), release_id, out, stated))


@pytest.mark.slow
def test_three_runs_and_what_is_refused_costs_nothing(plan_path):
    with pytest.raises(InputError, match="lacks the bundle of run 1"):
        run(plan_path, 2, "second")
    bundles = [BundleReader.open(run(plan_path, n, f"week-{n}")) for n in (1, 2)]
    for number in (1, 2):
        with pytest.raises(BudgetError, match=f"was charged as release 'week-{number}'"):
            run(plan_path, number, "again")
    assert run(plan_path, 2, "week-2") == bundles[1].path  # a retry
    bundles.append(BundleReader.open(run(plan_path, None, "week-3")))  # the next one
    ledger = Ledger(ledger_url())
    assert ledger.release("calls", "again") == ledger.release("calls", "second") == {}
    assert ledger.spent("calls") == Budget.of(20)  # nobody is in two periods
    for bundle in bundles:
        verify_budget(bundle.manifest, ledger)
    with pytest.raises(InputError, match=r"all [0-9]+ periods were released"):
        run(plan_path, None, "week-4")

    calls = pd.read_parquet(plan_path.parent / "calls.parquet")
    first = calls.groupby("person")["week"].transform("min") == calls["week"]
    exact = calls[first].groupby(["person", "week"]).size().clip(upper=2).groupby("week").sum()
    for week, bundle in zip(WEEKS, bundles, strict=True):
        table = bundle.table("calls")
        for quantity, truth in (("period", exact[week]), ("to-date", exact[:week].sum())):
            these = table["quantity"] == quantity
            error = table["standard_error"][these][0] * 2**0.5
            assert abs(table["estimate"][these].sum() - truth) < 8 * error
    assert exact[3] > 0
    assert "in the first of its periods" in (bundles[2].path / "report.html").read_text()


@pytest.mark.slow
def test_a_scheduled_series_releases_the_period_that_was_due(plan_path):
    """In order: a run that was missed comes first."""
    document = yaml.safe_load(plan_path.read_text())
    schedule = {"cron": "0 6 2 * *", "since": "2026-02-01"}
    path = write_plan(plan_path.parent, document | {"operation": {"schedule": schedule}})
    with pytest.raises(InputError, match="name the period by its due time"):
        run(path, None, "whatever")
    with pytest.raises(InputError, match="due before the series began"):
        run(path, None, "plan-20260102-060000")
    run(path, None, "plan-20260202-060000")
    with pytest.raises(BudgetError, match="of run 2 was not charged"):
        run(path, None, "plan-20260402-060000")
    for month in (3, 4):
        run(path, None, f"plan-20260{month}02-060000")
    charges = Ledger(ledger_url()).releases("calls")
    assert [of["calls"].run for _, of in sorted(charges.items())] == [1, 2, 3]
    with pytest.raises(InputError, match=r"all [0-9]+ periods were released"):
        run(path, None, "plan-20260502-060000")


def test_a_series_is_scheduled_from_a_day_and_never_released_in_part(plan_path):
    document = yaml.safe_load(plan_path.read_text())
    schedule = {"operation": {"schedule": {"cron": "0 6 2 * *"}}}
    with pytest.raises(PlanError, match=r"operation.schedule.since: state the first day"):
        load_plan(write_plan(plan_path.parent, document | schedule))
    with pytest.raises(InputError, match="a series is released as a whole"):
        select(load_plan(write_plan(plan_path.parent, document)), [], 50)
