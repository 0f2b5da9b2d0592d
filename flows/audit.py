"""The audit flow: lower bounds on the privacy loss of every release of a plan, from simulated runs.

Neighbouring surveys are made up inside the plan's public domain, the real release path runs on them
many times, and the outputs give a lower bound on the privacy loss.  No real survey is read and
nothing is charged.  A lower bound above the claim fails the run.
"""

from typing import Any

from dpcore.audit import AuditResult
from flows.course import audit_plan
from flows.operation.embedded import flow
from flows.operation.identity import refuse_in_deployment
from flows.operation.notify import notify_crash, notify_failure
from schemas.plan import load_plan
from tasks.workplace.plans import find_plan


@flow(
    name="audit",
    flow_run_name="audit: {plan}",
    on_failure=[notify_failure],
    on_crashed=[notify_crash],
)
def audit(
    plan: str,
    quick: bool = False,
    draws: int | None = None,
    overrides: dict[str, Any] | None = None,
) -> list[AuditResult]:
    """Audit every release of a plan, and all of them together.

    Args:
        plan: Name of a plan in the folder of plans, or path of a YAML document.
        quick: Make fewer draws, and skip the test of ingest, validation and tally.
        draws: How often each release is drawn on each of two neighbouring tables.
        overrides: Values for dotted keys of the plan, such as `budget.requested.alpha`.

    Returns:
        One result for each release, then one for all of them together.

    Raises:
        InputError: The plan cannot be read or is not valid.
        AuditError: A lower bound is above its claim; the error carries the results.

    Examples:
        results = audit("deployments/plans/fair.yaml", quick=True)
    """
    refuse_in_deployment()
    return audit_plan(load_plan(find_plan(plan), overrides), draws, quick)
