"""Do ledger, draws and bundles agree?  For an operator, after a crash or a restored backup.

A run that is at work looks like one that died: reconcile when none is.  Nothing is repaired here:
each fault comes with what a person can do about it.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

from dpcore.errors import DPReleaseError
from schemas.bundle import MANIFEST
from tasks.ledger import ChargeRecord, Fault, Ledger, State
from tasks.verify import read_manifest, verify_budget, verify_files, verify_seal


def reconcile(ledger: Ledger, published: Path | None, dataset: str | None = None) -> list[Fault]:
    """Every fault of one dataset or of all; without ``published``, no bundles are looked at."""
    datasets = {dataset} if dataset else {*ledger.datasets(), *_published_datasets(published)}
    found = []
    for name in sorted(datasets):
        found += ledger.faults(name)
        if published is not None:
            found += _between(ledger, name, _bundles(published / name))
    return found


def _between(ledger: Ledger, dataset: str, bundles: Mapping[str, Path]) -> Iterator[Fault]:
    """What is wrong between the ledger and the bundles of a dataset."""
    releases = ledger.releases(dataset)
    rejected = {name for name in releases if _rejected(ledger, dataset, name)}
    for release_id in sorted(rejected & set(bundles)):
        yield Fault(
            dataset,
            release_id,
            "",
            "published, but a disclosure officer rejected it",
            "withdraw this bundle",
        )
    for release_id, charges in releases.items():
        if release_id not in {*bundles, *rejected} and _drawn(charges):
            yield Fault(
                dataset,
                release_id,
                "",
                "drawn, but not published here",
                "run the plan with this release id: it publishes the same draws and costs nothing;"
                " if the plan asks for approval, an officer must approve or reject it first",
            )
    for release_id, bundle in bundles.items():
        if release_id not in releases:
            yield Fault(
                dataset,
                release_id,
                "",
                "published, but never charged",
                "the ledger was lost, is an old copy or another one, or the bundle is forged:"
                " restore the ledger, or withdraw the bundle",
            )
        elif what := _wrong_with(bundle, dataset, ledger):
            yield Fault(
                dataset,
                release_id,
                "",
                what,
                "withdraw this bundle; moved out of the folder, it is published again from the same"
                " draws by running the plan with this release id",
            )


def _wrong_with(bundle: Path, dataset: str, ledger: Ledger) -> str:
    try:
        manifest = read_manifest(bundle)
        if (manifest.dataset, manifest.release_id) != (dataset, bundle.name):
            return "the bundle is that of another release"
        verify_files(bundle, manifest)
        verify_budget(manifest, ledger)
        verify_seal(bundle, manifest, ledger)
    except DPReleaseError as error:
        return str(error)
    return ""


def _rejected(ledger: Ledger, dataset: str, release_id: str) -> bool:
    decision = ledger.decision(dataset, release_id)
    return decision is not None and not decision.approved


def _drawn(charges: Mapping[str, ChargeRecord]) -> bool:
    return all(charge.state is State.COMMITTED for charge in charges.values())


def _bundles(folder: Path) -> dict[str, Path]:
    """What stands under the dataset, by release id; runs keep unfinished work under hidden names."""
    found = sorted(folder.iterdir()) if folder.is_dir() else []
    return {path.name: path for path in found if path.is_dir() and not path.name.startswith(".")}


def _published_datasets(published: Path | None) -> set[str]:
    return {path.parts[-3] for path in published.glob(f"*/*/{MANIFEST}")} if published else set()
