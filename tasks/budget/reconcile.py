"""Checks that ledger, draws and bundles agree, after a crash or a restored backup.

A run in progress looks like a run that died, so check when no run is in progress.  Nothing is repaired
here: each fault states what a person can do about it.
"""

import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from dpcore.errors import DPReleaseError, UnreadableError
from tasks.budget.checkpoint import lost_draws
from tasks.bundle.digests import is_bundle
from tasks.bundle.folders import folders_in
from tasks.bundle.verify import (
    is_unrecorded,
    read_manifest,
    verify_budget,
    verify_files,
    verify_seal,
)
from tasks.ledger import Fault, Ledger, State

PUBLISH = (
    "run the plan with this release id: it publishes the same draws and costs nothing; if the plan asks"
    " for approval, an officer must approve or reject it first"
)
WITHDRAW = (
    "withdraw this bundle: move it out of the folder and run the plan with this release id, which"
    " publishes it again from the same draws"
)
ENTER_OR_WITHDRAW = (
    "if an old copy of the ledger was in use, and your key signed the bundle, enter its approval and its"
    " digest with `dprelease ledger recover`; otherwise " + WITHDRAW
)
RESTORE_OR_WITHDRAW = (
    "the ledger was lost, is an old copy or the wrong one, or the bundle is forged: restore the ledger,"
    " enter what the bundle proves with `dprelease ledger recover`, or withdraw the bundle"
)
MAKE_READABLE = (
    "make it readable for this user and check again: it may be whole, so do not withdraw it"
)


def reconcile(ledger: Ledger, published: Path | None, dataset: str | None = None) -> list[Fault]:
    """Every fault of one dataset or of all; faults that the witness shows come first.

    Without ``published``, bundles are not compared.
    """
    ledger.require_whole()
    found = lost_draws(ledger, dataset)
    datasets = {dataset} if dataset else {*ledger.datasets(), *_published_datasets(published)}
    for name in sorted(datasets):
        found += ledger.find_faults(name)
        if published is not None:
            found += _compare(ledger, name, published / name)
    return found


def _compare(ledger: Ledger, dataset: str, folder: Path) -> Iterator[Fault]:
    releases, folders = ledger.releases(dataset), folders_in(folder)
    bundles = {name: path for name, path in folders.items() if _may_be_bundle(path)}
    rejected = {name for name in releases if _is_rejected(ledger, dataset, name)}
    fault = partial(Fault, dataset, release_name="")
    for release_id in sorted(rejected & set(bundles)):
        what = "published, but a disclosure officer rejected it"
        yield fault(release_id, what=what, remedy="withdraw this bundle")
    for name in sorted(set(folders) - set(bundles)):
        remedy = "remove it, or move it out of the dataset's folder"
        yield fault(name, what="the folder holds no bundle", remedy=remedy)
    for release_id, charges in releases.items():
        drawn = all(charge.state is State.COMMITTED for charge in charges.values())
        if drawn and release_id not in {*bundles, *rejected}:
            what, remedy = "drawn, but not published here", PUBLISH
            if release_id not in folders and os.path.lexists(folder / release_id):
                what += ": a file is in the bundle's place"
                remedy = f"move the file away, then {PUBLISH}"
            yield fault(release_id, what=what, remedy=remedy)
    for release_id, bundle in bundles.items():
        if release_id not in rejected and (found := _find_fault(bundle, dataset, ledger)):
            yield fault(release_id, what=found[0], remedy=found[1])


def _find_fault(bundle: Path, dataset: str, ledger: Ledger) -> tuple[str, str] | None:
    """The fault of a bundle and its remedy; None if it has no fault."""
    remedy = WITHDRAW
    try:
        if is_bundle(bundle) and not ledger.release(dataset, bundle.name):
            return "published, but never charged", RESTORE_OR_WITHDRAW
        manifest = read_manifest(bundle)
        if (manifest.dataset, manifest.release_id) != (dataset, bundle.name):
            return "the bundle belongs to another release", WITHDRAW
        verify_files(bundle, manifest)
        # From here on the bundle is whole, so its approval and digest could be entered.
        if is_unrecorded(bundle, manifest, ledger):
            remedy = ENTER_OR_WITHDRAW
        verify_budget(manifest, ledger)
        verify_seal(bundle, manifest, ledger)
    except UnreadableError as error:
        return str(error), MAKE_READABLE
    except DPReleaseError as error:
        return str(error), remedy
    return None


def _is_rejected(ledger: Ledger, dataset: str, release_id: str) -> bool:
    decision = ledger.decision(dataset, release_id)
    return decision is not None and not decision.approved


def _published_datasets(published: Path | None) -> set[str]:
    datasets = folders_in(published).items() if published else ()
    return {name for name, path in datasets if any(map(_may_be_bundle, folders_in(path).values()))}


def _may_be_bundle(folder: Path) -> bool:
    try:
        return is_bundle(folder)
    except UnreadableError:
        return True
