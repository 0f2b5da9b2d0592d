"""The database under the ledger: transactions that hold, and errors that can be read.

A writing transaction is alone with its dataset from its first statement to its last, on every
engine; how, is the engine's own affair (``sqlite.py``, ``postgresql.py``).  Each transaction opens
its own connection: a ledger is used a few times in a run, and a fresh connection notices a file
that was removed or a server that went away, and is safe after a fork.

What the driver reports is retold in our own words: a driver may quote a password or, on a broken
constraint, the row itself.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Connection, Engine, select, update
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from dpcore.errors import LedgerError
from tasks.ledger import tables
from tasks.ledger.append_only import protect
from tasks.ledger.records import RESTORE


class Database(ABC):
    """An engine with serialised writers; ``shown`` names it in messages, without user or secret."""

    engine: Engine
    shown: str
    lock_seconds: float

    @contextmanager
    def transaction(self, *, write: bool) -> Iterator[Connection]:
        """All of the block happens, or none of it.

        A reader sees one consistent state.  A writer holds its locks until the block ends; if a
        lock is not had within ``lock_seconds``, ``LedgerError`` is raised and nothing was done.
        """
        with self._transaction(write) as connection:
            version = self._layout(connection)
            if version != tables.VERSION:
                raise LedgerError(
                    f"the ledger has layout version {version}, and this program knows version "
                    f"{tables.VERSION}: use the program that wrote it, or bring an older one up to "
                    f"date with: dprelease ledger upgrade (ledger {self.shown})"
                )
            yield connection

    def upgrade(self) -> bool:
        """Bring an older layout up to date, in one transaction; False if there is nothing to do."""
        with self._transaction(write=True) as connection:
            connection.execute(select(tables.schema).with_for_update())
            version = self._layout(connection)
            if version not in (1, tables.VERSION):
                raise LedgerError(
                    f"the ledger has layout version {version}, which this program cannot bring up "
                    f"to date (ledger {self.shown})"
                )
            if version == 1:
                tables.metadata.create_all(connection)
                protect(connection)
                connection.execute(update(tables.schema).values(version=tables.VERSION))
            return version == 1

    @contextmanager
    def _transaction(self, write: bool) -> Iterator[Connection]:
        try:
            with self.engine.connect() as connection, connection.begin():
                self.begin(connection, write=write)
                yield connection
        except DBAPIError as error:
            raise LedgerError(f"{self.explain(error)} (ledger {self.shown})") from None
        except SQLAlchemyError as error:
            raise LedgerError(
                f"the ledger failed with {type(error).__name__} (ledger {self.shown})"
            ) from None

    @abstractmethod
    def begin(self, connection: Connection, *, write: bool) -> None:
        """Start the transaction in the engine's own terms."""

    @abstractmethod
    def explain(self, error: DBAPIError) -> str:
        """What went wrong and what to do, without secrets or stored rows."""

    def busy(self) -> str:
        """The message for a lock that was not had in time."""
        return (
            f"another process has held the lock of the ledger for {self.lock_seconds:g} s; "
            "nothing was changed: try again, and if it stays so, find the process that holds it"
        )

    def not_a_ledger(self) -> str:
        """The message for a database without our tables."""
        return f"this database holds no ledger, or its tables were removed: check the URL, or {RESTORE}"

    def _layout(self, connection: Connection) -> str | int:
        found = list(connection.scalars(select(tables.schema.c.version)))
        return found[0] if len(found) == 1 else ", ".join(map(str, found)) or "none"
