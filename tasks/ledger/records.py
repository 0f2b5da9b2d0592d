"""What goes into the ledger and what comes out of it: charges, their states, and history.

Everything here is public, and every amount is exact: a budget is stored as three texts such as
``1/3`` and read back as ``Fraction``.

>>> Charge(Budget.of("1/3"), {"mechanism": "gaussian", "stddev": "7/2"}).event_text()
'{"mechanism":"gaussian","stddev":"7/2"}'
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from fractions import Fraction
from typing import Any

from dpcore.budget import Budget
from dpcore.errors import InputError, LedgerError

# An old backup has forgotten the newest charges, and would let them be spent again.
RESTORE = "restore it from a backup, and compare that with what has been published since"


class State(StrEnum):
    """Where a charge stands; RESERVED and COMMITTED count against the grant, VOID does not."""

    RESERVED = "RESERVED"
    COMMITTED = "COMMITTED"
    VOID = "VOID"


class Action(StrEnum):
    """What a line of history tells."""

    GRANT = "grant"
    RESERVE = "reserve"
    COMMIT = "commit"
    VOID = "void"
    REQUEST = "request"
    APPROVE = "approve"
    REJECT = "reject"


@dataclass(frozen=True)
class Charge:
    """What one named release is to cost, and the privacy event that justifies the price.

    ``event`` holds JSON values; accountants interpret it, and the ledger only keeps it.
    """

    budget: Budget
    event: Mapping[str, Any] = field(default_factory=dict)

    def event_text(self) -> str:
        """The event as canonical JSON: equal events give equal text, so that texts compare."""
        try:
            return json.dumps(self.event, sort_keys=True, separators=(",", ":"), allow_nan=False)
        except (TypeError, ValueError) as error:
            raise InputError(f"a privacy event must be plain JSON: {error}") from None


@dataclass(frozen=True)
class ChargeRecord:
    """One charge as the ledger holds it; ``digest`` is the SHA-256 of its committed draw."""

    charge_id: str
    dataset: str
    release_id: str
    release_name: str
    plan_digest: str
    budget: Budget
    event: Mapping[str, Any]
    state: State
    reserved_at: str
    committed_at: str | None = None
    digest: str | None = None


@dataclass(frozen=True)
class HistoryRecord:
    """One line of a dataset's history; ``who`` and ``why`` are set where a person acted."""

    at: str
    action: Action
    dataset: str
    budget: Budget
    release_id: str | None = None
    release_name: str | None = None
    who: str | None = None
    why: str | None = None
    digest: str | None = None


@dataclass(frozen=True)
class Fault:
    """Something that does not add up, where, and what a person can do about it."""

    dataset: str
    release_id: str
    release_name: str
    what: str
    remedy: str


def charge_id(dataset: str, release_id: str, release_name: str) -> str:
    """The identity of a charge: the same three names always mean the same charge.

    The names are hashed as a JSON list, so that no two triples run together into one text.
    """
    return hashlib.sha256(json.dumps([dataset, release_id, release_name]).encode()).hexdigest()


def require_text(**named: str) -> None:
    """Refuse a name or a reason that is blank or does not print on one line."""
    for name, value in named.items():
        if not isinstance(value, str) or not value.strip() or not value.isprintable():
            raise InputError(f"{name} must be one line of printable text, not {value!r}")


def read_budget(alpha: str, beta: str, gamma: str) -> Budget:
    """A stored budget; raises ``LedgerError`` where the text is not an exact amount."""
    try:
        return Budget.of(alpha, beta, gamma)
    except (TypeError, ValueError, ZeroDivisionError):
        raise LedgerError(
            "the ledger holds an amount that is not a budget: it is damaged or was changed by "
            f"hand; {RESTORE}"
        ) from None


def amount_text(amount: Fraction) -> str:
    """An amount for a message: a decimal where that is exact and short, else a fraction.

    >>> amount_text(Fraction(1, 8)), amount_text(Fraction(1, 3))
    ('0.125', '1/3')
    """
    for places in range(10):
        scaled = amount * 10**places
        if scaled.denominator == 1:
            digits = str(scaled.numerator).rjust(places + 1, "0")
            return f"{digits[:-places]}.{digits[-places:]}" if places else digits
    return str(amount)


def utc_now() -> str:
    """The time as ISO 8601 in UTC; texts of equal length, so that they sort by time."""
    return datetime.now(UTC).isoformat(timespec="microseconds")
