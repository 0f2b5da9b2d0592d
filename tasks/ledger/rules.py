"""What the ledger allows: pure decisions about charges and amounts, and their refusals in words."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from dpcore.adjacency import REPLACE_ONE, ROW
from dpcore.budget import Budget
from dpcore.errors import BudgetError, LedgerError
from tasks.ledger.records import RESTORE, Charge, ChargeRecord, State, amount_text

_COORDINATES = ("alpha", "beta", "gamma")


def new_charges(
    release_id: str,
    plan_digest: str,
    asked: Mapping[str, Charge],
    existing: Mapping[str, ChargeRecord],
) -> dict[str, Charge]:
    """Those of ``asked`` that the release has not been charged for.

    Raises ``LedgerError`` where the release was charged for something else under this id: a
    release id stands for one plan, and a charge for one price and one event, for good.
    """
    remedy = "run the changed plan under a new release id"
    if any(charge.plan_digest != plan_digest for charge in existing.values()):
        raise LedgerError(f"release {release_id!r} was charged for another plan: {remedy}")
    for name in (name for name in asked if name in existing):
        if existing[name].state is State.VOID:
            raise LedgerError(
                f"the charge for {name!r} in release {release_id!r} was voided, and a voided "
                "charge cannot be used again: run the plan under a new release id"
            )
        if existing[name].budget != asked[name].budget:
            raise LedgerError(
                f"{name!r} in release {release_id!r} was charged at another price: {remedy}"
            )
        if Charge(existing[name].budget, existing[name].event).event_text() != (
            asked[name].event_text()
        ):
            raise LedgerError(
                f"{name!r} in release {release_id!r} was charged for another privacy event: "
                f"{remedy}"
            )
    return {name: charge for name, charge in asked.items() if name not in existing}


Promise = tuple[str, str]
"""Whose presence is hidden, and between which tables: what the alpha of a charge is about."""


def promise(event: Mapping[str, Any]) -> Promise:
    """The unit and the neighbouring relation of an event; the oldest ones state neither."""
    return str(event.get("unit", ROW)), str(event.get("neighbours", REPLACE_ONE.relation))


def require_same_promise(
    dataset: str, spent: Collection[Promise], asked: Collection[Promise]
) -> None:
    """Raise ``BudgetError`` unless all charges of a dataset are about the same unit and relation.

    Alphas add up for one pair of neighbours; those of other neighbours say nothing of it.
    """
    promises = sorted({*spent, *asked})
    if len(promises) > 1:
        first = min(spent, default=promises[0])
        other = next(each for each in promises if each != first)
        raise BudgetError(
            f"the budget of dataset {dataset!r} is about {_told(first)}, and this plan is about"
            f" {_told(other)}: what they spend does not add up, so nothing was charged. State the"
            " privacy_unit and neighbours of the dataset's earlier releases"
        )


def _told(promise: Promise) -> str:
    unit, relation = promise
    return f"{'one row' if unit == ROW else f'the records with the same {unit}'} ({relation})"


def require_known(dataset: str, granted: Budget | None) -> Budget:
    """What was granted; raises ``BudgetError`` for a dataset that was never granted anything."""
    if granted is None:
        raise BudgetError(
            f"dataset {dataset!r} has no grant in this ledger, so nothing may be spent on it; "
            "an officer can grant a budget with: dprelease ledger grant"
        )
    return granted


def require_affordable(
    dataset: str, release_id: str, granted: Budget, spent: Budget, asked: Budget
) -> None:
    """Raise ``BudgetError`` unless the grant covers what is spent and what is asked."""
    left = remaining(dataset, granted, spent)
    short = [
        f"{name}: asked {amount_text(getattr(asked, name))}, "
        f"left {amount_text(getattr(left, name))} "
        f"of {amount_text(getattr(granted, name))} granted"
        for name in _COORDINATES
        if getattr(asked, name) > getattr(left, name)
    ]
    if short:
        raise BudgetError(
            f"release {release_id!r} would overspend dataset {dataset!r} ({'; '.join(short)}); "
            "nothing was charged. Ask for less, or have an officer grant more with: "
            "dprelease ledger grant"
        )


def remaining(dataset: str, granted: Budget, spent: Budget) -> Budget:
    """What is left; raises ``LedgerError`` for a ledger that says more was spent than granted."""
    if not granted.covers(spent):
        raise LedgerError(
            f"the ledger says that more was spent on dataset {dataset!r} than was granted: it is "
            f"damaged or was changed by hand; {RESTORE}"
        )
    return granted - spent


def require_reserved(charge: ChargeRecord | None, name: str, refused: str) -> ChargeRecord:
    """The charge if it is RESERVED; else ``LedgerError`` with what is ``refused`` and why."""
    if charge is None:
        raise LedgerError(f"{name!r} was never reserved: {refused}; see `dprelease ledger show`")
    if charge.state is not State.RESERVED:
        raise LedgerError(
            f"the charge for {name!r} in release {charge.release_id!r} is {charge.state}: {refused}"
        )
    return charge


def require_drawn(dataset: str, release_id: str, charges: Mapping[str, ChargeRecord]) -> None:
    """Raise ``LedgerError`` unless a release has draws, and all of them: else decide on what?"""
    if not charges:
        raise LedgerError(f"the ledger knows no release {release_id!r} of {dataset}")
    missing = [name for name, charge in charges.items() if charge.state is not State.COMMITTED]
    if missing:
        raise LedgerError(
            f"release {release_id!r} is not drawn yet ({', '.join(missing)}), so there is nothing"
            " to decide on or to publish: run it first"
        )
