"""Pauses a schedule that its dataset's budget no longer covers, and resumes it after a grant.

Otherwise such a schedule would fail at every due time.  Deployments that are paused here get the tag
``budget exhausted``. Deployments that a person paused lack the tag and stay paused.
"""

from pathlib import Path
from uuid import UUID

from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.actions import DeploymentUpdate
from prefect.client.schemas.filters import DeploymentFilter, DeploymentFilterTags
from prefect.client.schemas.responses import DeploymentResponse

from dpcore.errors import BudgetError, InputError
from schemas.plan import Plan, load_plan
from tasks.budget.charge import require_budget
from tasks.ledger import Ledger, ledger_if_any
from tasks.ledger.runs_and_grant import at_its_run
from tasks.workplace.job import ReleaseJob
from tasks.workplace.plans import known_plan
from tasks.workplace.step import log_line

EXHAUSTED = "budget exhausted"

NEXT = "(next)"
"""A placeholder for the release id of a future run; no release can have this id."""


def deployments_with(client: SyncPrefectClient, tag: str) -> list[DeploymentResponse]:
    """Every deployment with this tag."""
    tagged = DeploymentFilter(tags=DeploymentFilterTags(all_=[tag]))
    found: list[DeploymentResponse] = []
    # Page by page, because a server lists at most 200 at a time.
    while some := client.read_deployments(deployment_filter=tagged, offset=len(found)):
        found += some
    return found


def pause_schedule(client: SyncPrefectClient, deployment: UUID) -> None:
    """Pause a deployment until ``resume_schedules`` finds that its dataset's budget covers it again."""
    # Tagged before it is paused: without the tag, only a person would resume it.
    tags = [*{*client.read_deployment(deployment).tags, EXHAUSTED}]
    client.update_deployment(deployment, DeploymentUpdate(tags=sorted(tags)))
    client.pause_deployment(deployment)


def resume_schedules() -> list[str]:
    """Resume every schedule that was paused for lack of budget and is covered now; returns their plans.

    Due times that passed meanwhile are late releases, which ``notify_late`` reports.
    """
    resumed = []
    with get_client(sync_client=True) as client:
        for deployment in deployments_with(client, EXHAUSTED):
            name = deployment.name
            try:
                plan = load_plan(known_plan(name))
                ledger = ledger_if_any()
                affordable = ledger is not None and covered(plan, ledger)
            except InputError:  # the plan is gone or no longer valid: it stays paused
                continue
            if affordable:
                # In this order: a paused schedule without the tag would not be found again.
                client.resume_deployment(deployment.id)
                tags = [tag for tag in deployment.tags if tag != EXHAUSTED]
                client.update_deployment(deployment.id, DeploymentUpdate(tags=tags))
                log_line(f"{name}: the budget covers another run; its schedule is resumed")
                resumed.append(name)
    return resumed


def covered(plan: Plan, ledger: Ledger) -> bool:
    """Whether the ledger would allow the plan's next run; nothing is charged."""
    if ledger.account(plan.dataset) is None:
        return False
    try:
        # Nothing is published here, and this process need not know the folder of bundles.
        require_budget(ReleaseJob(at_its_run(plan, ledger), NEXT, Path()), ledger)
    except (BudgetError, InputError):  # no budget, or a series without another run
        return False
    return True
