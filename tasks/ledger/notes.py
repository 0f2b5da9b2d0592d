"""Notes on a release: who requested it, whether its plan requires a decision, and the decision.

A note belongs to a charge, and so to one draw: an approval covers the draws that the officer saw,
and no others.  A note on a release is written once on each of its charges.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, insert, select

from dpcore.accounting.budget import Budget
from dpcore.errors import ApprovalError
from tasks.ledger import tables
from tasks.ledger.records import Action, ChargeRecord, HistoryRecord, utc_now

_ON_RELEASES = (Action.REQUEST, Action.APPROVE, Action.REJECT, Action.RECOVER)


@dataclass(frozen=True)
class Decision:
    """A disclosure officer's decision; ``who`` is the name that was typed, not a verified identity."""

    approved: bool
    who: str
    why: str
    at: str

    def __str__(self) -> str:
        verb = "approved" if self.approved else "rejected"
        return f"{verb} by {self.who} ({self.why}) at {self.at[:19]} UTC"


def add(
    connection: Connection,
    charges: Mapping[str, ChargeRecord],
    action: Action,
    who: str,
    why: str,
    at: str | None = None,
) -> None:
    """Write a note on every charge; ``at``: its time, by default now."""
    note = {"action": action.value, "who": who, "why": why, "at": at or utc_now()}
    rows = [{"charge_id": charge.charge_id, **note} for charge in charges.values()]
    connection.execute(insert(tables.note), rows)


def find(
    connection: Connection, charges: Mapping[str, ChargeRecord], *actions: Action
) -> Sequence[Any]:
    """The notes of these kinds on any of the charges, the oldest first."""
    note = tables.note.c
    wanted = note.charge_id.in_([charge.charge_id for charge in charges.values()])
    statement = select(note.action, note.who, note.why, note.at).where(
        wanted, note.action.in_([action.value for action in actions])
    )
    return connection.execute(statement.order_by(note.id)).all()


def decision(connection: Connection, charges: Mapping[str, ChargeRecord]) -> Decision | None:
    """The decision on a release with these charges."""
    for row in find(connection, charges, Action.APPROVE, Action.REJECT):
        return Decision(row.action == Action.APPROVE, row.who, row.why, row.at)
    return None


def require_not_rejected(dataset: str, release_id: str, decision: Decision | None) -> None:
    """Raise ``ApprovalError`` for a release that was rejected."""
    if decision is not None and not decision.approved:
        raise ApprovalError(
            f"release {release_id} of {dataset} was {decision}: nothing is published; its budget"
            " stays spent, because the noise was drawn"
        )


def history(connection: Connection) -> list[HistoryRecord]:
    """One history record for each note on a release."""
    note, charge = tables.note.c, tables.charge.c
    statement = (
        select(note.at, note.action, charge.dataset, charge.release_id, note.who, note.why)
        .join_from(tables.note, tables.charge)
        .where(note.action.in_([action.value for action in _ON_RELEASES]))
        .distinct()  # each of the release's charges has a copy of the note
    )
    return [
        HistoryRecord(at, Action(action), dataset, Budget(), release_id, who=who, why=why)
        for at, action, dataset, release_id, who, why in connection.execute(statement)
    ]
