"""Checks that the rows of a ledger agree with each other; reports faults and repairs nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sqlalchemy import Connection, select

from dpcore.errors import LedgerError
from tasks.ledger import queries, tables
from tasks.ledger.records import RESTORE, Action, ChargeRecord, Fault, State


def find_faults(connection: Connection, dataset: str) -> list[Fault]:
    """Every fault in the rows of a dataset; faults of the dataset as a whole come first."""
    found = []
    for account in queries.accounts(connection, dataset):
        if not account.caps.covers(queries.spent(connection, dataset, account.number)):
            found.append(Fault(dataset, "", "", "more was charged than was granted", RESTORE))
    for analyst, each in queries.allowances(connection, dataset).items():
        if not each.allowed.covers(each.spent):
            what = f"more was charged to {analyst} than was allowed"
            found.append(Fault(dataset, "", "", what, RESTORE))
    if len({c.plan_digest for c in queries.counted(connection, dataset) if c.budget.gamma}) > 1:
        found.append(Fault(dataset, "", "", "gamma was charged for more than one plan", RESTORE))
    for release_id, charges in queries.releases(connection, dataset).items():
        if len({charge.plan_digest for charge in charges.values()}) > 1:
            what = "its charges belong to different plans"
            found.append(Fault(dataset, release_id, "", what, RESTORE))
        for charge in charges.values():
            names = (dataset, release_id, charge.release_name)
            found += [Fault(*names, *words) for words in _check_charge(connection, charge)]
    return found


def _check_charge(connection: Connection, charge: ChargeRecord) -> Iterator[tuple[str, str]]:
    if charge.state is State.COMMITTED:
        try:
            queries.read_draw(connection, charge)
        except LedgerError:
            yield "committed, but its draw is missing or does not match its digest", RESTORE
    elif _exists(connection, tables.draw, charge):
        yield f"{charge.state}, but a draw is stored", RESTORE
    elif charge.state is State.RESERVED:
        yield (
            "reserved, not drawn",
            "if no run is working on it, run the plan with this release id, or give it up:"
            f" dprelease ledger void {charge.dataset} {charge.release_id} {charge.release_name}"
            " --who WHO --why WHY",
        )
    elif not _exists(connection, tables.note, charge, tables.note.c.action == Action.VOID.value):
        yield "voided, but without a record of who did so", RESTORE


def _exists(connection: Connection, table: Any, charge: ChargeRecord, *where: Any) -> bool:
    found = select(table.c.charge_id).where(table.c.charge_id == charge.charge_id, *where)
    return connection.execute(found).first() is not None
