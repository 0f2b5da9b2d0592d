"""Brings a ledger of an older layout to the present one, in place and without changing its history.

Columns are added whose defaults say what its rows meant: its grants are basic, all its charges count
against them, and nothing was requested or allowed.  To which dataset a survey belongs is recorded from
now on.
"""

from __future__ import annotations

from sqlalchemy import Connection, select, update

from tasks.ledger import tables
from tasks.ledger.append_only import guard_added, guard_charges

BEFORE = (2, 3, 4)

_ADDED = {
    (3, "ledger_grant"): (
        "composition TEXT NOT NULL DEFAULT 'basic'",
        "rho TEXT NOT NULL DEFAULT '0'",
        "failures TEXT NOT NULL DEFAULT '0'",
    ),
    (3, "ledger_charge"): (
        "account INTEGER NOT NULL DEFAULT 0",
        "rho TEXT NOT NULL DEFAULT '0'",
        "series TEXT NOT NULL DEFAULT ''",
        "run INTEGER NOT NULL DEFAULT 0",
    ),
    (4, "ledger_charge"): ("part TEXT NOT NULL DEFAULT ''",),
    (4, "ledger_schema"): ("served_at TEXT",),
    (5, "ledger_charge"): ("analyst TEXT NOT NULL DEFAULT ''",),
}
"""The columns that each layout added to each table."""

_TABLES = {4: tables.source, 5: tables.allowance}
"""The table that each layout added."""


def older(connection: Connection) -> int | None:
    """The ledger's layout, if it is one before this; its row is locked where the engine can."""
    found = list(connection.scalars(select(tables.schema.c.version).with_for_update()))
    return found[0] if len(found) == 1 and found[0] in BEFORE else None


def upgrade(connection: Connection, layout: int) -> None:
    """Add what the layout lacks, and guard it as the rest is, in the caller's transaction."""
    for (added, name), columns in _ADDED.items():
        for column in columns if added > layout else ():
            connection.exec_driver_sql(f"ALTER TABLE {name} ADD COLUMN {column}")
    for added, table in _TABLES.items():
        if added > layout:
            table.create(connection, checkfirst=False)
            guard_added(connection, table)
    guard_charges(connection)
    connection.execute(update(tables.schema).values(version=tables.VERSION))
