"""What a Prefect operator sees of a finished release: artifacts, made of public things alone."""

from pathlib import Path

from prefect.artifacts import create_link_artifact, create_markdown_artifact, create_table_artifact

from dpcore.audit import AuditResult
from dpcore.budget import Budget
from schemas.bundle import Manifest
from schemas.plan import Plan
from tasks.explain import COORDINATES, mismatch
from tasks.home import ledger_url
from tasks.ledger import Ledger
from tasks.markdown import cost_and_accuracy, explanation, preview, written
from tasks.step import step
from tasks.verify import read_manifest


@step("explain")
def show_explanation(plan: Plan) -> None:
    """Tell what a release will cost and how accurate it will be, before anything is done."""
    ledger = Ledger(ledger_url())
    granted, spent = ledger.granted(plan.dataset), ledger.spent(plan.dataset)
    create_markdown_artifact(
        explanation(plan, granted, spent, mismatch(plan, ledger)),
        key="cost-and-accuracy",
        description="What this release will cost and how accurate it will be",
    )


@step("show the preview")
def show_preview(plan: Plan, release_id: str, audited: list[AuditResult]) -> None:
    """Tell a disclosure officer what is to be published; everything here is public."""
    create_markdown_artifact(
        preview(plan, release_id, audited),
        key="approval-preview",
        description=f"To be approved or rejected: {plan.dataset} {release_id}",
    )


@step("announce")
def announce(plan: Plan, release_id: str, bundle: Path) -> None:
    """Leave a summary, the budget and a link to the bundle as Prefect artifacts."""
    ledger = Ledger(ledger_url())
    manifest = read_manifest(bundle)
    create_markdown_artifact(_summary(plan, manifest), key="release-summary")
    budget = [
        {"": "granted", **_amounts(ledger.granted(plan.dataset) or Budget())},
        {"": "spent", **_amounts(ledger.spent(plan.dataset))},
        {"": "left", **_amounts(ledger.remaining(plan.dataset))},
    ]
    create_table_artifact(budget, key="budget", description=f"Budget of {plan.dataset}")
    create_link_artifact(
        bundle.resolve().as_uri(),
        key="bundle",
        link_text=str(bundle.resolve()),
        description=f"Where the bundle of {plan.dataset} {release_id} lies",
    )


def _summary(plan: Plan, manifest: Manifest) -> str:
    files = [f for record in manifest.releases for f in record.files]
    files += [record.file for record in manifest.synthesis]
    return "\n\n".join(
        [
            f"# {written(plan.publication.title)}",
            f"Release `{manifest.release_id}` of `{plan.dataset}`. {manifest.guarantee.statement}",
            *([f"Approved by {written(manifest.approval.who)}."] if manifest.approval else []),
            cost_and_accuracy(plan),
            "## Files",
            "\n".join(f"- `{file.path}`: {file.rows:,} rows" for file in files),
        ]
    )


def _amounts(budget: Budget) -> dict[str, str]:
    return {c: f"{float(getattr(budget, c)):g}" for c in COORDINATES}
