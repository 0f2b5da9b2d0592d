"""The ledger's records: charges and their states, history and faults.

All of it is public, and every amount is exact: a budget is stored as texts such as ``1/3``
and read back as ``Fraction``.

>>> Charge(Budget.of("1/3"), {"mechanism": "gaussian", "stddev": "7/2"}).event_text()
'{"mechanism":"gaussian","stddev":"7/2"}'
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from dpcore.accounting.budget import Budget, decimal_text
from dpcore.accounting.concentrated import Composition
from dpcore.errors import InputError, UnusableLedgerError
from dpcore.mechanisms import Event, WithinShare

if TYPE_CHECKING:
    from schemas.plan import Plan

# A backup lacks the charges made after it, and would let that budget be spent again.
RESTORE = "restore it from a backup, and compare the backup with the bundles published since"


class State(StrEnum):
    """The state of a charge; RESERVED and COMMITTED count against the grant, VOID does not."""

    RESERVED = "RESERVED"
    COMMITTED = "COMMITTED"
    VOID = "VOID"


class Action(StrEnum):
    """The kind of event in one line of history."""

    GRANT = "grant"
    RESERVE = "reserve"
    COMMIT = "commit"
    VOID = "void"
    REQUEST = "request"
    ASK = "ask"
    APPROVE = "approve"
    REJECT = "reject"
    ASSIGN = "assign"
    RECOVER = "recover"
    ALLOW = "allow"


@dataclass(frozen=True)
class Charge:
    """The price of one named release, and the privacy event that justifies it.

    ``event`` holds JSON values; accountants interpret it, and the ledger only stores it.  The charge for
    a run of a series holds the series (``Plan.series_id``) and the number of the run; its price is the
    amount that it adds to runs 1..run-1.
    """

    budget: Budget
    event: Mapping[str, Any] = field(default_factory=dict)
    series: str = ""
    run: int = 0

    def event_text(self) -> str:
        """The event as canonical JSON, so that equal events give equal texts."""
        try:
            return json.dumps(self.event, sort_keys=True, separators=(",", ":"), allow_nan=False)
        except (TypeError, ValueError) as error:
            raise InputError(f"a privacy event must be plain JSON: {error}") from None


def charges_of(plan: Plan) -> dict[str, Charge]:
    """The charge of each release of a plan: its price, and the event of its mechanism.

    All are charged before anything is drawn.  The event of a release over categories that are not found
    yet states only its price, not its mechanism.
    """
    series, run = plan.series_id, plan.series.run if plan.series else 0
    return {
        name: Charge(plan.prices[name], _event(plan, name).to_dict(), series, run)
        for name in plan.built
    }


def _event(plan: Plan, name: str) -> Event:
    release = plan.built[name]
    if not plan.open_columns or name in plan.finding:
        return release.event
    share = release.share
    return WithinShare(share.alpha, share.beta, share.rho, adjacency=release.adjacency)


@dataclass(frozen=True)
class ChargeRequest:
    """The charges of a whole release, which the ledger makes together or refuses.

    ``open_fraction``: as in ``ReleaseJob``.  ``analyst``: the requester, whose allowance must cover the
    charges, or None for a recovered request that was charged to no allowance.  ``ending``: the end of
    the id that only one release of the plan may have.
    """

    dataset: str
    release_id: str
    plan_digest: str
    charges: Mapping[str, Charge]
    open_fraction: Fraction | None = None
    analyst: str | None = ""
    ending: str = ""

    def __post_init__(self) -> None:
        """Raise ``InputError`` unless the names are printable text and the events plain JSON."""
        require_text(dataset=self.dataset, release_id=self.release_id, plan_digest=self.plan_digest)
        for name, charge in self.charges.items():
            require_text(release_name=name)
            charge.event_text()  # raises for an event that is not JSON


@dataclass(frozen=True)
class ChargeRecord:
    """One charge as the ledger holds it; ``digest`` is the SHA-256 of its committed draw."""

    charge_id: str
    dataset: str
    release_id: str
    release_name: str
    account: int
    plan_digest: str
    budget: Budget
    event: Mapping[str, Any]
    state: State
    reserved_at: str
    series: str = ""
    run: int = 0
    open_fraction: str = ""
    analyst: str = ""
    committed_at: str | None = None
    digest: str | None = None


Releases = Mapping[str, Mapping[str, ChargeRecord]]
"""The charges of a dataset, by release id and name."""


@dataclass(frozen=True)
class Account:
    """An account, against which charges of a dataset count.

    Basic grants add up to one account.  Each concentrated grant opens a new account and closes the
    previous one to new charges.  ``number``: the id of its grant, 0 if basic; ``promise``: (alpha, beta,
    gamma) of everything charged to it; ``caps``: limits on sums of charges.
    """

    number: int
    composition: Composition
    promise: Budget
    caps: Budget


@dataclass(frozen=True)
class Allowance:
    """The amounts of the current account that an analyst may spend and has spent.

    ``key``: the SHA-256 of the analyst's newest token.  The ledger does not hold the token.
    """

    allowed: Budget
    spent: Budget
    key: str = field(repr=False)

    @property
    def left(self) -> Budget:
        return self.allowed - self.spent if self.allowed.covers(self.spent) else Budget()

    def require(self, token: str) -> None:
        """Raise ``InputError`` unless this is the analyst's newest token."""
        if not hmac.compare_digest(key_of(token), self.key):
            raise InputError(
                "this is not the analyst's newest token for this dataset; nothing was charged. The"
                " agency gives a new one with: dprelease ledger allow"
            )

    def proof(self, question: str) -> str:
        """A code for a question that only the token's holder and readers of the ledger can compute."""
        return hmac.new(self.key.encode(), question.encode(), hashlib.sha256).hexdigest()


