"""A ledger as somebody leaves it who owns the database and changes it by hand."""

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Connection, text

from tasks.ledger import Ledger


@contextmanager
def by_hand(ledger: Ledger) -> Iterator[Connection]:
    """A writing transaction on a ledger without its triggers."""
    with ledger._database.transaction(write=True) as connection:
        if connection.dialect.name == "postgresql":
            connection.exec_driver_sql("SET LOCAL session_replication_role = replica")
        else:
            triggers = text("SELECT name FROM sqlite_master WHERE type = 'trigger'")
            for name in connection.scalars(triggers).all():
                connection.exec_driver_sql(f"DROP TRIGGER {name}")
        yield connection
