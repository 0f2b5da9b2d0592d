"""The default release id of a run, made from public facts that never change.

A scheduled run is named by the time at which it was due, so that a late, repeated or resumed run is
the same release.  If a person started the run, the release id also contains four letters of the run's
id, which distinguish runs of the same second.
"""

from pathlib import Path

from prefect.client.schemas.objects import FlowRun
from prefect.context import FlowRunContext

from dpcore.errors import InputError
from tasks.workplace.schedule import run_id

WORDS = {"release": "", "ad hoc release": "ad-hoc", "audit": "audit"}
"""The word of each flow in the release ids of its runs."""


def own_release_id(plan: str) -> str:
    """The release id of the current run, for the plan of this name or path."""
    context = FlowRunContext.get()
    assert context is not None
    assert context.flow is not None
    return release_id_of(context.flow.name, current_run(), plan)


def current_run() -> FlowRun:
    """The flow run in which this function is called."""
    context = FlowRunContext.get()
    assert context is not None
    assert context.flow_run is not None
    return context.flow_run


def refuse_in_deployment() -> None:
    """Raise ``InputError`` in a run of a deployment, because this flow accepts any arguments."""
    context = FlowRunContext.get()
    run = context.flow_run if context else None
    if run and run.deployment_id:
        raise InputError(
            "a deployment may not run this flow, because it accepts any plan with any changes; deploy"
            " the plans again with `dprelease deploy`"
        )


def release_id_of(flow: str, run: FlowRun, plan: str) -> str:
    """The release id of a run of the named flow."""
    assert run.expected_start_time is not None
    own = "" if run.auto_scheduled else str(run.id)[-4:]
    return run_id(Path(plan), run.expected_start_time, WORDS[flow], own)
