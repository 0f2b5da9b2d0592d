"""A Prefect server that records a form's decision in the ledger before it accepts the form.

The run resumes later, or fails, and meanwhile another person may decide elsewhere.  So the ledger takes
the decision in the request that sends the form; where it refuses, the form stays open and the server
answers with the reason.  The server needs the ledger and the folder of plans.
"""

import json
from typing import Any

from dpcore.errors import DPReleaseError, InputError
from flows.operation.identity import WORDS

KEY = "approval"
"""What the names of a run's forms for decisions begin with."""


def record_decisions() -> None:
    """Have the servers of this process record decisions."""
    from fastapi import HTTPException, status
    from fastapi.concurrency import run_in_threadpool
    from prefect.server import models

    known: Any = models  # its decorators hide what they return
    flow_run_input, flow_runs, flows = known.flow_run_input, known.flow_runs, known.flows
    store = flow_run_input.create_flow_run_input

    async def recorded(session: Any, flow_run_input: Any) -> Any:
        name, of, last = flow_run_input.key.partition("-response")
        if of and not last and name.startswith(f"suspended-{KEY}"):
            run = await flow_runs.read_flow_run(session, flow_run_input.flow_run_id)
            flow = await flows.read_flow(session, run.flow_id)
            if flow.name in WORDS:
                try:
                    await run_in_threadpool(_record, flow.name, run, flow_run_input.value)
                except DPReleaseError as error:  # the run stays suspended
                    raise HTTPException(status.HTTP_409_CONFLICT, detail=str(error)) from None
        return await store(session=session, flow_run_input=flow_run_input)

    flow_run_input.create_flow_run_input = recorded


def _record(flow: str, run: Any, form: str) -> None:
    from flows.operation.notify import names_of
    from tasks.ledger import Ledger
    from tasks.workplace.home import ledger_exists, ledger_url

    if run.deployment_id is None:
        raise InputError(
            "the deployment of this run was removed. Decide with `dprelease approve` or `dprelease"
            " reject`"
        )
    if not ledger_exists():
        raise InputError(
            "this server cannot record the decision: it needs DPRELEASE_LEDGER and DPRELEASE_PLANS."
            " Decide with `dprelease approve` or `dprelease reject`"
        )
    review = json.loads(form)
    Ledger(ledger_url(), create=False).decide(
        *names_of(flow, run),
        review["decision"] == "approve",
        who=review["name"],
        why=review["reason"],
    )
