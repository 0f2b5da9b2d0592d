"""The audit flow of deployments: lower bounds on the privacy loss of every release of a plan.

The flow makes up neighbouring surveys in the plan's public domain and runs the real release code on them
many times. The outputs give a lower bound on the privacy loss.  No real survey is read and nothing is
charged.  A lower bound above the claim fails the run.  ``dprelease audit`` runs the same steps without
Prefect.
"""

from flows.course import audit_plan
from flows.deployed import deployed_run
from flows.operation.embedded import flow
from flows.operation.notify import notify_crash, notify_failure
from schemas.plan import load_plan
from tasks.workplace.plans import known_plan


@flow(
    name="audit",
    flow_run_name="audit: {plan}",
    on_failure=[notify_failure],
    on_crashed=[notify_crash],
)
def audit(plan: str, quick: bool = False) -> None:
    """Audit every release of a plan, and all of them together.

    Args:
        plan: The name of a plan in the folder of plans.
        quick: Make fewer draws, and skip the test of ingest, validation and tally.

    Raises:
        InputError: The plan cannot be read or is not valid.
        AuditError: A lower bound is above its claim.
    """
    deployed_run()
    audit_plan(load_plan(known_plan(plan)), quick=quick)
