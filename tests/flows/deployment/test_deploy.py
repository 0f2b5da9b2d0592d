"""What is deployed: plans that are valid and whose schedules the budget covers for a year."""

import pytest
import yaml
from httpx import ConnectError

from dpcore.accounting.budget import Budget
from dpcore.errors import BudgetError
from flows.cli import main
from flows.deployment.deploy import Deployed, plans_to_deploy
from flows.operation.lost import POOL
from tasks.ledger import Ledger
from tests.bare import PLAN

MONTHLY = {"schedule": {"cron": "0 6 1 * *"}}


@pytest.fixture
def plans(tmp_path):
    folder = tmp_path / "plans"
    folder.mkdir()
    return folder


def put(folder, name: str, granted: str, **operation: object) -> None:
    """A plan that costs an alpha of 1 a run, for a dataset of its own name."""
    document = yaml.safe_load(PLAN) | {"dataset": name, "operation": operation}
    document["budget"]["granted"]["alpha"] = granted
    (folder / f"{name}.yaml").write_text(yaml.safe_dump(document))


def test_a_schedule_that_does_not_fit_is_skipped_like_a_plan_that_is_not_valid(
    plans, own_home, monkeypatch
):
    put(plans, "rich", "12", **MONTHLY)
    put(plans, "poor", "5", **MONTHLY)
    put(plans, "brave", "5", **MONTHLY, allow_exhaustion=True)
    put(plans, "seldom", "5")
    put(plans, "never", "5", schedule={"cron": "0 6 31 2 *"}, allow_exhaustion=True)
    (plans / "draft.yaml").write_text("dprelease: 1\n")
    monkeypatch.setattr("flows.deployment.deploy.log_line", (skipped := []).append)
    deployed, refused = plans_to_deploy(plans)
    assert list(deployed) == ["brave", "rich", "seldom"]
    assert len(skipped) == 3
    assert "draft.yaml: the plan is not valid" in skipped[0]
    assert "never comes due" in skipped[1]
    assert "which covers 5 more runs" in skipped[2]
    assert len(refused) == 1
    assert not (own_home / "ledger.sqlite").exists()


