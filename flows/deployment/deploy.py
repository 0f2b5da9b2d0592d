"""Deploys an agency's plans to a Prefect server, as a work pool and these deployments:

    release/PLAN                   one for each plan, on its schedule if it has one
    ad hoc release/ad-hoc-release  a form: a plan, releases that it opens or wishes over its columns,
                                   and a part of its budget; none if no plan opens any
    audit/audit-a-plan             a form: which plan

Deploying again updates what has changed and keeps late runs, which are still due.  Deployments name
plans without a path, so that a worker on another machine finds them in its own folder.
"""

import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from prefect import Flow
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.actions import DeploymentScheduleCreate, WorkPoolCreate
from prefect.client.schemas.schedules import CronSchedule
from prefect.utilities.callables import parameter_schema

from dpcore.errors import BudgetError, InputError, PlanError
from flows.ad_hoc import ad_hoc
from flows.audit import audit
from flows.deployed import release_due
from flows.operation import engine
from flows.operation.exhaustion import (
    covered,
    deployments_with,
    pause_schedule,
    resume_schedules,
)
from flows.operation.lost import POOL, TAG
from schemas.plan import Plan, load_plan
from schemas.text import escape
from tasks.budget.schedule import require_first_year
from tasks.ledger import Ledger, ledger_if_any
from tasks.ledger.runs_and_grant import no_grant
from tasks.workplace.plans import plans_in
from tasks.workplace.schedule import due_times
from tasks.workplace.step import log_line

NO_VARIABLES = {"type": "object", "properties": {}, "additionalProperties": False}
"""A run cannot choose settings of its process. In Prefect's own template, people who start a run can set
its command, folder and environment, which names the ledger."""

FORMS = {"ad hoc release/ad-hoc-release", "audit/audit-a-plan"}
"""These deployments stay while a plan waits for its budget, because runs may wait for a decision."""


class Deployed(NamedTuple):
    """The names of the deployments, and why the schedules of other plans were refused."""

    names: list[str]
    refused: list[BudgetError]


def deploy(folder: Path, runs_at_once: int, *, own: bool = False) -> Deployed:
    """Deploy every plan in the folder to the configured Prefect server.

    ``own``: server and worker belong to this process, and continue even if no plan can be paid.

    A plan that is not valid, or whose schedule does not fit its budget (``require_first_year``), is
    logged and skipped, and its earlier deployment stays.  Raises ``InputError`` if no plan is valid, and
    ``BudgetError`` if none can be paid, unless the server is ``own``.
    """
    if ledger := ledger_if_any():
        ledger.require_whole()
    plans, refused = plans_to_deploy(folder)
    if not own and not plans:
        raise BudgetError(f"{folder}: no plan in this folder can be deployed")
    opened = {name: asked for name, plan in plans.items() if (asked := plan.operation.requests)}
    parts = [f"{name}: {each}" for name, asked in opened.items() for each in asked.releases]
    form = {"plan": list(opened)} | ({"releases": parts} if parts else {})
    columns = [
        escape(f"{name}: {', '.join(asked.columns)}")
        for name, asked in opened.items()
        if asked.columns
    ]
    say_what_lacks_a_grant(plans)
    with get_client(sync_client=True) as client:
        _make_pool(client, runs_at_once, own)
        # Read first, because deploying again removes the tag of an exhausted budget.
        resume_schedules()
        deployed = [
            _deploy(
                client,
                release_due,
                name,
                {"plan": name},
                _schedules(plan),
                {"plan": [name]},
                tags=[plan.dataset],
            )
            for name, plan in plans.items()
        ]
        if opened:
            more = "\n\n".join(["Columns that are open to wishes:", *columns] if columns else [])
            deployed.append(_deploy(client, ad_hoc, "ad-hoc-release", choices=form, more=more))
        if plans:
            deployed.append(_deploy(client, audit, "audit-a-plan", choices={"plan": list(plans)}))
        if ledger := ledger_if_any():
            ledger.mark_served()
            _pause_exhausted(client, plans, ledger)
        kept = {f"release/{name}" for name in plans_in(folder)} | {*deployed}
        _remove_others(client, kept | (FORMS if refused else set()))
    return Deployed(deployed, refused)


