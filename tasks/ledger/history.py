"""The history of the ledger: every grant, charge, draw, decision and allowance, one line each."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, Row, select

from dpcore.accounting.budget import Budget
from tasks.ledger import notes, queries, tables
from tasks.ledger.records import Account, Action, HistoryRecord


def history(connection: Connection, dataset: str | None) -> list[HistoryRecord]:
    """Every line of history of one dataset or of all, in order of time."""
    charge, note = tables.charge, tables.note
    records = []
    opened: dict[str, list[Account]] = {}
    for row in queries.grants(connection, dataset):
        grant = queries.granted_account(row)
        queries.open_account(opened.setdefault(row.dataset, []), grant)
        after = opened[row.dataset][-1]
        line = HistoryRecord(row.at, Action.GRANT, row.dataset, grant.promise)
        records.append(
            replace(line, who=row.who, why=row.why, account=after.number, caps=after.caps)
        )
    for row in connection.execute(select(charge)):
        records.append(_of_charge(row, row.reserved_at, Action.RESERVE))
        if row.committed_at is not None:
            committed = _of_charge(row, row.committed_at, Action.COMMIT)
            records.append(replace(committed, digest=row.digest))
    voids = select(note.c.who, note.c.why, note.c.at, charge).join_from(note, charge)
    for row in connection.execute(voids.where(note.c.action == Action.VOID.value)):
        void = _of_charge(row, row.at, Action.VOID)
        records.append(replace(void, who=row.who, why=row.why))
    records += notes.history(connection)
    assigned = select(tables.source).where(tables.source.c.number > 0)
    records += [
        HistoryRecord(row.at, Action.ASSIGN, row.dataset, Budget(), who=row.who, why=row.why)
        for row in connection.execute(assigned)
    ]
    for row in connection.execute(select(tables.allowance)):
        line = HistoryRecord(row.at, Action.ALLOW, row.dataset, queries.row_budget(row))
        records.append(replace(line, who=row.who, why=f"{row.analyst}: {row.why}"))
    return sorted(
        (record for record in records if dataset in (None, record.dataset)),
        key=lambda record: record.at,
    )


def _of_charge(row: Row[Any], at: str, action: Action) -> HistoryRecord:
    names = row.dataset, queries.row_budget(row), row.release_id, row.release_name
    return HistoryRecord(at, action, *names, account=row.account)
