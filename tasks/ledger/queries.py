"""Reads and writes the ledger's rows, inside the caller's transaction; decides nothing."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction
from typing import Any

from sqlalchemy import Connection, Row, func, insert, select, text, update

from dpcore.accounting.budget import Budget, total
from dpcore.accounting.concentrated import Composition
from dpcore.errors import UnusableLedgerError
from dpcore.line.statistic import Noisy
from tasks.ledger import tables
from tasks.ledger.records import (
    RESTORE,
    Account,
    Action,
    Allowance,
    ChargeRecord,
    ChargeRequest,
    State,
    charge_id,
    read_budget,
    utc_now,
)


def lock(connection: Connection, dataset: str) -> bool:
    """Wait for and lock the dataset's row; SQLite has locked the whole file already.

    Returns False for an unknown dataset: there is no row to lock, and another process may be adding one.
    """
    locked = select(tables.dataset).where(tables.dataset.c.dataset == dataset).with_for_update()
    return bool(connection.execute(locked).all())


def datasets(connection: Connection) -> list[str]:
    """The names of all datasets in the ledger."""
    return sorted(connection.scalars(select(tables.dataset.c.dataset)))


def insert_dataset(connection: Connection, dataset: str) -> bool:
    """Add the dataset and lock its row; returns False if it was known."""
    # Both engines support this clause, and it is atomic when two writers add the same row.
    statement = text(
        "INSERT INTO ledger_dataset (dataset, created_at) VALUES (:dataset, :at)"
        " ON CONFLICT DO NOTHING"
    )
    return connection.execute(statement, {"dataset": dataset, "at": utc_now()}).rowcount == 1


def insert_grant(
    connection: Connection,
    dataset: str,
    composition: Composition,
    promise: Budget,
    caps: Budget,
    who: str,
    why: str,
) -> None:
    """Append one grant, with the caps on charges that keep its promise."""
    concentrated = {"rho": str(caps.rho), "failures": str(caps.beta if caps.rho else 0)}
    row = {"dataset": dataset, "composition": composition, "who": who, "why": why, "at": utc_now()}
    connection.execute(insert(tables.granted).values(row | promise.as_strings() | concentrated))


def accounts(connection: Connection, dataset: str) -> list[Account]:
    """The accounts of a dataset; new charges count against the last.  Empty if it is unknown."""
    found: list[Account] = []
    for row in grants(connection, dataset):
        open_account(found, granted_account(row))
    return found


def account(connection: Connection, dataset: str) -> Account | None:
    """The account that new charges count against; None for an unknown dataset."""
    return next(reversed(accounts(connection, dataset)), None)


def spent(
    connection: Connection, dataset: str, number: int, *, by_requests: bool = False
) -> Budget:
    """The sum of the charges that count against an account; ``by_requests``: only requested ones."""
    return total(_spent_by(connection, dataset, number, by_requests).values())


def _spent_by(
    connection: Connection, dataset: str, number: int, by_requests: bool
) -> dict[str, Budget]:
    """The sums of ``spent`` by the analyst whose allowance was charged; '' for all other charges."""
    # The table itself is read, so that a damaged index of SQLite hides no charge.
    how = "NOT INDEXED" if connection.dialect.name == "sqlite" else ""
    requested = "AND part <> ''" if by_requests else ""
    # No database adds exact fractions.  Most prices are equal, so few are left to add in Python.
    found = text(
        "SELECT analyst, alpha, beta, gamma, rho, count(*) AS number FROM ledger_charge"
        f" {how} WHERE dataset = :dataset AND state <> 'VOID' AND account = :account {requested}"
        " GROUP BY analyst, alpha, beta, gamma, rho"
    )
    sums: dict[str, Budget] = {}
    for row in connection.execute(found, {"dataset": dataset, "account": number}):
        sums[row.analyst] = sums.get(row.analyst, Budget()) + row_budget(row) * row.number
    return sums


def counted(connection: Connection, dataset: str, most: int | None = None) -> list[ChargeRecord]:
    """All charges that count, or at most ``most`` of them."""
    found = connection.execute(select(tables.charge).where(_counts(dataset)).limit(most))
    return [_charge_record(row) for row in found]


def ids_ending(
    connection: Connection, dataset: str, plan_digest: str, ending: str = ""
) -> list[str]:
    """The ids with this ending of releases that were charged for a plan."""
    table = tables.charge.c
    alike = table.release_id.like(f"%{ending}") & (table.plan_digest == plan_digest)
    found = select(table.release_id).where(_counts(dataset) & alike).distinct()
    return list(connection.scalars(found))


def insert_charges(connection: Connection, request: ChargeRequest, account: int) -> None:
    """Append the charges as RESERVED; ``request.analyst``: the analyst whose allowance is charged."""
    at, fraction = utc_now(), request.open_fraction
    rows = [
        {
            "charge_id": charge_id(request.dataset, request.release_id, name),
            "dataset": request.dataset,
            "release_id": request.release_id,
            "release_name": name,
            "plan_digest": request.plan_digest,
            "account": account,
            # The strings of a budget include either alpha or rho, but every row has both.
            **{"alpha": "0", "rho": "0"} | charge.budget.as_strings(),
            "event": charge.event_text(),
            "series": charge.series,
            "run": charge.run,
            "part": "" if fraction is None else str(fraction),
            "analyst": request.analyst,
            "state": State.RESERVED.value,
            "reserved_at": at,
        }
        for name, charge in request.charges.items()
    ]
    connection.execute(insert(tables.charge), rows)


def charges(connection: Connection, dataset: str, release_id: str) -> dict[str, ChargeRecord]:
    """The charges of one release, by release name."""
    table = tables.charge
    statement = (
        select(table)
        .where(table.c.dataset == dataset, table.c.release_id == release_id)
        .order_by(table.c.reserved_at, table.c.release_name)
    )
    return {row.release_name: _charge_record(row) for row in connection.execute(statement)}


def releases(connection: Connection, dataset: str) -> dict[str, dict[str, ChargeRecord]]:
    """The charges of every release, by release id and release name."""
    table = tables.charge
    ids = select(table.c.release_id).where(table.c.dataset == dataset).distinct()
    return {name: charges(connection, dataset, name) for name in sorted(connection.scalars(ids))}


def find_charge(
    connection: Connection, dataset: str, release_id: str, release_name: str
) -> ChargeRecord | None:
    """One charge, or None if it was never reserved."""
    wanted = charge_id(dataset, release_id, release_name)
    row = connection.execute(
        select(tables.charge).where(tables.charge.c.charge_id == wanted)
    ).one_or_none()
    return None if row is None else _charge_record(row)


def drawn(connection: Connection) -> list[tuple[str, str, str, str | None]]:
    """Dataset, release id, name and digest of COMMITTED and VOID charges; a VOID one has no digest."""
    table = tables.charge.c
    names = select(table.dataset, table.release_id, table.release_name, table.digest)
    found = connection.execute(names.where(table.state != State.RESERVED.value))
    return [tuple(row) for row in found]


def insert_draw(connection: Connection, charge: ChargeRecord, payload: bytes) -> None:
    """Store a draw and make its charge COMMITTED."""
    connection.execute(insert(tables.draw).values(charge_id=charge.charge_id, payload=payload))
    digest = hashlib.sha256(payload).hexdigest()
    _move(connection, charge, state=State.COMMITTED.value, committed_at=utc_now(), digest=digest)


def read_draw(connection: Connection, charge: ChargeRecord) -> Noisy:
    """The draw of a COMMITTED charge; raises ``LedgerError`` if it does not match its digest."""
    table = tables.draw
    payload = connection.scalar(
        select(table.c.payload).where(table.c.charge_id == charge.charge_id)
    )
    if payload is not None and hashlib.sha256(payload).hexdigest() == charge.digest:
        try:
            return Noisy.from_bytes(bytes(payload))
        except ValueError:
            pass  # the bytes are the committed ones, but this program cannot read them
    raise UnusableLedgerError(
        f"the draw of {charge.release_name!r} in release {charge.release_id!r} is missing or is "
        f"not the one that was committed: the ledger is damaged; {RESTORE}"
    )


def insert_void(connection: Connection, charge: ChargeRecord, who: str, why: str) -> None:
    """Record who voids and why, and make the charge VOID."""
    row = {"charge_id": charge.charge_id, "action": Action.VOID.value, "who": who, "why": why}
    connection.execute(insert(tables.note).values(**row, at=utc_now()))
    _move(connection, charge, state=State.VOID.value)


def insert_seal(connection: Connection, dataset: str, release_id: str, digest: str) -> None:
    """Append the digest of a bundle."""
    row = {"dataset": dataset, "release_id": release_id, "digest": digest, "at": utc_now()}
    connection.execute(insert(tables.bundle).values(row))


def seals(connection: Connection, dataset: str, release_id: str) -> set[str]:
    """The digests of the bundles that were made ready for a release."""
    table = tables.bundle
    of_release = (table.c.dataset == dataset) & (table.c.release_id == release_id)
    return set(connection.scalars(select(table.c.digest).where(of_release)))


def sources(connection: Connection) -> dict[str, str]:
    """The dataset of every source in the ledger."""
    table = tables.source
    found = select(table.c.source, table.c.dataset).order_by(table.c.number)
    return {row.source: row.dataset for row in connection.execute(found)}


def source_recorded(connection: Connection, dataset: str) -> str:
    """The time when the newest source of a dataset was recorded; '' without one."""
    table = tables.source.c
    return connection.scalar(select(func.max(table.at)).where(table.dataset == dataset)) or ""


def insert_source(
    connection: Connection, source: str, dataset: str, who: str, why: str, number: int = 0
) -> None:
    """Record the dataset of a source, unless another writer has recorded one under this number."""
    statement = text(
        "INSERT INTO ledger_source (source, number, dataset, who, why, at)"
        " VALUES (:source, :number, :dataset, :who, :why, :at) ON CONFLICT DO NOTHING"
    )
    row = {"source": source, "number": number, "dataset": dataset, "who": who, "why": why}
    connection.execute(statement, row | {"at": utc_now()})


def last_number(connection: Connection, source: str) -> int:
    """The highest number under which a dataset was recorded for a source; 0 without any."""
    table = tables.source.c
    return connection.scalar(select(func.max(table.number)).where(table.source == source)) or 0


def insert_allowance(
    connection: Connection,
    dataset: str,
    account: int,
    analyst: str,
    amounts: Budget,
    key: str,
    who: str,
    why: str,
) -> None:
    """Append an allowance of an account for an analyst."""
    row = {"dataset": dataset, "account": account, "analyst": analyst, "key": key}
    row |= {"who": who, "why": why, "at": utc_now()}
    written = {"alpha": "0", "rho": "0"} | amounts.as_strings()
    connection.execute(insert(tables.allowance).values(row | written))


def allowances(connection: Connection, dataset: str) -> dict[str, Allowance]:
    """The allowances by name of every analyst who ever had one."""
    present = account(connection, dataset)
    table, found = tables.allowance.c, dict[str, Allowance]()
    if present is None:
        return found
    rows = connection.execute(
        select(tables.allowance).where(table.dataset == dataset).order_by(table.id)
    ).all()
    spends = _spent_by(connection, dataset, present.number, True) if rows else {}
    for row in rows:
        nothing = Allowance(Budget(), spends.get(row.analyst, Budget()), row.key)
        known = found.get(row.analyst, nothing)
        # Nothing more can be spent of a closed account's allowance, but its analyst stays known.
        of_now = row_budget(row) if row.account == present.number else Budget()
        found[row.analyst] = replace(known, allowed=known.allowed + of_now, key=row.key)
    return found


def is_served(connection: Connection) -> bool:
    """Whether the ledger was marked as used by runs of a server."""
    return connection.scalar(select(tables.schema.c.served_at)) is not None


def mark_served(connection: Connection) -> None:
    """Mark the ledger permanently as used by runs of a server."""
    connection.execute(update(tables.schema).values(served_at=utc_now()))


def _counts(dataset: str) -> Any:
    return (tables.charge.c.dataset == dataset) & (tables.charge.c.state != State.VOID.value)


def _move(connection: Connection, charge: ChargeRecord, **values: str) -> None:
    table = tables.charge
    still_reserved = (table.c.charge_id == charge.charge_id) & (
        table.c.state == State.RESERVED.value
    )
    moved = connection.execute(update(table).where(still_reserved).values(**values)).rowcount
    if moved != 1:  # cannot happen under the lock; if it does, the transaction is undone
        raise UnusableLedgerError(
            f"another process changed charge {charge.charge_id} without its lock"
        )


def grants(connection: Connection, dataset: str | None) -> Iterable[Row[Any]]:
    """The grants of one dataset or of all, the oldest first."""
    table = tables.granted
    statement = select(table).order_by(table.c.id)
    if dataset is not None:
        statement = statement.where(table.c.dataset == dataset)
    return connection.execute(statement)


def granted_account(row: Row[Any]) -> Account:
    """The account that a grant would open."""
    promise, caps = row_budget(row), read_budget("0", row.failures, row.gamma, row.rho)
    promise = replace(promise, rho=Fraction(0))
    basic = row.composition == "basic"
    return Account(0 if basic else row.id, row.composition, promise, promise if basic else caps)


def open_account(accounts: list[Account], grant: Account) -> None:
    """Add a grant to the last account, or open a new account for it."""
    if accounts and accounts[-1].composition == grant.composition == "basic":
        whole = accounts[-1].promise + grant.promise
        accounts[-1] = replace(accounts[-1], promise=whole, caps=whole)
    else:
        accounts.append(grant)


def row_budget(row: Row[Any]) -> Budget:
    """The amounts in a row."""
    return read_budget(row.alpha, row.beta, row.gamma, row.rho)


def _charge_record(row: Row[Any]) -> ChargeRecord:
    fields = row._asdict()
    amounts = {name: fields.pop(name) for name in ("alpha", "beta", "gamma", "rho")}
    fields["open_fraction"] = fields.pop("part")
    try:
        fields["event"] = json.loads(fields["event"])
        fields["state"] = State(fields["state"])
    except ValueError:
        raise UnusableLedgerError(
            f"charge {row.charge_id} cannot be read: the ledger is damaged or was changed by "
            f"hand; {RESTORE}"
        ) from None
    return ChargeRecord(budget=read_budget(**amounts), **fields)
