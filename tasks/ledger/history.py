"""The history of the ledger: every grant, charge, draw, decision and allowance, one line each."""

from __future__ import annotations

from dataclasses import replace

from sqlalchemy import Connection, select

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
        record = HistoryRecord(
            row.at, Action.GRANT, row.dataset, grant.promise, who=row.who, why=row.why
        )
        records.append(replace(record, account=after.number, caps=after.caps))
    for row in connection.execute(select(charge)):
        names = (row.dataset, queries.row_budget(row), row.release_id, row.release_name)
        reserved = HistoryRecord(row.reserved_at, Action.RESERVE, *names, account=row.account)
        records.append(reserved)
        if row.committed_at is not None:
            moved = {"at": row.committed_at, "action": Action.COMMIT, "digest": row.digest}
            records.append(replace(reserved, **moved))
    voids = select(note.c.who, note.c.why, note.c.at, charge).join_from(note, charge)
    for row in connection.execute(voids.where(note.c.action == Action.VOID.value)):
        names = (row.dataset, queries.row_budget(row), row.release_id, row.release_name)
        void = HistoryRecord(row.at, Action.VOID, *names, who=row.who, why=row.why)
        records.append(replace(void, account=row.account))
    records += notes.history(connection)
    assigned = select(tables.source).where(tables.source.c.number > 0)
    records += [
        HistoryRecord(row.at, Action.ASSIGN, row.dataset, Budget(), who=row.who, why=row.why)
        for row in connection.execute(assigned)
    ]
    records += [
        HistoryRecord(
            row.at,
            Action.ALLOW,
            row.dataset,
            queries.row_budget(row),
            who=row.who,
            why=f"{row.analyst}: {row.why}",
        )
        for row in connection.execute(select(tables.allowance))
    ]
    return sorted(
        (record for record in records if dataset in (None, record.dataset)),
        key=lambda record: record.at,
    )
