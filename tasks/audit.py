"""Audits of a plan's releases as steps, and what is shown of them."""

import base64
from collections.abc import Sequence

from prefect.artifacts import create_markdown_artifact, create_table_artifact

from dpcore.audit import AuditResult, audit_release, audit_releases, audit_scale, short
from schemas.plan import Plan
from tasks.audit_picture import audit_picture
from tasks.step import step

QUICK_DRAWS = 1_000
QUICK_PAIRS = 8
QUICK_SURVEYS = 2
ATTENDED, UNATTENDED = 0.95, 0.999
"""Confidence that no right plan is accused, by all bounds of an audit together: in an audit that was
asked for, and in the short one before a release, which must not stop a schedule by chance."""
FULL_DRAWS = 20_000
TOGETHER = "all together"


def level_of_each(plan: Plan, together: float) -> float:
    """The level of the bound of each release and of that of all: they hold ``together``."""
    return 1 - (1 - together) / (len(plan.built) + 1)


@step("audit", run_name="audit: {name}")
def audit_one(plan: Plan, name: str, draws: int, level: float) -> AuditResult:
    """Audit one release against its share, on made-up neighbouring tables; nothing is charged.

    With few draws only the likeliest worst tables are tried: training a classifier on all of them
    takes longer than drawing.
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
    """Audit all releases together, and the scale of the noise of each alone, in this order."""
    releases = list(plan.built.values())
    level, draws = level_of_each(plan, UNATTENDED), short(QUICK_DRAWS, releases)
    return [
        audit_releases(releases, draws=draws, level=level, surveys=QUICK_SURVEYS),
        *(audit_scale(release, level) for release in releases),
    ]


@step("show the audit")
def show_audit(plan: Plan, results: Sequence[AuditResult]) -> None:
    """Leave the audit as Prefect artifacts: a table, and a plot of bounds and loss functions."""
    create_table_artifact(
        result_rows(plan, results),
        key="audit",
        description=f"Privacy audit: {plan.publication.title}",
    )
    picture = base64.b64encode(picture_of(plan, results).encode()).decode()
    create_markdown_artifact(
        f"# Privacy audit: {plan.publication.title}\n\n"
        "A lower bound above the claim would prove a violation. One below proves nothing, but that"
        " this audit found none. The curves estimate the privacy loss of an output, |ln f - ln f'|,"
        " over the score by which outputs are told apart; where beta is positive, rare outputs may"
        " lose more than alpha.\n\n"
        f"![Bounds, claims and loss functions](data:image/svg+xml;base64,{picture})",
        key="audit-plot",
    )


def picture_of(plan: Plan, results: Sequence[AuditResult]) -> str:
    """Bounds against claims, and loss functions, as SVG."""
    return audit_picture({label(plan, result): result for result in results})


def label(plan: Plan, result: AuditResult) -> str:
    """What was audited: a release, or all of them."""
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
            "confidence": f"{100 * result.level:g}%",
            "estimate": f"{result.estimate:.4g}",
            "draws": f"{result.draws:,}",
            "tables": result.pair,
        }
        for result in results
    ]
