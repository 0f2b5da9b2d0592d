"""The audit flow: lower bounds on the privacy loss of every release of a plan, from simulated runs.

Neighbouring surveys are made up inside the plan's public domain, the real release path runs on them
many times, and the outputs give a lower bound on the privacy loss.  No real survey is read and
nothing is charged.  A lower bound above the claim fails the run.
"""

from typing import Any

from dpcore.audit import AuditResult
from dpcore.errors import AuditError, InputError
from flows.embedded import flow
from flows.notify import notify_crash, notify_failure
from schemas.plan import Plan, load_plan
from tasks.audit.audit import (
    ATTENDED,
    FULL_DRAWS,
    QUICK_DRAWS,
    audit_one,
    audit_together,
    label,
    level_of_each,
    show_audit,
)
from tasks.audit.rehearsal import rehearse
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
    if draws is not None and draws < 1:
        raise InputError("draws: write a positive whole number")
    the_plan = load_plan(find_plan(plan), overrides)
    draws = draws or (QUICK_DRAWS if quick else FULL_DRAWS)
    if not quick:
        rehearse(the_plan)
    level = level_of_each(the_plan, ATTENDED)
    results = [audit_one(the_plan, name, draws, level) for name in the_plan.built]
    if len(results) > 1:
        results.append(audit_together(the_plan, draws, level))
    show_audit(the_plan, results)
    require_passed(the_plan, results)
    return results


def require_passed(plan: Plan, results: list[AuditResult]) -> None:
    """Raise ``AuditError``, which carries the results, if a bound is above its claim."""
    failed = [
        f"{label(plan, result)} ({', '.join(result.faults)})"
        for result in results
        if not result.passed
    ]
    if failed:
        error = AuditError(
            f"the audit found more privacy loss than is claimed: {'; '.join(failed)}. Do not publish"
            " this plan with this version of dprelease; report the fault"
        )
        error.results = results
        raise error
