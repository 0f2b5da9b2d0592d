"""Writes the markdown of Prefect artifacts from plan, ledger, audits and tables to be published."""

from collections.abc import Iterator, Mapping, Sequence
from textwrap import indent

import pyarrow.parquet as pq

from dpcore.accounting.budget import Budget
from schemas.plan import Plan
from schemas.text import escape
from tasks.audit.audit import result_rows
from tasks.bundle.publish import PreparedBundle
from tasks.explain.analysis import analyses_text
from tasks.explain.explain import budget_rows, cost_rows, describe_dataset, error_rows, promises
from tasks.explain.verdicts import verdict_text
from tasks.report.parts import Source
from tasks.report.release import headed, release_part
from tasks.workplace.job import ReleaseJob

FIRST_ROWS = 10
MOST_TABLES = 4
"""The preview shows at most this many tables of each release."""

NONE = [{"": "none"}]


def table(rows: Sequence[Mapping[str, str]]) -> str:
    """Rows as a markdown table; the keys of the first row are the header."""
    cells = [list(rows[0]), ["---"] * len(rows[0]), *(list(row.values()) for row in rows)]
    return "\n".join("| " + " | ".join(escape(cell) for cell in line) + " |" for line in cells)


def cost_and_accuracy(plan: Plan) -> str:
    """The cost and the expected errors of each release; no errors if all releases are models."""
    errors = error_rows(plan)
    return "\n\n".join(
        [
            "## What each release costs (alpha is epsilon, beta is delta)",
            table(cost_rows(plan)),
            *(["## Expected error, from privacy alone", table(errors)] if errors else []),
        ]
    )


def explanation(
    plan: Plan,
    granted: Budget | None,
    spent: Budget,
    refusal: str = "",
    allowed: Sequence[dict[str, str]] = (),
) -> str:
    """The contents of ``dprelease explain``, the requester, and rows of the requester's allowance."""
    budget, verdict = budget_rows(plan, granted, spent, refusal)
    asked = (
        f"Requested by {escape(plan.publication.requester)}. " if plan.publication.requester else ""
    )
    return "\n\n".join(
        [
            f"# {escape(plan.publication.title)}",
            f"{asked}{describe_dataset(plan).capitalize()}.",
            "## Budget of the dataset",
            table([*budget, *allowed]),
            *promises(plan),
            *([f"**{verdict}**"] if verdict else []),
            indent("\n".join([*verdict_text(plan), *analyses_text(plan)]), " " * 4),
            cost_and_accuracy(plan),
        ]
    )


def preview(job: ReleaseJob, made: PreparedBundle) -> str:
    """A preview for a disclosure officer's decision; everything in it is noisy and public."""
    plan = job.plan
    return "\n\n".join(
        [
            f"# To be approved: {escape(plan.publication.title)}",
            f"Release `{job.release_id}` of {describe_dataset(plan)}. Its noise is already drawn and its"
            " budget spent; a rejection publishes nothing and gives no budget back.",
            "## What will be published",
            *_published(plan, made),
            cost_and_accuracy(plan),
            "## Privacy audit, on made-up surveys",
            table(result_rows(plan, made.audited)),
        ]
    )


def _published(plan: Plan, made: PreparedBundle) -> Iterator[str]:
    """Yield the first rows of the tables of each release in the report, and of each synthetic table."""
    for record in made.releases:
        part = release_part(Source(plan, record, made.staging))
        yield f"### {escape(part.heading)}\n\n{escape(part.lead)}"
        shown = [figure.table for figure in part.drawn.figures if figure.table]
        for one in [*shown, *part.drawn.tables][:MOST_TABLES]:
            rows = [dict(zip(one.header, row, strict=True)) for row in one.rows[:FIRST_ROWS]]
            if rows:
                more = f" (the first {FIRST_ROWS} of {len(one.rows):,} rows)" * (
                    len(one.rows) > FIRST_ROWS
                )
                yield f"{escape(one.caption)}{more}\n\n{table(rows)}"
    sections = {section.name: section for section in plan.synthesis}
    for records in made.synthesis:
        for file in filter(None, (records.file, records.members)):
            head = next(pq.ParquetFile(made.staging / file.path).iter_batches(FIRST_ROWS), None)
            heading = escape(headed(sections[records.name]))
            yield f"### {heading}\n\nSynthetic records, the first of {file.rows:,}"
            rows = head.to_pylist() if head else []
            yield table([{name: str(value) for name, value in row.items()} for row in rows] or NONE)
