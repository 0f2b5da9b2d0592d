"""Steps that audit a plan's releases."""

import math
from collections.abc import Sequence

from dpcore.audit import AuditResult, audit_release, audit_releases, short_audit
from dpcore.errors import AuditError
from schemas.plan import Plan
from tasks.audit.rehearsal import rehearse_shortly
from tasks.workplace.step import step

QUICK_DRAWS = 1_000
QUICK_PAIRS = 8
QUICK_SURVEYS = 2
ATTENDED, UNATTENDED = 0.95, 0.999
"""The joint confidence of all bounds: in an audit that a person requested, and in the short audit before
a release, which should hardly ever stop a correct schedule by chance."""
FULL_DRAWS = 20_000
TOGETHER = "all together"


def level_of_each(plan: Plan, together: float) -> float:
    """The level of each bound, so that all bounds together hold at level ``together``."""
    # One bound for each release, and one for all of them together.
    return 1 - (1 - together) / (len(plan.built) + 1)


@step("audit", run_name="audit: {name}")
def audit_one(plan: Plan, name: str, draws: int, level: float) -> AuditResult:
    """Audit one release against its share, on made-up neighbouring tables; nothing is charged.

    With few draws only the pairs most likely to be the worst are tried: training a classifier on all
    pairs takes longer than drawing.
    """
    pairs = QUICK_PAIRS if draws <= QUICK_DRAWS else None
    return audit_release(plan.built[name], draws=draws, level=level, pairs=pairs)


@step("audit all together")
def audit_together(plan: Plan, draws: int, level: float) -> AuditResult:
    """Audit the joint output of all releases against the sum of their shares."""
    surveys = QUICK_SURVEYS if draws <= QUICK_DRAWS else None
    return audit_releases(list(plan.built.values()), draws=draws, level=level, surveys=surveys)


@step("short audit")
def audit_shortly(plan: Plan) -> list[AuditResult]:
    """Rehearse the survey's path, and audit all releases together and each alone, in seconds."""
    rehearse_shortly(plan)
    return short_audit(list(plan.built.values()), level_of_each(plan, UNATTENDED))


def require_passed(plan: Plan, results: list[AuditResult]) -> None:
    """Raise ``AuditError``, which carries the results, if a bound is above its claim."""
    failed = [
        f"{label(plan, result)} ({'; '.join(result.faults)})"
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


def label(plan: Plan, result: AuditResult) -> str:
    """The name of the audited release, or words for all releases together."""
    return result.name if result.name in plan.built else TOGETHER


def result_rows(plan: Plan, results: Sequence[AuditResult]) -> list[dict[str, str]]:
    """One row per audit, as text."""
    return [
        {
            "release": label(plan, result),
            "result": "passed" if result.passed else "FAILED",
            "claimed alpha": f"{float(result.claim.alpha):.4g}",
            "beta": f"{float(result.claim.beta):.2g}",
            "gamma": f"{float(result.claim.gamma):.2g}",
            "at least": f"{result.lower_bound:.4g}",
            "noise": _noise(result),
            "moved": "" if result.replay is None else f"{result.replay.moved:.3g}",
            "confidence": f"{100 * result.level:g}%",
            "estimate": f"{result.estimate:.4g}",
            "draws": f"{result.draws:,}",
            "tables": result.pair,
        }
        for result in results
    ]


def _noise(result: AuditResult) -> str:
    """An upper bound for the width of the noise, relative to the stated width."""
    if result.width is None or result.width.at_most == math.inf:
        return ""
    return f"<= {result.width.at_most:.2f}"
