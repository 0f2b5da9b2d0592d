"""The markdown of Prefect artifacts, made of the plan, the ledger and audits alone."""

import re
from collections.abc import Mapping, Sequence

from dpcore.audit import AuditResult
from dpcore.budget import Budget
from schemas.plan import Plan
from tasks.audit.audit import embed_picture, result_rows
from tasks.explain.explain import budget_rows, cost_rows, describe_dataset, error_rows, promises


def table(rows: Sequence[Mapping[str, str]]) -> str:
    """Rows as a markdown table; the keys of the first row are the header."""
    cells = [list(rows[0]), ["---"] * len(rows[0]), *(list(row.values()) for row in rows)]
    return "\n".join("| " + " | ".join(escape(cell) for cell in line) + " |" for line in cells)


def cost_and_accuracy(plan: Plan) -> str:
    """Two sections: what each release costs, and how wrong its numbers may be."""
    return "\n\n".join(
        [
            "## What each release costs (alpha is epsilon, beta is delta)",
            table(cost_rows(plan)),
            "## Expected error, from privacy alone",
            table(error_rows(plan)),
        ]
    )


def explanation(plan: Plan, granted: Budget | None, spent: Budget, refusal: str = "") -> str:
    """The contents of ``dprelease explain``, and who asked for the release."""
    budget, verdict = budget_rows(plan, granted, spent, refusal)
    asked = (
        f"Requested by {escape(plan.publication.requester)}. " if plan.publication.requester else ""
    )
    return "\n\n".join(
        [
            f"# {escape(plan.publication.title)}",
            f"{asked}{describe_dataset(plan).capitalize()}.",
            "## Budget of the dataset",
            table(budget),
            *promises(plan),
            *([f"**{verdict}**"] if verdict else []),
            cost_and_accuracy(plan),
        ]
    )


def preview(plan: Plan, release_id: str, audited: list[AuditResult]) -> str:
    """What a disclosure officer reads before a decision."""
    return "\n\n".join(
        [
            f"# To be approved: {escape(plan.publication.title)}",
            f"Release `{release_id}` of {describe_dataset(plan)}. Its noise is already drawn and its"
            " budget spent; a rejection publishes nothing and gives no budget back.",
            cost_and_accuracy(plan),
            "## Privacy audit, on made-up surveys",
            table(result_rows(plan, audited)),
            embed_picture(plan, audited),
        ]
    )


def escape(text: str) -> str:
    """The text as one line in which nothing is markup, for markdown or HTML, and no address a link."""
    escaped = re.sub(r"[\\|<>\[\]`*_~&#@!]|(?<=www)\.|:(?=//)", r"\\\g<0>", " ".join(text.split()))
    return escaped or " "
