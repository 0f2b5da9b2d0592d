"""The ledger's rules for charges and amounts, as pure functions that raise clear refusals."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from fractions import Fraction
from typing import Any

from dpcore.accounting.budget import Budget
from dpcore.accounting.concentrated import Composition, caps
from dpcore.domain.adjacency import ROW
from dpcore.errors import BudgetError, LedgerError, UnusableLedgerError
from schemas.releases.events import read_event
from tasks.ledger.records import (
    RESTORE,
    Account,
    Allowance,
    Charge,
    ChargeRecord,
    ChargeRequest,
    State,
    amount_text,
)

_COORDINATES = ("alpha", "rho", "beta", "gamma")


def new_charges(request: ChargeRequest, existing: Mapping[str, ChargeRecord]) -> dict[str, Charge]:
    """The requested charges that the release has not been charged for.

    Raises ``LedgerError`` if another plan, price or event was charged under this id, because these
    never change.
    """
    release_id, asked = request.release_id, request.charges
    remedy = "run the changed plan under a new release id"
    if any(charge.plan_digest != request.plan_digest for charge in existing.values()):
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
"""The privacy unit and the neighbouring relation that a charge protects."""


def promise_of(event: Mapping[str, Any]) -> Promise:
    """The unit and the neighbouring relation of an event; an event without a unit has rows as units."""
    return str(event.get("unit", ROW)), str(event.get("neighbours", "no relation stated"))


def require_same_promise(
    dataset: str, spent: Collection[Promise], asked: Collection[Promise]
) -> None:
    """Raise ``BudgetError`` unless all charges of a dataset are for the same unit and relation.

    Only alphas for the same pairs of neighbouring tables add up.
    """
    promises = sorted({*spent, *asked})
    if len(promises) > 1:
        first = min(spent, default=promises[0])
        other = next(each for each in promises if each != first)
        raise BudgetError(
            f"earlier releases of dataset {dataset!r} protect {_describe(first)}, but this plan"
            f" protects {_describe(other)}: such budgets cannot be added, so nothing was charged."
            " Give the plan the privacy_unit and neighbours of the earlier releases"
        )


def require_fixed_plan(
    dataset: str, plan_digest: str, counted: Sequence[ChargeRecord], asked: Collection[Charge]
) -> None:
    """Raise ``BudgetError`` if a plan requests gamma and may have been chosen in view of a release.

    One plan of a dataset may spend gamma: the first that reserves it, if nothing was drawn before.
    """
    if not any(charge.budget.gamma for charge in asked):
        return
    spenders = {charge.plan_digest for charge in counted if charge.budget.gamma}
    drawn = any(charge.state is State.COMMITTED for charge in counted)
    if spenders == {plan_digest} or not (spenders or drawn):
        return
    what = "gamma is kept for another plan of" if spenders else "something was released before from"
    raise BudgetError(
        f"this plan requests gamma, but {what} dataset {dataset!r}. Gammas add up only over"
        " releases that were not chosen in view of others, so only a plan that was fixed before the"
        " dataset's first release may spend gamma; nothing was charged. Use mechanisms that need no"
        " gamma, or keep the plan for a new dataset, as its first"
    )


def _describe(promise: Promise) -> str:
    unit, relation = promise
    return f"{'one row' if unit == ROW else f'all records with the same {unit}'} ({relation})"


def require_runs_before(
    dataset: str, account: int, counted: Sequence[ChargeRecord], asked: Mapping[str, Charge]
) -> None:
    """Raise ``BudgetError`` unless all earlier runs of a series are charged, and this run is not.

    A run is charged the amount that it adds to runs 1..run-1. So those runs must count against the same
    account, and none of them may have wider noise (``dpcore.domain.series``, the price of a run).
    """
    for name, charge in asked.items():
        if not charge.series:
            continue
        same = [c for c in counted if (c.series, c.release_name) == (charge.series, name)]
        twice = [c.release_id for c in same if c.run == charge.run]
        if twice:
            raise BudgetError(
                f"run {charge.run} of this series of dataset {dataset!r} was charged as release"
                f" {twice[0]!r}, and a period is released only once; nothing was charged. Write the"
                " number of another period"
            )
        charged = {c.run: c for c in same if c.account == account and c.run < charge.run}
        missing = [str(run) for run in range(1, charge.run) if run not in charged]
        if missing:
            raise BudgetError(
                f"run {charge.run} of a series is charged only what it adds to the runs before, but"
                f" {name!r} of run {', '.join(missing)} was not charged to the same grant; nothing was"
                " charged. Run those first, or begin a new series"
            )
        price = _rho(charge.event)
        wider = [str(run) for run, before in charged.items() if _rho(before.event) < price]
        if wider:
            raise BudgetError(
                f"run {charge.run} of a series must not have narrower noise than run {wider[0]}, but it"
                " has; nothing was charged. Request at most as much as that run did, or begin a new"
                " series"
            )


def _rho(event: Mapping[str, Any]) -> Fraction:
    """The price in rho of a run by itself; it falls as the noise widens."""
    price = read_event(event).concentrated
    if price is None:
        raise LedgerError("a run of a series has a privacy event without a concentrated price")
    return price[0]


def require_run_whole(counted: Collection[ChargeRecord], charge: ChargeRecord) -> None:
    """Raise ``LedgerError`` if other charges of a series depend on this one.

    Such charges are all charges of later runs, and the drawn charges of the same run.
    """
    if not charge.series:
        return
    same = [c for c in counted if c.series == charge.series]
    later = [c.run for c in same if c.run > charge.run]
    if later:
        raise LedgerError(
            f"{charge.release_name!r} is part of run {charge.run} of a series, whose run {max(later)}"
            " was charged at a price that depends on it: void the later runs first"
        )
    if any(c.run == charge.run and c.state is State.COMMITTED for c in same):
        raise LedgerError(
            f"other releases of run {charge.run} of this series are drawn, and it cannot go on without"
            f" {charge.release_name!r}: run the plan with the id {charge.release_id!r} again, which"
            " draws what is missing and costs nothing"
        )


def require_composition_kept(
    dataset: str, account: Account | None, composition: Composition
) -> None:
    """Raise ``BudgetError`` if a basic grant would follow a concentrated one."""
    if account is not None and account.composition != "basic" and composition == "basic":
        raise BudgetError(
            f"dataset {dataset!r} has a concentrated grant, and a basic one cannot follow: its charges"
            " are in rho. Grant with --composition concentrated, which opens a new account; nothing was"
            " granted"
        )


def require_same_composition(
    dataset: str, account: Account | None, asked: Collection[Charge]
) -> None:
    """Raise ``BudgetError`` if charges are in rho, but the grant is basic, or the other way round."""
    if account is None:
        return
    wanted, other = "alpha", "rho"
    if account.composition == "concentrated":
        wanted, other = other, wanted
    if any(getattr(charge.budget, other) for charge in asked):
        raise BudgetError(
            f"the grant of dataset {dataset!r} is {account.composition}, so it is spent in {wanted},"
            f" but this plan spends {other}: write `composition: {account.composition}` in the plan's"
            " budget; nothing was charged"
        )


def require_account(dataset: str, account: Account | None) -> Account:
    """The account; raises ``BudgetError`` for a dataset that has none."""
    if account is None:
        raise BudgetError(
            f"dataset {dataset!r} has no grant in this ledger, so it has no budget to spend; "
            "an officer can grant a budget with: dprelease ledger grant"
        )
    return account


def require_affordable(
    dataset: str, release_id: str, granted: Budget, spent: Budget, asked: Budget
) -> None:
    """Raise ``BudgetError`` unless the grant covers the amounts spent and requested."""
    short = _short(asked, remaining(dataset, granted, spent), granted, "granted")
    if short:
        raise BudgetError(
            f"release {release_id!r} would overspend dataset {dataset!r} ({short}); "
            "nothing was charged. Ask for less, or have an officer grant more with: "
            "dprelease ledger grant"
        )


def require_opened(
    dataset: str, release_id: str, opened: Budget, spent: Budget, asked: Budget
) -> None:
    """Raise ``BudgetError`` unless the part opened to requests covers this and all earlier requests."""
    left = opened - spent if opened.covers(spent) else Budget()
    if short := _short(asked, left, opened, "opened to requests"):
        raise BudgetError(
            f"the request {release_id!r} would spend more of dataset {dataset!r} than its plan opens"
            f" ({short}); nothing was charged. Ask for less, or have the agency open more with"
            " operation.requests.part"
        )


def require_same_id(release_id: str, made: Sequence[str]) -> None:
    """Raise ``LedgerError`` if the plan has releases for this due time (``made``), but not with this id.

    Then the plan's file was renamed, and the due time would be released twice.
    """
    if made and release_id not in made:
        raise LedgerError(
            f"{release_id}: this plan was released for the same due time as {made[0]}: rename the plan's"
            " file back, or make a separate release with --release-id instead of --due"
        )


def require_known_analyst(dataset: str, analyst: str, known: Mapping[str, Allowance]) -> Allowance:
    """The allowance; raises ``BudgetError`` for an analyst who has none."""
    if analyst not in known:
        raise BudgetError(
            f"{analyst!r} has no allowance in dataset {dataset!r}; nothing was charged. Write the name"
            " as the agency does, or have it give one with: dprelease ledger allow"
            f" {dataset} NAME --alpha NUMBER --who WHO --why WHY"
        )
    return known[analyst]


def require_allowed(
    dataset: str, release_id: str, analyst: str, known: Mapping[str, Allowance], asked: Budget
) -> str:
    """The analyst whose allowance is charged; '' if the dataset has no allowances.

    Raises ``BudgetError`` unless the analyst's allowance covers the amounts spent and requested.
    """
    if not known:
        return ""
    found = require_known_analyst(dataset, analyst, known)
    if short := _short(asked, found.left, found.allowed, f"allowed to {analyst}"):
        raise BudgetError(
            f"{release_id!r} would spend more of dataset {dataset!r} than its analyst may ({short});"
            " nothing was charged. Ask for less, or have the agency allow more with: dprelease ledger"
            " allow"
        )
    return analyst


def allowed_amounts(dataset: str, account: Account, promise: Budget, before: Budget) -> Budget:
    """The additional amounts that an analyst may spend, in the coordinates of the account.

    ``promise``: (alpha, beta).  Without a beta, the analyst gets the same fraction of the grant's beta
    as of its alpha.  Under concentrated composition, rho follows from alpha at the stated beta, by
    default the grant's; the analyst gets the same fraction of the failure probability as of rho.
    ``before``: earlier allowances.  Raises ``BudgetError`` if these and the new amounts exceed the
    grant, and ``ValueError`` for an alpha without noise.
    """
    if not promise.alpha:
        return Budget()
    granted, whole = account.promise, account.caps
    if account.composition == "basic":
        share = promise.alpha / granted.alpha if granted.alpha else Fraction(0)
        amounts = Budget(promise.alpha, promise.beta or granted.beta * share)
    else:
        kept = caps(account.composition, Budget(promise.alpha, promise.beta or granted.beta))
        amounts = Budget(rho=kept.rho, beta=whole.beta * kept.rho / whole.rho)
    if short := _short(before + amounts, whole, whole, "granted"):
        raise BudgetError(
            f"an analyst cannot be allowed more than dataset {dataset!r} was granted ({short}); nothing"
            " was recorded"
        )
    return amounts


def require_own(dataset: str, sources: Collection[str], known: Mapping[str, str]) -> None:
    """Raise ``BudgetError`` if one of the survey's names belongs to another dataset.

    Otherwise two datasets on the same survey would be granted its budget twice.
    """
    for other in {known.get(source, dataset) for source in sources} - {dataset}:
        raise BudgetError(
            f"source: this survey belongs to the dataset {other!r} in the ledger, and a survey has one"
            f" budget: write `dataset: {other}`. If another survey has replaced it, whoever grants"
            " budgets records this with: dprelease ledger source PLAN --who WHO --why WHY; nothing was"
            " charged"
        )


def _short(asked: Budget, left: Budget, whole: Budget, how: str) -> str:
    """Text on the coordinates in which a request exceeds the rest of the grant or opened part."""
    return "; ".join(
        f"{name}: asked {amount_text(getattr(asked, name))}, "
        f"left {amount_text(getattr(left, name))} "
        f"of {amount_text(getattr(whole, name))} {how}"
        for name in _COORDINATES
        if getattr(asked, name) > getattr(left, name)
    )


def remaining(dataset: str, granted: Budget, spent: Budget) -> Budget:
    """The amounts that are left; raises ``LedgerError`` if more was spent than granted."""
    if not granted.covers(spent):
        raise UnusableLedgerError(
            f"according to the ledger, more was spent on dataset {dataset!r} than was granted: it is "
            f"damaged or was changed by hand; {RESTORE}"
        )
    return granted - spent


def require_reserved(charge: ChargeRecord | None, name: str, refused: str) -> ChargeRecord:
    """The charge if it is RESERVED; otherwise raises a ``LedgerError`` that states ``refused``."""
    if charge is None:
        raise LedgerError(f"{name!r} was never reserved: {refused}; see `dprelease ledger show`")
    if charge.state is not State.RESERVED:
        raise LedgerError(
            f"the charge for {name!r} in release {charge.release_id!r} is {charge.state}: {refused}"
        )
    return charge


def require_drawn(dataset: str, release_id: str, charges: Mapping[str, ChargeRecord]) -> None:
    """Raise ``LedgerError`` unless every charge of a release has its draw."""
    if not charges:
        raise LedgerError(f"the ledger has no release {release_id!r} of {dataset}")
    missing = [name for name, charge in charges.items() if charge.state is not State.COMMITTED]
    if missing:
        raise LedgerError(
            f"release {release_id!r} is not drawn yet ({', '.join(missing)}), so it can be neither"
            " decided on nor published: run the plan first"
        )