@dataclass(frozen=True)
class HistoryRecord:
    """One line of a dataset's history; ``who`` and ``why`` are set where a person acted.

    ``budget``: the charge, or the promise of a grant; ``account``: the number of the account; ``caps``:
    for a grant, the limits on the account's charges.
    """

    at: str
    action: Action
    dataset: str
    budget: Budget
    release_id: str | None = None
    release_name: str | None = None
    who: str | None = None
    why: str | None = None
    digest: str | None = None
    account: int | None = None
    caps: Budget | None = None


@dataclass(frozen=True)
class Fault:
    """A contradiction in the ledger, its place, and what a person can do about it."""

    dataset: str
    release_id: str
    release_name: str
    what: str
    remedy: str


def charge_id(dataset: str, release_id: str, release_name: str) -> str:
    """The key of a charge: the same three names always give the same charge.

    The names are hashed as a JSON list, because joined names of different triples could be equal.
    """
    return hashlib.sha256(json.dumps([dataset, release_id, release_name]).encode()).hexdigest()


def key_of(token: str) -> str:
    """The hash of a token, for the ledger.  Tokens are random, so a plain hash reveals nothing."""
    return hashlib.sha256(token.encode()).hexdigest()


def require_text(**named: str) -> None:
    """Refuse a name or a reason that is blank or is not one printable line."""
    for name, value in named.items():
        if not isinstance(value, str) or not value.strip() or not value.isprintable():
            raise InputError(f"{name} must be one line of printable text, not {value!r}")


def read_budget(alpha: str, beta: str, gamma: str, rho: str) -> Budget:
    """A stored budget; raises ``LedgerError`` if a text is not an exact amount."""
    try:
        return Budget(*(Fraction(text) for text in (alpha, beta, gamma, rho)))
    except (TypeError, ValueError, ZeroDivisionError):
        raise UnusableLedgerError(
            "the ledger contains an amount that is not a number: it is damaged or was changed by "
            f"hand; {RESTORE}"
        ) from None


def amount_text(amount: Fraction) -> str:
    """An amount for a message: a decimal if it is exact and short, else a short fraction.

    >>> amount_text(Fraction(1, 8)), amount_text(Fraction(1, 3))
    ('0.125', '1/3')
    """
    for places in range(10):
        scaled = amount * 10**places
        if scaled.denominator == 1:
            digits = str(scaled.numerator).rjust(places + 1, "0")
            return f"{digits[:-places]}.{digits[-places:]}" if places else digits
    return str(amount) if len(str(amount)) <= 20 else decimal_text(amount)


def exact_text(amount: Fraction) -> str:
    """An amount as a person writes it for a command: a decimal if it is exact, else a fraction."""
    decimal = decimal_text(amount)
    return str(amount) if "…" in decimal else decimal


def utc_now() -> str:
    """The time as ISO 8601 in UTC; all texts have the same length, so they sort by time."""
    return datetime.now(UTC).isoformat(timespec="microseconds")
