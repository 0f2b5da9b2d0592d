"""Brings a ledger of layout 2 to the present one, in place and without changing a row of its history.

Its grants are basic, and all its charges count against them: columns are added whose defaults say so.
"""

from __future__ import annotations

from sqlalchemy import Connection, select, update

from tasks.ledger import tables
from tasks.ledger.append_only import guard_charges

BEFORE = 2

_ADDED = {
    "ledger_grant": (
        "composition TEXT NOT NULL DEFAULT 'basic'",
        "rho TEXT NOT NULL DEFAULT '0'",
        "failures TEXT NOT NULL DEFAULT '0'",
    ),
    "ledger_charge": (
        "account INTEGER NOT NULL DEFAULT 0",
        "rho TEXT NOT NULL DEFAULT '0'",
        "series TEXT NOT NULL DEFAULT ''",
        "run INTEGER NOT NULL DEFAULT 0",
    ),
}


def is_older(connection: Connection) -> bool:
    """Whether the ledger has the layout before this one; its row is locked where the engine can."""
    found = select(tables.schema.c.version).with_for_update()
    return list(connection.scalars(found)) == [BEFORE]


def upgrade(connection: Connection) -> None:
    """Add the columns, and guard them as the others are, in the caller's transaction."""
    for table, columns in _ADDED.items():
        for column in columns:
            connection.exec_driver_sql(f"ALTER TABLE {table} ADD COLUMN {column}")
    guard_charges(connection)
    connection.execute(update(tables.schema).values(version=tables.VERSION))
