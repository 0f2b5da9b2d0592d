"""An analyst's token in a form: checked by the server, stored nowhere, and good for one plan and run."""

import json
from types import SimpleNamespace

import httpx
import pytest
from prefect.client.orchestration import get_client
from prefect.input.run_input import keyset_from_base_key
from prefect.states import Suspended

from dpcore.accounting.budget import Budget
from dpcore.errors import BudgetError, InputError
from flows.ad_hoc import ad_hoc
from flows.operation import form
from flows.operation.decisions import CONSENT, record_decisions
from flows.operation.form import Consent
from flows.question import select_releases
from schemas.first_plan.wishes import Said
from tasks.ledger import Ledger
from tasks.workplace.home import ledger_url
from tests.flows.search import occurrences
from tests.flows.test_ad_hoc import OPENED, open_columns

WHO_WHY = {"who": "A. Officer", "why": "a thesis"}
ANALYST = "B. Analyst"
ASKED = {"plan": "plan", "tables": ["sex x region"], "alpha": "1", "requester": ANALYST}


@pytest.fixture
def ledger(plan_path, monkeypatch) -> Ledger:
    """A ledger in which an analyst has an allowance; the plan opens columns to wishes."""
    open_columns(plan_path, OPENED)
    monkeypatch.setenv("DPRELEASE_PLANS", str(plan_path.parent))
    monkeypatch.setenv("DPRELEASE_OUT", str(plan_path.parent / "out"))
    ledger = Ledger(ledger_url())
    ledger.grant("survey", Budget.of(10, "1e-5"), **WHO_WHY)
    return ledger


def chosen():
    said = Said(tables=ASKED["tables"])
    return select_releases("plan", [], ASKED["alpha"], "", ANALYST, said)[0]


@pytest.fixture
def waiting(prefect, ledger, monkeypatch):
    """A run of a deployment that waits for the token of its analyst."""
    from prefect.server.models import flow_run_input

    plain = flow_run_input.create_flow_run_input
    monkeypatch.setattr(flow_run_input, "create_flow_run_input", plain)
    record_decisions()
    token = ledger.allow("survey", ANALYST, Budget.of(1), **WHO_WHY)
    digest = chosen().digest
    with get_client(sync_client=True) as client:
        deployment = client.create_deployment(client.create_flow(ad_hoc), "ad-hoc-release")
        run = client.create_flow_run_from_deployment(deployment, parameters=ASKED)
        key = keyset_from_base_key(f"suspended-{CONSENT}-{digest}")
        schema = Consent.model_json_schema()
        client.create_flow_run_input(run.id, key["schema"], json.dumps(schema))
        state = Suspended(pause_key=f"{CONSENT}-{digest}", timeout_seconds=600)
        state.state_details.run_input_keyset = key
        client.set_flow_run_state(run.id, state, force=True)

        def stored() -> str:
            return json.loads(client.read_flow_run_input(run.id, key["response"]))["token"]

        yield SimpleNamespace(
            send=lambda token: client.resume_flow_run(run.id, run_input={"token": token}),
            state=lambda: client.read_flow_run(run.id).state.name,
            stored=stored,
            token=token,
            run=run,
            digest=digest,
        )
        client.delete_deployment(deployment)


def consent(monkeypatch, given: str, run: object) -> None:
    """What the run does with a form that holds this."""
    monkeypatch.setattr(form, "deployment", SimpleNamespace(id="a deployment"))
    monkeypatch.setattr(form, "flow_run", SimpleNamespace(id=run))
    monkeypatch.setattr(form, "_suspended", lambda **_: SimpleNamespace(token=given))
    form.await_token(chosen())


@pytest.mark.slow
def test_the_server_stores_a_proof_that_the_run_believes(waiting, ledger, monkeypatch):
    waiting.send(f" {waiting.token} ")
    assert waiting.state() == "Resuming"
    proof = waiting.stored()
    assert waiting.token not in proof
    consent(monkeypatch, proof, waiting.run.id)
    with pytest.raises(InputError, match="stored the form as it was sent"):
        consent(monkeypatch, proof, "another run")
    monkeypatch.setitem(ASKED, "alpha", "0.9")
    with pytest.raises(InputError):
        consent(monkeypatch, proof, waiting.run.id)


@pytest.mark.slow
@pytest.mark.parametrize("sent", ["of another", "an old one", "a proof", "the key"])
def test_another_token_is_refused_and_the_form_stays_open(waiting, ledger, sent):
    known = ledger.allowances("survey")[ANALYST]
    tokens = {
        "of another": ledger.allow("survey", "C. Analyst", Budget.of(1), **WHO_WHY),
        "a proof": known.proof(f"{waiting.run.id} {waiting.digest}"),
        "the key": known.key,
        "an old one": waiting.token,
    }
    if sent == "an old one":
        ledger.allow("survey", ANALYST, Budget(), **WHO_WHY)
    with pytest.raises(httpx.HTTPStatusError) as refused:
        waiting.send(tokens[sent])
    assert "not the analyst's newest token" in refused.value.response.json()["detail"]
    assert waiting.state() == "Suspended"


@pytest.mark.slow
def test_a_token_that_the_server_stored_is_refused(waiting, monkeypatch):
    """Prefect's own server keeps what forms say, so that others may know the token."""
    with pytest.raises(InputError, match="Ask the agency for a new one"):
        consent(monkeypatch, waiting.token, waiting.run.id)


@pytest.mark.slow
def test_where_analysts_have_allowances_a_request_waits_for_a_token(prefect, ledger, monkeypatch):
    from flows import ad_hoc as flow

    ledger.allow("survey", ANALYST, Budget.of(1), **WHO_WHY)
    agreed = []
    monkeypatch.setattr(flow, "await_token", lambda plan: agreed.append(plan.publication.requester))
    bundle = flow.ad_hoc(**ASKED)
    assert agreed == [ANALYST]
    assert ledger.allowances("survey")[ANALYST].left.alpha == 0
    for requester, says in ((ANALYST, "left 0 of 1 allowed"), ("C. Analyst", "has no allowance")):
        with pytest.raises(BudgetError, match=says):
            flow.ad_hoc(**ASKED | {"alpha": "0.2", "requester": requester})
    assert agreed == [ANALYST]
    assert ledger.release("survey", bundle.rpartition("/")[2])


@pytest.mark.slow
def test_a_token_given_in_a_served_form_publishes_and_is_found_nowhere(served):
    token = served.ledger.allow("thesis", ANALYST, Budget.of(1), **WHO_WHY)
    run = served.ask("thesis", tables=["sex x region"], alpha="0.5", requester=ANALYST)["id"]
    waits = served.settled(run)
    assert waits["state_type"] == "PAUSED", waits["state"]["message"]
    told = served.artifact(run, "cost-and-accuracy")["data"]
    assert "| allowance left afterwards | 0.5 |" in told
    assert served.ledger.spent("thesis") == Budget()
    with pytest.raises(httpx.HTTPStatusError, match="409"):
        served.answer(run, token="0" * 32)
    served.answer(run, token=token)
    ended = served.settled(run)
    assert ended["state_type"] == "COMPLETED", ended["state"]["message"]
    assert served.ledger.allowances("thesis")[ANALYST].left.alpha == Budget.of("1/2").alpha
    assert len(list((served.out / "thesis").iterdir())) == 1
    assert occurrences(served.folder, [token]) == []
