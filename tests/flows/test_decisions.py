"""A form's decision is in the ledger as soon as the server accepts the form, and never after another."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import httpx
import numpy as np
import pytest
from prefect.client.orchestration import get_client
from prefect.input.run_input import keyset_from_base_key
from prefect.states import Suspended

from dpcore.accounting.budget import Budget
from dpcore.errors import ApprovalError, LedgerError
from dpcore.line.statistic import Noisy
from flows.cli import main
from flows.deployed import release_due
from flows.operation.decisions import record_decisions
from flows.operation.form import Review
from flows.operation.identity import release_id_of
from tasks.ledger import Charge, ChargeRequest, Ledger
from tasks.workplace.home import ledger_url

pytestmark = pytest.mark.usefixtures("prefect")


@pytest.fixture
def waiting(plan_path, monkeypatch) -> Iterator[SimpleNamespace]:
    """A run of a deployment whose draws wait for a decision in a form; nothing will resume it."""
    from prefect.server.models import flow_run_input

    plain = flow_run_input.create_flow_run_input
    monkeypatch.setattr(flow_run_input, "create_flow_run_input", plain)
    record_decisions()
    monkeypatch.setenv("DPRELEASE_PLANS", str(plan_path.parent))
    name = plan_path.stem
    with get_client(sync_client=True) as client:
        deployment = client.create_deployment(client.create_flow(release_due), name)
        run = client.create_flow_run_from_deployment(deployment, parameters={"plan": name})
        key = keyset_from_base_key("suspended-approval")
        schema = Review.model_json_schema()
        client.create_flow_run_input(run.id, key["schema"], json.dumps(schema))
        state = Suspended(pause_key="approval", timeout_seconds=600)
        state.state_details.run_input_keyset = key
        client.set_flow_run_state(run.id, state, force=True)
        release_id = release_id_of("release", run, name)
        ledger = Ledger(ledger_url())
        ledger.grant("survey", Budget.of(2), who="the board", why="a test")
        ledger.reserve(ChargeRequest("survey", release_id, "digest", {"a": Charge(Budget.of(1))}))
        ledger.commit("survey", release_id, "a", Noisy(np.array([1])))

        def send(decision: str) -> Any:
            answer = {"decision": decision, "name": "C. Officer", "reason": "as the rules say"}
            return client.resume_flow_run(run.id, run_input=answer)

        def pass_deadline() -> None:
            state.state_details.pause_timeout = datetime.now(UTC) - timedelta(seconds=1)
            client.set_flow_run_state(run.id, state, force=True)

        def state_name() -> str:
            return client.read_flow_run(run.id).state.name

        yield SimpleNamespace(
            send=send,
            state=state_name,
            ledger=ledger,
            id=release_id,
            run=run,
            pass_deadline=pass_deadline,
        )
        client.delete_deployment(deployment)


def decide(verb: str, release_id: str) -> int:
    return main([verb, "survey", release_id, "--who", "D. Director", "--why", "it is urgent"])


@pytest.mark.slow
def test_a_rejection_in_a_form_stays_when_another_person_approves_before_the_run_resumes(
    waiting, capsys
):
    waiting.send("reject")
    assert waiting.state() == "Resuming"
    assert decide("approve", waiting.id) == 1
    said = capsys.readouterr().err
    assert "was rejected by C. Officer (as the rules say)" in said
    assert "a decision is final" in said
    assert waiting.ledger.decision("survey", waiting.id).approved is False
    with pytest.raises(ApprovalError, match=r"rejected by C\. Officer"):
        waiting.ledger.seal("survey", waiting.id, "0" * 64)


@pytest.mark.slow
def test_a_form_that_contradicts_an_earlier_decision_is_refused_and_stays_open(waiting):
    assert decide("reject", waiting.id) == 0
    with pytest.raises(httpx.HTTPStatusError) as refused:
        waiting.send("approve")
    assert "rejected by D. Director" in refused.value.response.json()["detail"]
    assert waiting.state() == "Suspended"
    waiting.send("reject")
    assert waiting.state() == "Resuming"
    assert waiting.ledger.decision("survey", waiting.id).who == "D. Director"


@pytest.mark.slow
def test_a_form_is_refused_where_the_server_cannot_record_it(waiting, monkeypatch, tmp_path):
    monkeypatch.setenv("DPRELEASE_LEDGER", f"sqlite:///{tmp_path}/none.sqlite")
    with pytest.raises(httpx.HTTPStatusError) as refused:
        waiting.send("reject")
    assert "it needs DPRELEASE_LEDGER" in refused.value.response.json()["detail"]
    assert waiting.state() == "Suspended"


@pytest.mark.slow
def test_a_form_that_says_nothing_valid_records_nothing(waiting):
    waiting.send("maybe")
    assert waiting.state() == "Suspended"
    assert waiting.ledger.decision("survey", waiting.id) is None


def test_a_form_that_prefects_own_server_accepted_is_compared_when_its_run_resumes(
    waiting, monkeypatch
):
    """That server records nothing itself: so a run never publishes over what its form says."""
    from flows.operation import form
    from schemas.plan import load_plan
    from tasks.workplace.job import ReleaseJob
    from tasks.workplace.plans import known_plan

    waiting.ledger.decide("survey", waiting.id, True, who="D. Director", why="it is urgent")
    known = waiting.ledger.decision("survey", waiting.id)
    monkeypatch.setattr(form, "show_preview", lambda *_: None)
    monkeypatch.setattr(form, "notify_once", lambda *_: None)
    monkeypatch.setattr(form, "deployment", SimpleNamespace(id=waiting.run.deployment_id))
    monkeypatch.setattr(form, "flow_run", SimpleNamespace(id=str(waiting.run.id)))
    review = Review(decision="reject", name="C. Officer", reason="too fine")
    monkeypatch.setattr(form, "suspend_flow_run", lambda **_: review)
    job = ReleaseJob(load_plan(known_plan("plan")), waiting.id)
    assert form.ask_in_form(job, None, known) == known  # its form is still open
    monkeypatch.setattr(form, "_answers", lambda _: [True])
    with pytest.raises(LedgerError, match=r"approved by D\. Director .* a decision is final"):
        form.ask_in_form(job, None, known)


@pytest.mark.slow
def test_rejecting_what_is_published_says_to_withdraw_it(waiting, capsys):
    waiting.ledger.seal("survey", waiting.id, "0" * 64)
    assert decide("reject", waiting.id) == 0
    assert "withdraw the bundle" in capsys.readouterr().out


@pytest.mark.slow
def test_approving_what_asks_for_no_approval_says_so(waiting, capsys):
    assert decide("approve", waiting.id) == 0
    assert "no run of this release asks for approval" in capsys.readouterr().out
    waiting.ledger.ask_approval("survey", waiting.id)
    assert decide("approve", waiting.id) == 0
    said = capsys.readouterr().out
    assert "asks for approval" not in said
    assert "to publish, run the plan again" in said


@pytest.mark.slow
def test_a_form_after_its_deadline_records_nothing_and_the_command_line_still_decides(waiting):
    waiting.pass_deadline()
    assert "timed out" in waiting.send("approve").details.reason
    assert waiting.ledger.decision("survey", waiting.id) is None
    assert waiting.state() == "Failed"
    assert decide("approve", waiting.id) == 0
    assert waiting.ledger.decision("survey", waiting.id).who == "D. Director"
