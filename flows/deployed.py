"""The flow that deployments of plans run: a person who starts a run can only name a plan of the agency.

Prefect's API accepts any arguments and any time from everybody who can open its page, and they can
switch off the form's checks. So each flow limits what it does: ``release/PLAN`` here makes only releases
that are due on the plan's schedule, ``flows.audit`` reads no survey, and ``flows.ad_hoc`` checks that
the plan opens what is requested.
"""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from prefect.client.orchestration import get_client
from prefect.client.schemas.objects import FlowRun

from dpcore.errors import InputError
from flows.course import carry_out
from flows.operation.embedded import flow
from flows.operation.identity import current_run
from flows.operation.notify import HOOKS
from flows.operation.parallel import task_runner
from schemas.plan import Plan, load_plan
from tasks.ledger import ledger_if_any
from tasks.ledger.runs_and_grant import at_its_run
from tasks.workplace.job import ReleaseJob
from tasks.workplace.plans import known_plan
from tasks.workplace.schedule import beginning, due_times, local_text, run_id

CLOCKS_DIFFER = timedelta(minutes=1)
"""A worker's clock may be behind its server's by this time."""


@flow(name="release", flow_run_name="release: {plan}", task_runner=task_runner(), **HOOKS)
def release_due(plan: str) -> str:
    """Publish the release of a plan that is due on its schedule.

    Args:
        plan: The plan that the deployment was made for.

    Returns:
        The path of the bundle.

    Raises:
        InputError: Nothing was due, or the plan or the survey is not valid. Nothing was charged.
        BudgetError: The dataset has too little budget left. Nothing was charged.
        AuditError: The audit found more privacy loss than is claimed. Nothing was charged.
        ApprovalError: A disclosure officer has not approved the release, or has rejected it.
    """
    run = deployed_run()
    assert run.deployment_id is not None
    with get_client(sync_client=True) as client:
        deployment = client.read_deployment(run.deployment_id)
    if plan != deployment.name:
        raise InputError(f"plan: this is the deployment of {deployment.name!r}, not of {plan!r}")
    path = known_plan(plan)
    the_plan = load_plan(path)
    assert run.expected_start_time is not None
    due = datetime.fromtimestamp(run.expected_start_time.timestamp(), UTC)
    release_id = run_id(path, due)
    ledger = ledger_if_any()
    made = ledger.releases(the_plan.dataset) if ledger else {}
    if release_id not in made:  # a release that was charged may be finished at any time
        require_due(the_plan, path, due, deployment.created, list(made))
    if the_plan.series:
        the_plan = at_its_run(the_plan, ledger, release_id, due)
    return carry_out(ReleaseJob(the_plan, release_id))


def deployed_run() -> FlowRun:
    """The current run; raises ``InputError`` if no deployment started it or it sets job variables."""
    run = current_run()
    if run.deployment_id is None:
        raise InputError(
            "only a deployment runs this flow; use `dprelease run` or `dprelease audit`"
        )
    if run.job_variables:
        raise InputError(
            f"job variables: a run may not set any ({', '.join(run.job_variables)}); the worker's"
            " environment names ledger and folders"
        )
    if ledger := ledger_if_any():
        # From now on no plan grants itself its budget: people who start runs here may not grant.
        ledger.mark_served()
    return run


def require_due(
    plan: Plan, path: Path, due: datetime, deployed: datetime | None, made: list[str]
) -> None:
    """Raise ``InputError`` unless ``due`` is a due time since the schedule began, and the latest so far.

    If the plan states no ``since``, the schedule began when the plan was ``deployed``, or with its first
    release in ``made``.
    """
    schedule = plan.operation.schedule
    here = f"`dprelease run {path.name}` on a machine that has the ledger"
    if schedule is None:
        raise InputError(f"operation.schedule: the plan has none; release it on demand with {here}")
    begins = beginning(schedule, path, made)
    if schedule.since is None:
        begins = min(filter(None, (begins, deployed)), default=None)
    if begins is None or not begins <= due <= datetime.now(UTC) + CLOCKS_DIFFER:
        raise InputError(
            f"operation.schedule: {local_text(schedule, due)} is before the schedule began, or in the"
            f" future; nothing was charged"
        )
    following = next(due_times(schedule, due))
    if following != due:
        raise InputError(
            f"operation.schedule: nothing was due at {local_text(schedule, due)}, but next at"
            f" {local_text(schedule, following)} ({schedule.timezone}); nothing was charged. Release the"
            f" plan on demand with {here}"
        )
    # After an outage several runs of a plan start at once.  They would all read and pay for the same
    # table, so only the latest may run. Runs of a series publish different periods.
    again = next(due_times(schedule, due + timedelta(seconds=1)))
    if not plan.series and again <= datetime.now(UTC):
        then = local_text(schedule, due)
        raise InputError(
            f"operation.schedule: the run that was due at {then} is out of date: another was due at"
            f" {local_text(schedule, again)}, so the table may have changed; nothing was charged. If"
            f" the table is unchanged, use `dprelease run {path.name} --due {then}`, where the ledger is"
        )
