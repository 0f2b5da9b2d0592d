"""Enters in a ledger the releases that it has forgotten, from the draws that their bundles hold.

A bundle proves what was charged and drawn: its plan has the prices, and its draws are stored byte for
byte.  So nothing is drawn a second time, and what was spent counts again.
"""

from collections.abc import Iterator
from pathlib import Path

from dpcore.errors import BundleError, DPReleaseError, LostLedgerError
from tasks.budget.charge import require_known
from tasks.budget.checkpoint import checkpoint_file, seen_draws
from tasks.bundle.digests import bundle_digest, is_bundle
from tasks.bundle.folders import folders_in
from tasks.bundle.reader import BundleReader
from tasks.bundle.sign import signing_key, verify_signature
from tasks.bundle.verify import read_manifest, verify_files
from tasks.ledger import Ledger, charges_of


def recover(ledger: Ledger, published: Path, who: str, why: str) -> list[str]:
    """Enter every bundle in a dataset's folder that the ledger does not know, the oldest first.

    Returns their release ids.  Raises ``BundleError`` for a bundle that is damaged, not signed with the
    configured key or not in the configured witness, and ``BudgetError`` if the grants are forgotten too.
    """
    lost = sorted(_unknown(ledger, published), key=lambda each: each.manifest.drawn_at)
    for bundle in lost:
        _require_genuine(bundle)
        _enter(ledger, bundle, who, why)
    return [bundle.manifest.release_id for bundle in lost]


def _unknown(ledger: Ledger, published: Path) -> Iterator[BundleReader]:
    for bundle in filter(is_bundle, folders_in(published).values()):
        try:
            require_known(bundle, published.name, ledger)
        except LostLedgerError:
            manifest = read_manifest(bundle)
            if (manifest.dataset, manifest.release_id) != (published.name, bundle.name):
                raise BundleError(f"{bundle}: the bundle belongs to another release") from None
            yield BundleReader(bundle, manifest)


def _require_genuine(bundle: BundleReader) -> None:
    verify_files(bundle.path, bundle.manifest)
    if key := signing_key():
        verify_signature(bundle.path, key.public_key())
    if checkpoint_file():
        seen = seen_draws(bundle.manifest.dataset, bundle.manifest.release_id)
        if seen != {record.name: record.draw_sha256 for record in bundle.manifest.releases}:
            raise BundleError(
                f"{bundle.path}: the witness has not seen these draws, so the bundle may be forged:"
                " withdraw it"
            )


def _enter(ledger: Ledger, bundle: BundleReader, who: str, why: str) -> None:
    manifest, plan = bundle.manifest, bundle.plan
    names = manifest.dataset, manifest.release_id
    draws = {name: bundle.draw(name) for name in plan.built}
    ledger.reserve(*names, manifest.plan_digest, charges_of(plan))
    for name, noisy in draws.items():
        if ledger.commit(*names, name, noisy).digest() != noisy.digest():
            raise DPReleaseError(
                f"{bundle.path}: the ledger has another draw of {name}: withdraw the bundle that shows"
                " a second draw, and treat both as spent"
            )
    ledger.record_recovery(*names, who, why)
    if plan.publication.requester:
        ledger.request(*names, who=plan.publication.requester, why=plan.publication.title)
    if given := manifest.approval:
        ledger.decide(*names, True, who=given.who, why=given.why, at=given.at)
    ledger.seal(*names, bundle_digest(bundle.path))
