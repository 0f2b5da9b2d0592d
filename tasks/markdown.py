"""What people see in Prefect, as markdown: made of the plan, the ledger and audits alone."""

import base64
from collections.abc import Mapping, Sequence

from dpcore.audit import AuditResult
from dpcore.budget import Budget
from schemas.plan import Plan
from tasks.audit import picture_of, result_rows
from tasks.explain import about, budget_rows, cost_rows, error_rows


def table(rows: Sequence[Mapping[str, str]]) -> str:
    """Rows as a markdown table; the keys of the first are its header."""
    cells = [list(rows[0]), ["---"] * len(rows[0]), *(list(row.values()) for row in rows)]
    return "\n".join("| " + " | ".join(written(cell) for cell in line) + " |" for line in cells)


def cost_and_accuracy(plan: Plan) -> str:
    """Two sections: what each release costs, and how wrong its numbers may be."""
    return "\n\n".join(
        [
            "## What each release costs (alpha is epsilon, beta is delta)",
            table(cost_rows(plan)),
            "## Expected error, from privacy noise alone",
            table(error_rows(plan)),
        ]
    )


def explanation(plan: Plan, granted: Budget | None, spent: Budget, refusal: str = "") -> str:
    """What `dprelease explain` prints, and who asks."""
    budget, verdict = budget_rows(plan, granted, spent, refusal)
    asked = (
        f"Asked for by {written(plan.publication.requester)}. "
        if plan.publication.requester
        else ""
    )
    return "\n\n".join(
        [
            f"# {written(plan.publication.title)}",
            f"{asked}{about(plan).capitalize()}.",
            "## Budget of the dataset",
            table(budget),
            *([f"**{verdict}**"] if verdict else []),
            cost_and_accuracy(plan),
        ]
    )


def preview(plan: Plan, release_id: str, audited: list[AuditResult]) -> str:
    """What a disclosure officer decides on."""
    picture = base64.b64encode(picture_of(plan, audited).encode()).decode()
    return "\n\n".join(
        [
            f"# To be approved: {written(plan.publication.title)}",
            f"Release `{release_id}` of {about(plan)}. Its noise is drawn and its budget is spent,"
            " whatever is decided. A rejection publishes nothing.",
            cost_and_accuracy(plan),
            "## Privacy audit, on made-up surveys",
            table(result_rows(plan, audited)),
            f"![Bounds, claims and loss functions](data:image/svg+xml;base64,{picture})",
        ]
    )


def written(text: str) -> str:
    """Text that stays in its cell, and that no browser takes for more than text."""
    for character in "\\|<>[]`*_":
        text = text.replace(character, f"\\{character}")
    return text or " "
