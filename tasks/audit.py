"""Audits of a plan's releases as steps, and what is shown of them."""

import base64
from collections.abc import Sequence
from html import escape

from prefect.artifacts import create_markdown_artifact, create_table_artifact

from dpcore.audit import AuditResult, audit_release, audit_releases, neighbouring_pairs
from schemas.plan import Plan
from tasks.step import step

QUICK_DRAWS = 1_000
QUICK_PAIRS = 8
UNATTENDED = 0.999
"""Confidence of the short audit before a release: it must not stop a schedule by chance."""
FULL_DRAWS = 20_000
TOGETHER = "all together"


@step("audit", run_name="audit: {name}")
def audit_one(plan: Plan, name: str, draws: int) -> AuditResult:
    """Audit one release against its share, on made-up neighbouring tables; nothing is charged.

    With few draws only the likeliest worst tables are tried: training a classifier on all of them
    takes longer than drawing.
    """
    release = plan.built[name]
    pairs = neighbouring_pairs(release.domain, release.rows)
    if draws <= QUICK_DRAWS:
        pairs = pairs[:QUICK_PAIRS]
    return audit_release(release, draws=draws, pairs=pairs)


@step("audit all together")
def audit_together(plan: Plan, draws: int, level: float = 0.95) -> AuditResult:
    """Audit the joint output of all releases against the sum of their shares."""
    surveys = 2 if draws <= QUICK_DRAWS else None
    return audit_releases(list(plan.built.values()), draws=draws, level=level, surveys=surveys)


@step("show the audit")
def show_audit(plan: Plan, results: Sequence[AuditResult]) -> None:
    """Leave the audit as Prefect artifacts: a table, and a plot of bounds against claims."""
    create_table_artifact(result_rows(plan, results), key="audit", description="Privacy audit")
    picture = base64.b64encode(bounds_picture(plan, results).encode()).decode()
    create_markdown_artifact(
        f"# Privacy audit: {plan.publication.title}\n\n"
        "A lower bound above the claim would prove a violation. One below proves nothing, but that"
        " this audit found none.\n\n"
        f"![Lower bound of alpha against the claim](data:image/svg+xml;base64,{picture})",
        key="audit-plot",
    )


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
            "at least": f"{result.lower_bound:.4g}",
            "confidence": f"{result.level:.0%}",
            "estimate": f"{result.estimate:.4g}",
            "draws": f"{result.draws:,}",
            "tables": result.pair,
        }
        for result in results
    ]


def bounds_picture(plan: Plan, results: Sequence[AuditResult]) -> str:
    """Bars as SVG: the claimed alpha of every release, and inside it what the audit could show."""
    most = max(max(float(r.claim.alpha), r.lower_bound) for r in results) or 1.0
    width, bar, left = 420, 26, 230
    lines = []
    for i, result in enumerate(results):
        y, claim = 12 + i * (bar + 14), float(result.claim.alpha)
        colour = "#1f3b57" if result.passed else "#b3261e"
        name = escape(label(plan, result))
        lines += [
            f'<text x="{left - 10}" y="{y + 18}" text-anchor="end">{name}</text>',
            f'<rect x="{left}" y="{y}" width="{claim / most * width:.1f}" height="{bar}"'
            ' fill="#d7e3ec"/>',
            f'<rect x="{left}" y="{y + 7}" width="{result.lower_bound / most * width:.1f}"'
            f' height="{bar - 14}" fill="{colour}"/>',
            f'<text x="{left + claim / most * width + 8:.1f}" y="{y + 18}">'
            f"{result.lower_bound:.3g} of {claim:.3g}</text>",
        ]
    height = 12 + len(results) * (bar + 14)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {left + width + 130} {height}"'
        f' width="{left + width + 130}" font-family="sans-serif" font-size="13">'
        f'<rect width="100%" height="100%" fill="white"/>{"".join(lines)}</svg>'
    )
