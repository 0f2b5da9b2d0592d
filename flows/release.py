"""The release flow of the command line: a plan goes in, a published bundle comes out.

    check budget -> ingest -> validate -> audit -> reserve budget -> tally -> draw each release
        -> write tables, synthesize, fit models -> (approval) -> publish -> announce

Draws run in parallel, and so do tables and synthetic tables (``operation.parallel``).  The steps are
called in ``flows.course``.

A committed draw is never repeated: a run that finds every draw committed continues with the tables,
and a run that finds its bundle published changes nothing.  Deployments run ``flows.deployed``, where
people who start a run cannot set these arguments.
"""

from pathlib import Path
from typing import Any

from flows.course import carry_out
from flows.operation.embedded import flow
from flows.operation.identity import own_release_id, refuse_in_deployment
from flows.operation.notify import HOOKS
from flows.operation.parallel import task_runner
from schemas.plan import load_plan
from schemas.plan.identity import check_release_id
from tasks.ledger import ledger_if_any
from tasks.ledger.runs_and_grant import at_its_run
from tasks.workplace.job import ReleaseJob
from tasks.workplace.plans import find_plan, published_folder
from tasks.workplace.schedule import due_of


@flow(
    name="release",
    flow_run_name="release: {plan}",
    task_runner=task_runner(),
    **HOOKS,
)
def release(
    plan: str,
    release_id: str | None = None,
    out: str | None = None,
    overrides: dict[str, Any] | None = None,
) -> str:
    """Publish one release of a survey and return the path of its bundle.

    Args:
        plan: Name of a plan in the folder of plans, or path of a YAML document.
        release_id: Names the release; the same id never charges or draws twice. Default: the plan's
            name and the time at which the run was due.
        out: Folder under which the bundle appears, as DATASET/RELEASE_ID.
        overrides: Values for dotted keys of the plan, such as `source` or `budget.requested.alpha`.

    Returns:
        The path of the bundle.

    Raises:
        InputError: The plan, the survey or the signing key is not valid or cannot be read.
        BudgetError: The dataset has too little budget left. Nothing was charged.
        AuditError: The audit found more privacy loss than is claimed. Nothing was charged.
        LedgerError: The ledger cannot be used, or it has other charges under this release id.
        ApprovalError: A disclosure officer has not approved the release, or has rejected it.

    Examples:
        bundle = release("deployments/plans/fair.yaml", release_id="2025-q1", out="published")
    """
    refuse_in_deployment()
    the_plan = load_plan(find_plan(plan), overrides)
    release_id = check_release_id(release_id or own_release_id(plan))
    if the_plan.series:
        due = due_of(find_plan(plan), release_id)
        # No ledger is made here: it would take the place of a lost one, which could then not be
        # restored.
        the_plan = at_its_run(the_plan, ledger_if_any(), release_id, due)
    job = ReleaseJob(the_plan, release_id, Path(out) if out else published_folder())
    return carry_out(job)
