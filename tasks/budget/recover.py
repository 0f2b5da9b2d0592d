"""Enters releases that are missing in a ledger, from the draws in their bundles.

A bundle proves what was charged and drawn: its plan has the prices, and its draws are stored byte for
byte.  So nothing is drawn a second time, and the budget counts as spent again.  Its manifest says
whether the release counts against the fraction open to requests, and against the requester's allowance.
Bundles do not contain grants and allowances, which must be entered first.
"""

import shlex
from collections.abc import Sequence
from contextlib import suppress
from fractions import Fraction
from pathlib import Path

from dpcore.accounting.budget import Budget, decimal_text, total
from dpcore.errors import BudgetError, BundleError, DPReleaseError, LostLedgerError
from tasks.budget.charge import require_charged
from tasks.budget.checkpoint import checkpoint_file, seen_draws
from tasks.bundle.digests import bundle_digest, is_bundle
from tasks.bundle.folders import folders_in
from tasks.bundle.reader import BundleReader
from tasks.bundle.sign import signing_key, verify_signature
from tasks.bundle.verify import is_unrecorded, read_manifest, verify_files
from tasks.ledger import ChargeRequest, Ledger, charges_of
from tasks.ledger.records import exact_text


def recover(ledger: Ledger, published: Path, who: str, why: str) -> list[str]:
    """Enter every bundle in a dataset's folder that is missing in the ledger, the oldest first.

    If the ledger has a bundle's draws but not its approval or digest, these are entered only if the
    configured key signed the bundle, because draws prove only what was charged.

    Returns the release ids of entered bundles.  Raises ``BundleError`` for a bundle that is damaged, not
    signed with the configured key or not in the configured witness, and ``BudgetError`` if grants or
    allowances are missing too.
    """
    lost, unrecorded = _lost(ledger, published)
    # In the order of their draws: a run of a series is accepted only after the runs before it.
    lost.sort(key=lambda each: each.manifest.drawn_at)
    _require_allowances(ledger, published.name, lost)
    if signing_key():
        lost += unrecorded
    for bundle in lost:
        _require_genuine(bundle)
        _enter(ledger, bundle, who, why)
    return [bundle.manifest.release_id for bundle in lost]


def _lost(ledger: Ledger, published: Path) -> tuple[list[BundleReader], list[BundleReader]]:
    """The bundles without draws in the ledger, and the bundles without approval or digest there."""
    unknown, unrecorded = [], []
    for bundle in filter(is_bundle, folders_in(published).values()):
        try:
            require_charged(bundle, published.name, ledger)
        except LostLedgerError:
            manifest = read_manifest(bundle)
            if (manifest.dataset, manifest.release_id) != (published.name, bundle.name):
                raise BundleError(f"{bundle}: the bundle belongs to another release") from None
            unknown.append(BundleReader(bundle, manifest))
            continue
        with suppress(BundleError):  # damaged: `ledger check` says so
            manifest = read_manifest(bundle)
            if is_unrecorded(bundle, manifest, ledger):
                unrecorded.append(BundleReader(bundle, manifest))
    return unknown, unrecorded


def _require_allowances(ledger: Ledger, dataset: str, lost: Sequence[BundleReader]) -> None:
    """Raise ``BudgetError`` unless the ledger's allowances cover the lost bundles charged to them."""
    needed: dict[str, Budget] = {}
    for bundle in lost:
        if bundle.manifest.request == "allowance":
            analyst, prices = bundle.plan.publication.requester, bundle.plan.prices.values()
            needed[analyst] = needed.get(analyst, Budget()) + total(prices)
    known = ledger.allowances(dataset)
    lacking = []
    for analyst, spent in needed.items():
        left = known[analyst].left if analyst in known else Budget()
        if not left.covers(spent):
            command = f"dprelease ledger allow {dataset} {shlex.quote(analyst)}"
            lacking.append(f"  {command}{_amounts(left, spent)} --who WHO --why WHY")
    if lacking:
        raise BudgetError(
            "bundles that are missing in the ledger were charged to allowances that are missing too, so"
            " nothing was entered. Give at least these allowances again, and repeat the command:\n"
            + "\n".join(lacking)
        )


def _amounts(left: Budget, spent: Budget) -> str:
    """The options of ``ledger allow`` that raise the amount ``left`` to the amount ``spent``."""
    if spent.rho:
        return f" --alpha NUMBER (rho = {decimal_text(spent.rho - left.rho)} is missing)"
    alpha = max(spent.alpha - left.alpha, Fraction(0)) or spent.alpha  # else beta would be 0 too
    beta = max(spent.beta - left.beta, Fraction(0))
    return f" --alpha {exact_text(alpha)}" + (f" --beta {exact_text(beta)}" if beta else "")


def _require_genuine(bundle: BundleReader) -> None:
    verify_files(bundle.path, bundle.manifest)
    if key := signing_key():
        verify_signature(bundle.path, key.public_key())
    if checkpoint_file():
        seen = seen_draws(bundle.manifest.dataset, bundle.manifest.release_id)
        if seen != bundle.manifest.draws:
            raise BundleError(
                f"{bundle.path}: the witness does not list these draws, so the bundle may be forged:"
                " withdraw it"
            )


def _enter(ledger: Ledger, bundle: BundleReader, who: str, why: str) -> None:
    manifest, plan = bundle.manifest, bundle.plan
    names = manifest.dataset, manifest.release_id
    draws = {name: bundle.draw(name) for name in plan.built}
    # The whole grant, because the release was within the open fraction when it was made.
    open_fraction = Fraction(1) if manifest.request else None
    analyst = plan.publication.requester if manifest.request == "allowance" else None
    charged = *names, manifest.plan_digest, charges_of(plan)
    ledger.reserve(ChargeRequest(*charged, open_fraction, analyst))
    for name, noisy in draws.items():
        if ledger.commit(*names, name, noisy).digest() != noisy.digest():
            raise DPReleaseError(
                f"{bundle.path}: the ledger has another draw of {name}: withdraw the bundle that shows"
                " a second draw, and treat both as spent"
            )
    ledger.record_recovery(*names, who, why)
    if requester := plan.publication.requester:
        ledger.record_request(*names, requester, why=plan.publication.title)
    if given := manifest.approval:
        ledger.decide(*names, True, who=given.who, why=given.why, at=given.at)
    ledger.seal(*names, bundle_digest(bundle.path))
