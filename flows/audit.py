"""The audit flow: does every release of a plan keep what it claims, as far as draws can tell?

Neighbouring surveys are made up inside the plan's public domain, the real release path runs on them
many times, and the outputs give a lower bound on the privacy loss.  No real survey is read and
nothing is charged.  A lower bound above the claim fails the run.
"""

from typing import Any

from prefect import flow

from dpcore.audit import AuditResult
from dpcore.errors import AuditError, InputError
from flows.notify import tell_crash, tell_failure
from schemas.plan import Plan, load_plan
from tasks.audit import (
    ATTENDED,
    FULL_DRAWS,
    QUICK_DRAWS,
    audit_one,
    audit_together,
    label,
    level_of_each,
    show_audit,
)
from tasks.plans import find_plan
from tasks.rehearsal import rehearse


@flow(
    name="audit",
    flow_run_name="audit: {plan}",
    log_prints=False,
    persist_result=False,
    on_failure=[tell_failure],
    on_crashed=[tell_crash],
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
        quick: Fewer draws, and the survey's path is not rehearsed.
        draws: How often each release is drawn on each of two neighbouring tables.
        overrides: Values that replace those at dotted places of the plan.
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
    """Raise ``AuditError``, which carries the results, where a bound is above its claim."""
    failed = [label(plan, result) for result in results if not result.passed]
    if failed:
        error = AuditError(
            f"the audit found more privacy loss than is claimed: {', '.join(failed)}. Do not publish"
            " with this plan and this version; report it"
        )
        error.results = results
        raise error
