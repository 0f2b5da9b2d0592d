"""What a Prefect operator sees of a finished release: artifacts, made of public things alone."""

from pathlib import Path

from prefect.artifacts import create_link_artifact, create_markdown_artifact, create_table_artifact

from dpcore.budget import Budget
from schemas.bundle import Manifest
from schemas.plan import Plan
from tasks.explain import COORDINATES, cost_rows, error_rows
from tasks.home import ledger_url
from tasks.ledger import Ledger
from tasks.step import step
from tasks.verify import read_manifest


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
        bundle.resolve().as_uri(), key="bundle", link_text=f"{plan.dataset} {release_id}"
    )


def _summary(plan: Plan, manifest: Manifest) -> str:
    errors = [row | {"note": row["note"] or " "} for row in error_rows(plan)]
    files = [f for record in manifest.releases for f in record.files]
    files += [record.file for record in manifest.synthesis]
    return "\n\n".join(
        [
            f"# {plan.publication.title}",
            f"Release `{manifest.release_id}` of `{plan.dataset}`. {manifest.guarantee.statement}",
            "## Cost",
            _markdown(cost_rows(plan)),
            "## Expected error, from privacy noise alone",
            _markdown(errors),
            "## Files",
            "\n".join(f"- `{file.path}`: {file.rows:,} rows" for file in files),
        ]
    )


def _markdown(rows: list[dict[str, str]]) -> str:
    lines = [list(rows[0]), ["---"] * len(rows[0]), *(list(row.values()) for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _amounts(budget: Budget) -> dict[str, str]:
    return {c: f"{float(getattr(budget, c)):g}" for c in COORDINATES}
