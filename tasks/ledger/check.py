"""Does a ledger agree with itself?  Looks, tells, and repairs nothing."""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy import Connection

from dpcore.budget import Budget
from dpcore.errors import LedgerError
from tasks.ledger import queries
from tasks.ledger.records import RESTORE, ChargeRecord, Fault, State


def faults(connection: Connection, dataset: str) -> list[Fault]:
    """Every fault in the rows of a dataset, those of the whole dataset first."""
    granted = queries.granted(connection, dataset) or Budget()
    found = []
    if not granted.covers(queries.spent(connection, dataset)):
        found.append(Fault(dataset, "", "", "more was charged than was granted", RESTORE))
    for release_id, charges in queries.releases(connection, dataset).items():
        if len({charge.plan_digest for charge in charges.values()}) > 1:
            what = "its charges belong to different plans"
            found.append(Fault(dataset, release_id, "", what, RESTORE))
        for charge in charges.values():
            found += [_fault(charge, *words) for words in _of_charge(connection, charge)]
    return found


def _of_charge(connection: Connection, charge: ChargeRecord) -> Iterator[tuple[str, str]]:
    """What is wrong with one charge, and the remedy."""
    if charge.state is State.COMMITTED:
        try:
            queries.read_draw(connection, charge)
        except LedgerError:
            yield "committed, but its draw is missing or another one", RESTORE
    elif queries.has_draw(connection, charge):
        yield f"{charge.state}, but a draw is stored", RESTORE
    elif charge.state is State.RESERVED:
        yield (
            "reserved, not drawn",
            "if no run is at work on it, run the plan with this release id, or give it up:"
            f" dprelease ledger void {charge.dataset} {charge.release_id} {charge.release_name}"
            " --who WHO --why WHY",
        )
    elif not queries.has_void_note(connection, charge):
        yield "voided, and nobody is on record for it", RESTORE


def _fault(charge: ChargeRecord, what: str, remedy: str) -> Fault:
    return Fault(charge.dataset, charge.release_id, charge.release_name, what, remedy)
