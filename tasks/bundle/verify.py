"""Verifies that a bundle is whole, unchanged, and charged to the ledger."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import ValidationError

from dpcore.accounting.budget import Budget, total
from dpcore.errors import BundleError
from dpcore.releases.table import TABLE
from schemas.bundle.draws import noisy_of
from schemas.bundle.manifest import Manifest, privacy_statement
from schemas.bundle.table_file import ReplicatesRecord, TableFile
from schemas.documents import documents
from schemas.plan import Plan, published_plan
from schemas.plan.digest import digest_of
from tasks.bundle.digests import (
    DIGESTS,
    bundle_digest,
    invalid_manifest,
    manifest_document,
    verify_digests,
)
from tasks.bundle.listing import arrays_of
from tasks.bundle.parquet import arrow_types

if TYPE_CHECKING:  # reading a bundle needs no database
    from tasks.ledger import Ledger


def read_manifest(bundle: Path) -> Manifest:
    """The manifest.

    Raises ``InputError`` if this is not a bundle or cannot be read, and ``BundleError`` if it is
    damaged.
    """
    try:
        return Manifest.model_validate(manifest_document(bundle))
    except ValidationError:
        raise invalid_manifest(bundle) from None


def verify_files(bundle: Path, manifest: Manifest) -> int:
    """Check digests, documents and table schemas; return the number of files."""
    digests = verify_digests(bundle)  # first, because the checks below assume unchanged files
    if digest_of(manifest.plan) != manifest.plan_digest:
        raise BundleError(f"{bundle}: the plan in the manifest does not match its digest")
    guarantee, plan = manifest.guarantee, published_plan(manifest.plan)
    renamed = (guarantee.epsilon, guarantee.delta) == (guarantee.alpha, guarantee.beta)
    same = (guarantee.budget, guarantee.composition) == (plan.promise, plan.budget.composition)
    if not (renamed and same):
        raise BundleError(f"{bundle}: the stated budget is not what the plan promises")
    if guarantee.statement != privacy_statement(plan):
        raise BundleError(f"{bundle}: the privacy statement does not match the stated budget")
    if guarantee.domain != plan.protection.domain:
        raise BundleError(f"{bundle}: the domain of the guarantee does not match the plan")
    _verify_found(bundle, manifest, plan)
    written = documents(manifest)
    for path, document in written.items():
        if path not in digests or (bundle / path).read_text(encoding="utf-8") != document:
            raise BundleError(f"{bundle}: {path} does not match the manifest")
    forms = [form for table in manifest.tables for form in _forms(table)]
    every = [file for file, _ in forms]
    if {file.path for file in every} != {path for path in digests if path.endswith(".parquet")}:
        raise BundleError(f"{bundle}: the manifest does not list exactly the tables of the bundle")
    expected = {file.csv: file.csv_sha256 for file in every if file.csv_sha256}
    tabular = {path for path in digests if path.endswith(".csv")} - set(written)
    if expected != {path: digests[path] for path in tabular}:
        raise BundleError(f"{bundle}: the CSV files are not exactly those of its tables")
    for file, form in forms:
        if file.sha256 != digests[file.path] or _form_of(bundle / file.path) != form:
            raise BundleError(f"{bundle}: {file.path} does not have the columns of the manifest")
    return len(digests)


def _verify_found(bundle: Path, manifest: Manifest, plan: Plan) -> None:
    """Check that the draws found the categories that the manifest states for open columns."""
    draws = {
        record.name: noisy_of(arrays_of(pq.read_table(bundle / record.draw.path)))
        for record in manifest.releases
        if record.name in plan.finding
    }
    if draws and plan.as_found(draws).columns != plan.columns:
        raise BundleError(
            f"{bundle}: the plan in the manifest has categories that differ from those that were found"
        )


Form = tuple[list[tuple[str, str]], int]
"""The columns of a file with their types, and its number of rows."""


def _forms(table: TableFile) -> Iterator[tuple[TableFile | ReplicatesRecord, Form]]:
    """Yield the files of a table and of its replicates, with the forms that the manifest states."""
    yield table, ([*table.columns.items()], table.rows)
    if again := table.replicates:
        names = {TABLE: "string"} if len(table.holds) > 1 else {}
        yield again, ([*(names | dict.fromkeys(again.names, again.type)).items()], table.rows)


def _form_of(path: Path) -> Form | None:
    try:
        parquet = pq.ParquetFile(path)
    except pa.ArrowException:
        return None
    return list(arrow_types(parquet.schema_arrow).items()), parquet.metadata.num_rows


def verify_budget(manifest: Manifest, ledger: Ledger) -> Budget:
    """Check that the manifest's prices, draws and approval match the ledger; return the spending."""
    charges = ledger.release(manifest.dataset, manifest.release_id)
    if not charges:
        raise BundleError(f"the ledger has no release {manifest.release_id} of {manifest.dataset}")
    if set(charges) != {record.name for record in manifest.releases}:
        raise BundleError("the ledger charged other releases than the manifest lists")
    if {charge.plan_digest for charge in charges.values()} != {manifest.plan_digest}:
        raise BundleError("the plan that the ledger charged is not the one in the manifest")
    for record in manifest.releases:
        charge = charges[record.name]
        if charge.state != "COMMITTED" or charge.digest != record.draw_sha256:
            raise BundleError(f"{record.name}: the ledger holds another draw, or none")
        if charge.budget != record.price:
            raise BundleError(f"{record.name}: the manifest and the ledger differ in its price")
    decision = ledger.decision(manifest.dataset, manifest.release_id)
    approved, stated = (
        approval and (approval.who, approval.why, approval.at)
        for approval in (decision, manifest.approval)
    )
    if manifest.plan["publication"].get("approval") and (stated is None or stated != approved):
        raise BundleError("the approval in the manifest is not the one in the ledger")
    if decision is not None and not decision.approved:
        raise BundleError("the ledger says that a disclosure officer has rejected this release")
    spent = total(charge.budget for charge in charges.values())
    if spent != total(published_plan(manifest.plan).prices.values()):
        raise BundleError("the budget stated in the manifest is not what the ledger charged")
    return spent


def verify_seal(bundle: Path, manifest: Manifest, ledger: Ledger) -> None:
    """Check that the ledger recorded the digest of this bundle before it was published.

    The digests inside a bundle reveal accidental changes; only the ledger, or a signature, reveals a
    forgery.
    """
    if bundle_digest(bundle) not in ledger.seals(manifest.dataset, manifest.release_id):
        raise BundleError(
            f"{bundle}: this bundle is not recorded in the ledger: it is forged, its {DIGESTS} was"
            " changed, or an old copy of the ledger is in use; see `dprelease ledger check`"
        )


def is_unrecorded(bundle: Path, manifest: Manifest, ledger: Ledger) -> bool:
    """Whether the ledger lacks only a bundle's approval or digest, as when an old copy was in use."""
    names = manifest.dataset, manifest.release_id
    decision = ledger.decision(*names)
    if decision is not None and not decision.approved:
        return False
    undecided = manifest.approval is not None and decision is None
    return undecided or bundle_digest(bundle) not in ledger.seals(*names)
