"""Steps that publish Prefect artifacts for operators and officers; everything in them is public.

Only a run of a flow has artifacts, so Prefect is imported when a step runs.
"""

from collections.abc import Sequence
from contextlib import suppress

from dpcore.audit import AuditResult
from schemas.bundle.manifest import Manifest
from schemas.plan import Plan
from schemas.text import escape
from tasks.announce.markdown import cost_and_accuracy, explanation, preview
from tasks.audit.audit import result_rows
from tasks.bundle.publish import PreparedBundle
from tasks.bundle.verify import read_manifest
from tasks.explain.account import allowance_rows, in_the_ledger, ledger_rows
from tasks.ledger import Ledger, ledger_if_any
from tasks.workplace.home import ledger_url
from tasks.workplace.job import ReleaseJob
from tasks.workplace.step import in_flow_run, log_line, step


def tag_run(dataset: str) -> None:
    """Tag the flow run, if there is one, with its dataset; does nothing if the server is lost."""
    if not in_flow_run():
        return
    from httpx import HTTPError
    from prefect.client.orchestration import get_client
    from prefect.context import FlowRunContext

    context = FlowRunContext.get()
    run = context.flow_run if context else None
    if run is None or dataset in run.tags:
        return
    with suppress(HTTPError), get_client(sync_client=True) as client:
        client.update_flow_run(run.id, tags=[*run.tags, dataset])


@step("explain")
def show_explanation(plan: Plan) -> None:
    """Show what a release will cost and how accurate it will be, before anything is charged."""
    ledger = ledger_if_any()
    allowed = allowance_rows(plan, ledger) if ledger else []
    _show(
        "cost-and-accuracy",
        explanation(*in_the_ledger(plan), allowed),
        "What this release will cost and how accurate it will be",
    )


@step("show the earlier answer")
def show_earlier(words: str) -> None:
    """Show that a question was asked before, and so costs nothing."""
    _show("cost-and-accuracy", f"{words[0].upper()}{words[1:]}.", "Asked before")


@step("show the preview")
def show_preview(job: ReleaseJob, made: PreparedBundle) -> None:
    """Show a disclosure officer what would be published."""
    to_decide = f"To be approved or rejected: {job.dataset} {job.release_id}"
    _show("approval-preview", preview(job, made), to_decide)


def _show(key: str, markdown: str, description: str) -> None:
    from prefect.artifacts import create_markdown_artifact

    create_markdown_artifact(markdown, key=key, description=description)


@step("show the audit")
def show_audit(plan: Plan, results: Sequence[AuditResult]) -> None:
    """Create a Prefect artifact: a table of results."""
    from prefect.artifacts import create_table_artifact

    create_table_artifact(
        result_rows(plan, results),
        key="audit",
        description=f"Privacy audit: {escape(plan.publication.title)}. A lower bound above the claim"
        " proves a violation. A bound below it only means that this audit found none.",
    )


@step("announce")
def announce(job: ReleaseJob) -> None:
    """Show in Prefect what was published; if the server does not answer, the bundle stays published."""
    from httpx import HTTPError

    try:
        _announce(job)
    except HTTPError as error:
        lost = f"the Prefect server does not answer ({type(error).__name__})"
        log_line(f"published, but not announced: {lost}")


def _announce(job: ReleaseJob) -> None:
    from prefect.artifacts import (
        create_link_artifact,
        create_markdown_artifact,
        create_table_artifact,
    )

    ledger = Ledger(ledger_url())
    manifest = read_manifest(job.bundle)
    create_markdown_artifact(_summary(job.plan, manifest), key="release-summary")
    budget = ledger_rows(ledger, job.dataset)
    create_table_artifact(budget, key="budget", description=f"Budget of {job.dataset}")
    create_link_artifact(
        job.bundle.resolve().as_uri(),
        key="bundle",
        link_text=str(job.bundle.resolve()),
        description=f"The bundle of {job.dataset} {job.release_id}",
    )


def _summary(plan: Plan, manifest: Manifest) -> str:
    files = [f for record in manifest.releases for f in record.files]
    files += [file for record in manifest.synthesis for file in record.microdata]
    files += [record.file for record in manifest.analyses]
    return "\n\n".join(
        [
            f"# {escape(plan.publication.title)}",
            f"Release `{manifest.release_id}` of `{plan.dataset}`. {manifest.guarantee.statement}",
            *([f"Approved by {escape(manifest.approval.who)}."] if manifest.approval else []),
            cost_and_accuracy(plan),
            "## Files",
            "\n".join(f"- `{file.path}`: {file.rows:,} rows" for file in files),
        ]
    )
