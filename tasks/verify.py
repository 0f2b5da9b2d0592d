"""Is a bundle whole, unchanged and paid for?"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import ValidationError

from dpcore.budget import Budget, total
from dpcore.errors import BundleError, InputError
from schemas.bundle import (
    DIGESTS,
    MANIFEST,
    SIGNATURE,
    Manifest,
    TableFile,
    privacy_statement,
)
from schemas.plan import digest_of, published_plan
from schemas.standards import documents
from tasks.parquet import arrow_types

if TYPE_CHECKING:  # who reads a bundle needs no database
    from tasks.ledger import Ledger


def read_manifest(bundle: Path) -> Manifest:
    """The manifest; raises ``BundleError`` where there is none that can be read."""
    try:
        return Manifest.model_validate(json.loads((bundle / MANIFEST).read_bytes()))
    except OSError:
        raise InputError(f"{bundle}: is not a bundle, it has no {MANIFEST}") from None
    except (ValidationError, ValueError):
        raise BundleError(f"{bundle / MANIFEST}: does not have the form of a manifest") from None


def verify_files(bundle: Path, manifest: Manifest) -> int:
    """Check digests and table schemas; return how many files were checked."""
    for entry in bundle.rglob("*"):
        if entry.is_symlink():
            raise BundleError(f"{bundle}: {entry.relative_to(bundle)} is a link, not a file")
    digests = _read_digests(bundle)
    present = {
        path.relative_to(bundle).as_posix()
        for path in bundle.rglob("*")
        if not path.is_dir() and path not in (bundle / DIGESTS, bundle / SIGNATURE)
    }
    for path in sorted(present ^ set(digests)):
        state = "is missing" if path in digests else f"is not listed in {DIGESTS}"
        raise BundleError(f"{bundle}: {path} {state}")
    for path, digest in digests.items():
        with (bundle / path).open("rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() != digest:
                raise BundleError(f"{bundle}: {path} was changed after publication")
    if digest_of(manifest.plan) != manifest.plan_digest:
        raise BundleError(f"{bundle}: the plan in the manifest is not the one of its digest")
    guarantee, plan = manifest.guarantee, published_plan(manifest.plan)
    stated = Budget(guarantee.alpha, guarantee.beta, guarantee.gamma)
    if guarantee.statement != privacy_statement(stated, plan.protection):
        raise BundleError(f"{bundle}: the privacy statement is not that of the stated budget")
    for path, document in documents(manifest).items():
        if path not in digests or (bundle / path).read_text(encoding="utf-8") != document:
            raise BundleError(f"{bundle}: {path} does not say what the manifest says")
    tables = manifest.tables
    if {table.path for table in tables} != {path for path in digests if path.endswith(".parquet")}:
        raise BundleError(f"{bundle}: the manifest does not list exactly the tables of the bundle")
    for table in tables:
        if table.sha256 != digests[table.path] or not _has_form(bundle / table.path, table):
            raise BundleError(f"{bundle}: {table.path} does not have the columns of the manifest")
    return len(digests)


def _has_form(path: Path, table: TableFile) -> bool:
    try:
        parquet = pq.ParquetFile(path)
    except pa.ArrowException:
        return False
    return (
        list(arrow_types(parquet.schema_arrow).items()) == list(table.columns.items())
        and parquet.metadata.num_rows == table.rows
    )


def verify_budget(manifest: Manifest, ledger: Ledger) -> Budget:
    """Check that the manifest's prices and draws are the ledger's; return what was spent."""
    charges = ledger.release(manifest.dataset, manifest.release_id)
    if not charges:
        raise BundleError(
            f"the ledger knows no release {manifest.release_id} of {manifest.dataset}"
        )
    if set(charges) != {record.name for record in manifest.releases}:
        raise BundleError("the ledger has charged other releases than the manifest lists")
    if {charge.plan_digest for charge in charges.values()} != {manifest.plan_digest}:
        raise BundleError("the ledger charged another plan than the manifest holds")
    for record in manifest.releases:
        charge = charges[record.name]
        if charge.state != "COMMITTED" or charge.digest != record.draw_sha256:
            raise BundleError(f"{record.name}: the ledger holds another draw, or none")
        if charge.budget != Budget(record.alpha, record.beta, record.gamma):
            raise BundleError(f"{record.name}: the manifest and the ledger differ in its price")
    decision = ledger.decision(manifest.dataset, manifest.release_id)
    approved = decision and (decision.who, decision.why, decision.at)
    stated = manifest.approval and (
        manifest.approval.who,
        manifest.approval.why,
        manifest.approval.at,
    )
    if manifest.plan["publication"].get("approval") and (stated is None or stated != approved):
        raise BundleError("the approval in the manifest is not the one that the ledger records")
    if decision is not None and not decision.approved:
        raise BundleError("the ledger says that a disclosure officer has rejected this release")
    spent = total(charge.budget for charge in charges.values())
    guarantee = manifest.guarantee
    if spent != Budget(guarantee.alpha, guarantee.beta, guarantee.gamma) or (
        guarantee.epsilon,
        guarantee.delta,
    ) != (spent.alpha, spent.beta):
        raise BundleError("the budget stated in the manifest is not what the ledger has charged")
    return spent


def verify_seal(bundle: Path, manifest: Manifest, ledger: Ledger) -> None:
    """Check that this very bundle was made by a run that had the ledger's word for it.

    The digests in a bundle show a slip; only the ledger, or a signature, shows a forgery.
    """
    if bundle_digest(bundle) not in ledger.seals(manifest.dataset, manifest.release_id):
        raise BundleError(
            f"{bundle}: the ledger does not know this bundle: it is forged, or {DIGESTS} was changed"
        )


def seal_published(ledger: Ledger, published: Path) -> int:
    """Make known to the ledger what was published before it kept digests; the number of bundles.

    Only for a ledger that was just brought up to date: it trusts every bundle that was paid for.
    """
    bundles = [path.parent for path in sorted(published.glob(f"*/*/{MANIFEST}"))]
    for bundle in bundles:
        manifest = read_manifest(bundle)
        verify_files(bundle, manifest)
        verify_budget(manifest, ledger)
        ledger.seal(manifest.dataset, manifest.release_id, bundle_digest(bundle))
    return len(bundles)


def bundle_digest(bundle: Path) -> str:
    """The SHA-256 of ``SHA256SUMS``, which stands for the whole bundle."""
    try:
        return hashlib.sha256((bundle / DIGESTS).read_bytes()).hexdigest()
    except OSError:
        raise BundleError(f"{bundle}: {DIGESTS} is missing or cannot be read") from None


def _read_digests(bundle: Path) -> dict[str, str]:
    try:
        lines = (bundle / DIGESTS).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        raise BundleError(f"{bundle}: {DIGESTS} is missing or cannot be read") from None
    digests = {}
    for line in lines:
        digest, separator, path = line.partition("  ")
        if not separator or not path or len(digest) != 64:
            raise BundleError(f"{bundle}: {DIGESTS} does not have the form of sha256sum")
        digests[path] = digest
    return digests