def test_the_ledger_decides_what_a_schedule_has_left(plans, capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("PREFECT_API_URL", "http://127.0.0.1:1/api")  # nobody answers there
    put(plans, "rich", "12", **MONTHLY)
    url = f"sqlite:///{tmp_path}/ledger.sqlite"
    ledger = Ledger(url)
    ledger.grant("rich", Budget.of(3), who="the board", why="a quarter")
    before = ledger.history()
    assert main(["deploy", "--plans", str(plans), "--ledger", url]) == 3
    said = capsys.readouterr()
    assert said.out == ""
    assert "no plan in this folder can be deployed" in said.err
    assert ledger.history() == before
    ledger.grant("rich", Budget.of(9), who="the board", why="the rest of the year")
    assert list(plans_to_deploy(plans)[0]) == ["rich"]


@pytest.mark.slow
def test_forms_and_approvals_are_served_where_no_plan_can_be_paid(plans, prefect):
    """Their deployments stay too: a run that waits for a decision needs its own."""
    from prefect.client.orchestration import get_client

    from flows.deployment.deploy import deploy

    def deployed() -> set[str]:
        with get_client(sync_client=True) as client:
            return {each.name for each in client.read_deployments()}

    requests = {"releases": ["people"], "part": "1/10"}
    put(plans, "poor", "12", **MONTHLY, requests=requests)
    assert set(deploy(plans, 2).names) >= {"release/poor", "ad hoc release/ad-hoc-release"}
    before = deployed()
    assert {"poor", "ad-hoc-release", "audit-a-plan"} <= before
    put(plans, "poor", "5", **MONTHLY, requests=requests)
    with pytest.raises(BudgetError, match="no plan in this folder can be deployed"):
        deploy(plans, 2)
    names, refused = deploy(plans, 2, own=True)
    assert names == []
    assert len(refused) == 1
    assert deployed() == before


@pytest.mark.slow
def test_a_run_chooses_nothing_of_its_process(plans, prefect):
    """Only the deployer's own worker is told a command: workers elsewhere have a Python of their own."""
    from prefect.client.orchestration import get_client

    from flows.deployment.deploy import deploy

    put(plans, "rich", "12", **MONTHLY)
    for own in (False, True):
        deploy(plans, 2, own=own)
        with get_client(sync_client=True) as client:
            template = client.read_work_pool(POOL).base_job_template
        assert "{{" not in str(template)
        assert template["variables"]["additionalProperties"] is False
        assert ("command" in template["job_configuration"]) == own


def test_the_exit_code_says_that_a_schedule_was_not_deployed(plans, capsys, monkeypatch):
    monkeypatch.setenv("PREFECT_API_URL", "http://127.0.0.1:1/api")
    result = Deployed(["release/rich"], [BudgetError("too little")])
    monkeypatch.setattr("flows.deployment.deploy.deploy", lambda *_: result)
    monkeypatch.setattr("flows.operation.lost.watch_over_runs", lambda: None)
    assert main(["deploy", "--plans", str(plans)]) == 3
    assert capsys.readouterr().out == "release/rich\n"
    monkeypatch.setattr("flows.deployment.deploy.deploy", lambda *_: Deployed(["release/rich"], []))
    assert main(["deploy", "--plans", str(plans)]) == 0


def test_a_server_that_is_not_there_has_its_own_exit_code(plans, capsys, monkeypatch):
    def unanswered(*_):
        raise ConnectError("refused")

    monkeypatch.setenv("PREFECT_API_URL", "http://127.0.0.1:1/api")
    monkeypatch.setattr("flows.deployment.deploy.deploy", unanswered)
    assert main(["deploy", "--plans", str(plans)]) == 7
    assert "the Prefect server at PREFECT_API_URL does not answer" in capsys.readouterr().err


def test_the_server_watches_over_the_runs_of_killed_workers_once(prefect, monkeypatch):
    from prefect.client.orchestration import get_client

    from flows.operation.lost import LOST, watch_over_runs

    for _ in range(2):
        watch_over_runs()
    with get_client(sync_client=True) as client:
        crashed, again = client.read_automations()
    assert crashed.actions[0].message == LOST
    assert crashed.actions[0].state == "CRASHED"
    assert again.actions[0].state == "SCHEDULED"
    for each in (crashed, again):
        assert "prefect.tag.dprelease" in str(each.trigger.match_related)
        assert each.enabled
    # A run that waits for an officer is heard of once more, and is not taken for a lost one.
    assert crashed.trigger.expect == {"prefect.flow-run.*"}
    assert "prefect.flow-run.Submitting" in again.trigger.after
    assert not again.trigger.after & again.trigger.expect


@pytest.mark.slow
def test_a_run_that_was_taken_long_ago_and_never_began_starts_again(prefect, plans, monkeypatch):
    from prefect.client.orchestration import get_client
    from prefect.states import Pending

    from flows.deployment.deploy import deploy
    from flows.operation import lost

    put(plans, "rich", "12", **MONTHLY)
    deploy(plans, 2)
    with get_client(sync_client=True) as client:
        form = client.read_deployment_by_name("release/rich")
        run = client.create_flow_run_from_deployment(form.id)
        client.set_flow_run_state(run.id, Pending(), force=True)
        lost.free_slots()
        assert client.read_flow_run(
            run.id
        ).state.is_pending()  # its worker may be about to begin it
        monkeypatch.setattr(lost, "FORGOTTEN_AFTER", -lost.BEGINS_WITHIN)  # as if it were long ago
        lost.free_slots()
        assert client.read_flow_run(run.id).state.is_scheduled()
        client.delete_flow_run(run.id)
