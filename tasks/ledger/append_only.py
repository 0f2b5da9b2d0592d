"""Database triggers that keep the ledger's history append-only.

Rows are only inserted. The one exception: a charge changes state once, from RESERVED to COMMITTED with
its draw stored, or to VOID with a note on who and why.  The triggers stop mistakes, other programs and
roles without rights over the tables (``roles.py``); the owner of the database can drop them.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy import Connection, PrimaryKeyConstraint, Table, UniqueConstraint

from tasks.ledger import tables

_HISTORY = (
    tables.dataset,
    tables.granted,
    tables.draw,
    tables.note,
    tables.bundle,
    tables.source,
    tables.allowance,
)
_FIXED = [c.name for c in tables.charge.c if c.name not in ("state", "committed_at", "digest")]
_REFUSAL = "the history of a ledger is never changed"
# The draw or the note is inserted first (queries.py), so no state changes without its evidence.
_WRONG_MOVE = " OR ".join(
    [
        "OLD.state <> 'RESERVED'",
        *(f"NEW.{name} <> OLD.{name}" for name in _FIXED),
        "NOT EXISTS (SELECT 1 FROM ledger_draw WHERE charge_id = OLD.charge_id"
        " AND NEW.state = 'COMMITTED' UNION ALL SELECT 1 FROM ledger_note"
        " WHERE charge_id = OLD.charge_id AND action = 'void' AND NEW.state = 'VOID')",
    ]
)


def _guards(table: Table) -> list[str]:
    """SQL for triggers that refuse changes of the table's rows on SQLite."""
    return [
        f"CREATE TRIGGER {table.name}_{verb} BEFORE {verb} ON {table.name}"
        f" BEGIN SELECT RAISE(ABORT, '{_REFUSAL}'); END"
        for verb in ("update", "delete")
    ]


def _guard_against_replacing(table: Table) -> Iterator[str]:
    """Yield SQL for triggers that keep a new row from replacing an earlier one on SQLite."""
    keys = [
        [column.name for column in each.columns]
        for each in table.constraints
        if isinstance(each, PrimaryKeyConstraint | UniqueConstraint)
    ]
    # The ledger itself may insert a dataset or source that it already has: then nothing must happen.
    known = table in (tables.dataset, tables.source)
    raised = "IGNORE" if known else f"ABORT, '{_REFUSAL}'"
    # INSERT OR REPLACE removes the rows with the same key without running triggers on DELETE.
    for key in sorted(keys):
        same = " AND ".join(f"{name} = NEW.{name}" for name in key)
        yield (
            f"CREATE TRIGGER {table.name}_keeps_{'_'.join(key)} BEFORE INSERT ON {table.name}"
            f" WHEN EXISTS (SELECT 1 FROM {table.name} WHERE {same})"
            f" BEGIN SELECT RAISE({raised}); END"
        )


def _guard(table: Table) -> str:
    """SQL for the trigger that refuses changes of the table's rows on PostgreSQL."""
    return (
        f"CREATE TRIGGER {table.name}_history BEFORE UPDATE OR DELETE OR TRUNCATE ON {table.name}"
        " EXECUTE FUNCTION ledger_refuse()"
    )


_SQLITE = [
    *(guard for table in _HISTORY for guard in _guards(table)),
    *(each for table in (*_HISTORY, tables.charge) for each in _guard_against_replacing(table)),
] + [
    f"CREATE TRIGGER {name} BEFORE {moment} BEGIN SELECT RAISE(ABORT, '{_REFUSAL}'); END"
    for name, moment in [
        ("ledger_charge_delete", "DELETE ON ledger_charge"),
        ("ledger_charge_insert", "INSERT ON ledger_charge WHEN NEW.state <> 'RESERVED'"),
        ("ledger_charge_update", f"UPDATE ON ledger_charge WHEN {_WRONG_MOVE}"),
    ]
]

_MOVE = (
    "CREATE FUNCTION ledger_move() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT"
    f" AS $$ BEGIN IF {_WRONG_MOVE} THEN RAISE EXCEPTION '{_REFUSAL}'; END IF; RETURN NEW; END $$"
)

# The functions look for tables in the ledger's schema alone: a user may make temporary tables, and
# those would be found first.
_POSTGRESQL = [
    "SELECT set_config('search_path', quote_ident(current_schema()) || ', pg_temp', true)",
    "CREATE FUNCTION ledger_refuse() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT"
    f" AS $$ BEGIN RAISE EXCEPTION '{_REFUSAL}'; END $$",
    _MOVE,
    *map(_guard, _HISTORY),
    "CREATE TRIGGER ledger_charge_history BEFORE DELETE OR TRUNCATE ON ledger_charge"
    " EXECUTE FUNCTION ledger_refuse()",
    "CREATE TRIGGER ledger_charge_insert BEFORE INSERT ON ledger_charge FOR EACH ROW"
    " WHEN (NEW.state <> 'RESERVED') EXECUTE FUNCTION ledger_refuse()",
    "CREATE TRIGGER ledger_charge_move BEFORE UPDATE ON ledger_charge FOR EACH ROW"
    " EXECUTE FUNCTION ledger_move()",
]


def protect(connection: Connection) -> None:
    """Add the triggers to a new ledger, in the transaction that makes its tables."""
    for statement in _SQLITE if connection.dialect.name == "sqlite" else _POSTGRESQL:
        connection.exec_driver_sql(statement)
