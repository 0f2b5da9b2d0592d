"""A Prefect server that asks the ledger before it accepts our forms, and stores proofs instead of
tokens.

The run resumes some time after the form was sent, and another person may decide meanwhile. So the server
records the decision when it receives the form. If the ledger refuses it, the form stays open and the
server answers with the reason.  Everybody who can open the page could read a token; a proof is valid
only for one run and one plan.  The server needs the ledger and the folder of plans.
"""

import json
from typing import TYPE_CHECKING, Any

from dpcore.errors import DPReleaseError, InputError
from flows.operation.identity import WORDS

if TYPE_CHECKING:
    from tasks.ledger import Ledger

APPROVAL = "approval"
"""The names of a run's forms for decisions begin with this."""

CONSENT = "consent"
"""The name of a form for a token begins with this; the digest of the plan follows."""

DIGEST = 64
"""The number of characters of a digest."""


def record_decisions() -> None:
    """Make the servers of this process record decisions and store no tokens."""
    from fastapi import HTTPException, status
    from fastapi.concurrency import run_in_threadpool
    from prefect.server import models

    known: Any = models  # Prefect's decorators hide return types
    flow_run_input, flow_runs, flows = known.flow_run_input, known.flow_runs, known.flows
    store = flow_run_input.create_flow_run_input

    async def recorded(session: Any, flow_run_input: Any) -> Any:
        name, of, last = flow_run_input.key.partition("-response")  # Prefect's name for an answer
        forms = {f"suspended-{APPROVAL}": _record, f"suspended-{CONSENT}-": _proven}
        take = next((forms[each] for each in forms if name.startswith(each)), None)
        if of and not last and take:
            run = await flow_runs.read_flow_run(session, flow_run_input.flow_run_id)
            flow = await flows.read_flow(session, run.flow_id)
            if flow.name in WORDS:
                try:
                    # In a thread, because the ledger may wait for a lock, and the server may not.
                    value = await run_in_threadpool(
                        take, flow.name, run, name, flow_run_input.value
                    )
                    flow_run_input = flow_run_input.model_copy(update={"value": value})
                except DPReleaseError as error:  # the run stays suspended
                    raise HTTPException(status.HTTP_409_CONFLICT, detail=str(error)) from None
        return await store(session=session, flow_run_input=flow_run_input)

    flow_run_input.create_flow_run_input = recorded


def _record(flow: str, run: Any, name: str, form: str) -> str:
    """Record the decision in the form; return the form unchanged."""
    from flows.operation.notify import names_of

    if run.deployment_id is None:
        raise InputError(
            "the deployment of this run was removed. Decide with `dprelease approve` or `dprelease"
            " reject`"
        )
    ledger = _ledger(
        "this server cannot record the decision: it needs DPRELEASE_LEDGER and DPRELEASE_PLANS."
        " Decide with `dprelease approve` or `dprelease reject`"
    )
    review = json.loads(form)
    ledger.decide(
        *names_of(flow, run),
        review["decision"] == "approve",
        who=review["name"],
        why=review["reason"],
    )
    return form


def _proven(flow: str, run: Any, name: str, form: str) -> str:
    """Replace the token in the form by a proof; raises ``InputError`` if the token is wrong."""
    from flows.operation.notify import names_of

    ledger = _ledger(
        "this server cannot check the token: it needs DPRELEASE_LEDGER and DPRELEASE_PLANS"
    )
    dataset, _ = names_of(flow, run)
    analyst = str(run.parameters.get("requester")).strip()
    found = ledger.allowance(dataset, analyst)
    found.require(json.loads(form)["token"].strip())
    digest = name.removeprefix(f"suspended-{CONSENT}-")[:DIGEST]
    return json.dumps({"token": found.proof(f"{run.id} {digest}")})


def _ledger(cannot: str) -> "Ledger":
    """The server's ledger; raises ``InputError`` with this message if it has none."""
    from tasks.ledger import Ledger
    from tasks.workplace.home import ledger_exists, ledger_url

    if not ledger_exists():
        raise InputError(cannot)
    return Ledger(ledger_url(), create=False)