def plans_to_deploy(
    folder: Path, say: Callable[[str], None] | None = None
) -> tuple[dict[str, Plan], list[BudgetError]]:
    """The valid plans of the folder that fit their budget, by name, and the errors of those that do not.

    ``say``: called with the reason for each plan that is skipped; by default the log.
    """
    ledger = ledger_if_any()
    plans: dict[str, Plan] = {}
    refused: list[BudgetError] = []
    for name, path in plans_in(folder).items():
        try:
            plan = load_plan(path)
            _schedules(plan)
            require_first_year(plan, path, ledger, datetime.now(UTC))
        except (BudgetError, PlanError) as error:
            (say or log_line)(f"skipped: {error}")
            refused += [error] if isinstance(error, BudgetError) else []
        else:
            plans[name] = plan
    if not plans and not refused:
        raise InputError(f"{folder}: no plan in this folder can be deployed")
    return plans, refused


def say_what_lacks_a_grant(plans: Mapping[str, Plan]) -> None:
    """For each dataset without a grant, log the command that grants what its plan states."""
    ledger = ledger_if_any()
    for name, plan in plans.items():
        if ledger is None or ledger.account(plan.dataset) is None:
            log_line(f"{name}: {no_grant(plan)}")


def form_schema(flow: Flow[..., Any], choices: Mapping[str, list[str]]) -> dict[str, Any]:
    """The JSON Schema of a flow's form, with readable titles and the given choices."""
    schema = parameter_schema(flow.fn).model_dump_for_openapi()
    for name, field in schema["properties"].items():
        field["title"] = name.replace("_", " ").capitalize()
    for name, values in choices.items():
        field = schema["properties"][name]
        (field["items"] if field["type"] == "array" else field)["enum"] = values
    return schema


def _make_pool(client: SyncPrefectClient, runs_at_once: int, own: bool) -> None:
    # The path of Python on other machines is unknown here; their workers find it.
    command = {"command": f"{shlex.quote(sys.executable)} -m {engine.__name__}"} if own else {}
    template = {
        "job_configuration": {"stream_output": True} | command,
        "variables": NO_VARIABLES,
    }
    pool = WorkPoolCreate(
        name=POOL,
        type="process",
        description="Each run is a separate process on the worker's machine.",
        base_job_template=template,
        concurrency_limit=runs_at_once,
    )
    client.create_work_pool(pool, overwrite=True)


def _schedules(plan: Plan) -> list[DeploymentScheduleCreate]:
    due = plan.operation.schedule
    if due is None:
        return []
    next(due_times(due, datetime.now(UTC)))  # raises if there is none
    cron = CronSchedule(cron=due.cron, timezone=due.timezone)
    return [DeploymentScheduleCreate(schedule=cron, active=True)]


def _deploy(
    client: SyncPrefectClient,
    flow: Flow[..., Any],
    name: str,
    parameters: Mapping[str, Any] | None = None,
    schedules: list[DeploymentScheduleCreate] | None = None,
    choices: Mapping[str, list[str]] | None = None,
    tags: Sequence[str] = (),
    more: str = "",
) -> str:
    client.create_deployment(
        flow_id=client.create_flow(flow),
        name=name,
        description="\n\n".join(filter(None, (flow.description, more))),
        entrypoint=f"{flow.fn.__module__}:{flow.fn.__name__}",
        parameters=dict(parameters or {}),
        schedules=schedules,
        parameter_openapi_schema=form_schema(flow, choices or {}),
        enforce_parameter_schema=True,
        work_pool_name=POOL,
        tags=[TAG, *tags],
    )
    return f"{flow.name}/{name}"


def _pause_exhausted(client: SyncPrefectClient, plans: Mapping[str, Plan], ledger: Ledger) -> None:
    for name, plan in plans.items():
        if plan.operation.schedule and not covered(plan, ledger):
            pause_schedule(client, client.read_deployment_by_name(f"release/{name}").id)
            log_line(f"{name}: its schedule is paused until {plan.dataset} is granted more")


def _remove_others(client: SyncPrefectClient, kept: set[str]) -> None:
    """Remove the deployments of plans that no longer exist; their past runs stay."""
    for deployment in deployments_with(client, TAG):
        flow = client.read_flow(deployment.flow_id).name
        if f"{flow}/{deployment.name}" not in kept:
            client.delete_deployment(deployment.id)
