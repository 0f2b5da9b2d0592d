"""What deployments run: whoever starts a run chooses nothing that the agency has not opened."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from uuid import uuid4

import pytest
import yaml
from prefect.client.schemas.objects import FlowRun
from prefect.context import FlowRunContext
from prefect.utilities.callables import parameter_schema

from dpcore.accounting.budget import Budget
from dpcore.errors import BudgetError, InputError
from flows.audit import audit
from flows.deployed import CLOCKS_DIFFER, deployed_run, release_due, require_due
from flows.deployment.deploy import say_what_lacks_a_grant
from flows.operation.notify import names_of
from schemas.plan import load_plan
from tasks.ledger import Ledger
from tasks.workplace.home import ledger_exists, ledger_url
from tasks.workplace.places import FLOW_RUN
from tests.bare import PLAN, leave_out_audits, release, small_plan

NOW = datetime(2027, 3, 15, 12, tzinfo=UTC)
MARCH = datetime(2027, 3, 1, 6, tzinfo=UTC)
PLANS = Path("plans/visits.yaml")


@pytest.fixture
def plan(monkeypatch):
    """A plan that is due at six on the first of each month."""

    def due_monthly(**schedule):
        document = yaml.safe_load(PLAN)
        document["operation"] = {"schedule": {"cron": "0 6 1 * *"} | schedule}
        return load_plan(document)

    class Clock(datetime):
        @classmethod
        def now(cls, tz=None):
            return NOW

    monkeypatch.setattr("flows.deployed.datetime", Clock)
    return due_monthly


def test_what_is_due_is_released_at_its_time_and_late(plan):
    for since in ("2027-03-01", "2026-01-01"):
        require_due(plan(since=since), PLANS, MARCH, None, [])
    require_due(plan(), PLANS, MARCH, MARCH - timedelta(days=1), [])
    require_due(plan(), PLANS, MARCH, NOW, ["visits-20270201-060000"])
    require_due(plan(since="2027-03-01", cron="1 12 15 3 *"), PLANS, NOW + CLOCKS_DIFFER, None, [])


@pytest.mark.parametrize(
    ("schedule", "due", "deployed", "made"),
    [
        ({"since": "2027-03-01"}, datetime(2027, 4, 1, 6, tzinfo=UTC), None, []),
        ({"since": "2027-01-01"}, MARCH + timedelta(seconds=1), None, []),
        ({"since": "2027-01-01", "timezone": "Asia/Kathmandu"}, MARCH, None, []),
        ({}, MARCH, NOW, []),
        ({"since": "2026-01-01"}, datetime(2027, 2, 1, 6, tzinfo=UTC), None, []),
        ({"cron": "0 6 1,15 * *", "since": "2026-01-01"}, MARCH, None, []),
        ({}, MARCH, NOW, ["visits-20270315-060000", "visits-ad-hoc-20270101-060000"]),
        ({}, datetime(1970, 1, 1, 6, tzinfo=UTC), MARCH, ["visits-20270301-060000"]),
    ],
)
def test_what_the_schedule_does_not_say_is_refused(plan, schedule, due, deployed, made):
    with pytest.raises(InputError, match="nothing was charged"):
        require_due(plan(**schedule), PLANS, due, deployed, made)


def test_a_run_of_a_series_is_not_overtaken_by_the_next(plan):
    february = datetime(2027, 2, 1, 6, tzinfo=UTC)
    with pytest.raises(
        InputError, match=r"out of date: another was due at 2027-03-01T06:00.*--due 2027-02-01T06"
    ):
        require_due(plan(since="2026-01-01"), PLANS, february, None, [])
    series = plan(since="2026-01-01").model_copy(update={"series": object()})
    require_due(series, PLANS, february, None, [])


def test_a_plan_without_a_schedule_is_released_where_the_ledger_is():
    with pytest.raises(InputError, match=r"dprelease run visits\.yaml"):
        require_due(load_plan(yaml.safe_load(PLAN)), PLANS, MARCH, None, [])


def test_a_runnames_of_a_plan_and_nothing_else():
    assert set(parameter_schema(release_due.fn).properties) == {"plan"}
    assert set(parameter_schema(audit.fn).properties) == {"plan", "quick"}


@pytest.fixture
def in_a_run(monkeypatch):
    """Have the caller believe that such a run has called."""

    def believe(**facts):
        run = FlowRun(flow_id=uuid4(), parameters={}, **facts)
        monkeypatch.setattr(FlowRunContext, "get", lambda: SimpleNamespace(flow_run=run))
        return run

    return believe


def test_the_flows_of_the_command_line_are_not_those_of_deployments(in_a_run, tmp_path, own_home):
    in_a_run(deployment_id=uuid4())
    with pytest.raises(InputError, match="a deployment may not run this flow"):
        release(small_plan(tmp_path), "r1", tmp_path / "out")
    assert not ledger_exists()
    in_a_run()
    with pytest.raises(InputError, match="only a deployment runs this flow"):
        deployed_run()


def test_a_run_with_an_environment_of_its_own_is_refused(in_a_run):
    in_a_run(deployment_id=uuid4(), job_variables={"env": {"DPRELEASE_LEDGER": "sqlite:////x"}})
    with pytest.raises(InputError, match="job variables"):
        deployed_run()


def test_a_notice_of_a_deployment_s_run_believes_no_path_and_no_change(tmp_path, monkeypatch):
    (tmp_path / "plans").mkdir()
    monkeypatch.setenv("DPRELEASE_PLANS", str(tmp_path / "plans"))
    path = small_plan(tmp_path)
    asked = {"plan": str(path), "overrides": {"dataset": "evil"}, "release_id": "evil"}
    facts = {"flow_id": uuid4(), "parameters": asked, "expected_start_time": NOW}
    assert names_of("release", FlowRun(**facts)) == ("evil", "evil")
    dataset, release_id = names_of("release", FlowRun(deployment_id=uuid4(), **facts))
    assert dataset == "plan plan"
    assert release_id.startswith("plan-20270315-120000-")


@pytest.mark.slow
@pytest.mark.parametrize("served", [True, False])
def test_a_worker_s_run_grants_nothing_and_says_which_command_does(
    tmp_path, own_home, monkeypatch, served
):
    leave_out_audits(monkeypatch.setattr)
    plan, ledger = small_plan(tmp_path), f"sqlite:///{tmp_path}/ledger.sqlite"
    monkeypatch.setenv("DPRELEASE_LEDGER", ledger)
    if served:  # and then nobody's first use does
        Ledger(ledger).mark_served()
    else:
        monkeypatch.setenv(FLOW_RUN, "a run of a worker")
    command = "dprelease ledger grant survey --alpha 2 --who WHO --why WHY"
    with pytest.raises(BudgetError, match=command):
        release(plan, "r1", tmp_path / "out")
    assert not ledger_exists() or Ledger(ledger_url()).datasets() == []
    Ledger(ledger).grant("survey", Budget.of(2), "the board", "a year")
    release(plan, "r1", tmp_path / "out")
    assert Ledger(ledger).spent("survey") == Budget.of(1)


def test_deploying_says_which_plans_lack_a_grant(tmp_path, own_home, monkeypatch):
    monkeypatch.setattr("flows.deployment.deploy.log_line", (said := []).append)
    document = yaml.safe_load(PLAN)
    document["budget"] = {
        "composition": "concentrated",
        "granted": {"alpha": "1/3", "beta": "1e-6"},
        "requested": {"part": "1/12"},
    }
    plans = {"visits": load_plan(document), "other": load_plan(document | {"dataset": "other"})}
    Ledger(ledger_url()).grant("other", Budget.of(1), "the board", "a year")
    say_what_lacks_a_grant(plans)
    (words,) = said
    assert "grant survey --alpha 1/3 --beta 1e-06 --composition concentrated --who" in words
