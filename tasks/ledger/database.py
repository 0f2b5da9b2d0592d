"""Interface of the ledger to a database engine: serialised writers and error messages without secrets.

A writing transaction locks its dataset from its first statement to its last; each engine does this in
its own way (``sqlite.py``, ``postgresql.py``).  Driver errors are replaced by messages of our own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Connection, Engine, insert, select
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from dpcore.errors import UnusableLedgerError
from tasks.ledger import tables
from tasks.ledger.append_only import protect
from tasks.ledger.records import RESTORE, utc_now


class Database(ABC):
    """An engine with serialised writers; ``shown`` names it in messages, without user or secret."""

    engine: Engine
    shown: str
    several: bool
    """Whether other machines may use this ledger."""
    lock_seconds: float

    @contextmanager
    def transaction(self, *, write: bool) -> Iterator[Connection]:
        """A context in which all changes happen, or none.

        A reader sees one consistent state.  A writer holds its locks until the block ends; if it
        cannot get a lock within ``lock_seconds``, ``LedgerError`` is raised and nothing was done.
        """
        try:
            # Engines keep no connection: a fresh one notices a file that was removed or a server that
            # went away, and is safe after a fork.
            with self.engine.connect() as connection, connection.begin():
                self.begin(connection, write=write)
                self._require_layout(connection)
                yield connection
        # Without the cause: a driver may quote a password or, on a broken constraint, the row itself.
        except DBAPIError as error:
            raise UnusableLedgerError(f"{self.explain(error)} (ledger {self.shown})") from None
        except UnicodeDecodeError:  # a stored text is not UTF-8
            raise UnusableLedgerError(
                f"the ledger is damaged: {RESTORE} (ledger {self.shown})"
            ) from None
        except SQLAlchemyError as error:
            raise UnusableLedgerError(
                f"the ledger failed with {type(error).__name__} (ledger {self.shown})"
            ) from None

    def find(self) -> None:
        """Raise ``LedgerError`` if there is no ledger, if it is damaged, or if it has another layout."""
        with self.transaction(write=False):
            pass

    def create_tables(self, connection: Connection) -> None:
        """Make the tables and triggers of a new ledger."""
        # Without a check, an existing table is an error; so the ledger never fills a foreign database.
        tables.metadata.create_all(connection, checkfirst=False)
        protect(connection)
        row = {"version": tables.VERSION, "created_at": utc_now()}
        connection.execute(insert(tables.schema).values(row))

    @abstractmethod
    def require_whole(self, connection: Connection) -> None:
        """Raise ``LedgerError`` if the engine finds its own files damaged."""

    @abstractmethod
    def require_sound(self, connection: Connection, dataset: str) -> None:
        """Raise ``LedgerError`` if damage hides charges of the dataset; reads only charges."""

    @abstractmethod
    def begin(self, connection: Connection, *, write: bool) -> None:
        """Start the transaction in the engine's own terms."""

    @abstractmethod
    def explain(self, error: DBAPIError) -> str:
        """A message on the error and what to do, without secrets or stored rows."""

    def busy_message(self) -> str:
        """The message if the lock could not be obtained in time."""
        return (
            f"another process has held the lock of the ledger for {self.lock_seconds:g} s; nothing"
            " was changed. Try again; if it happens again, find the process that holds the lock"
        )

    def no_ledger_message(self) -> str:
        """The message for a database without the ledger's tables."""
        return f"this database holds no ledger, or its tables were removed: check the URL, or {RESTORE}"

    def _require_layout(self, connection: Connection) -> None:
        versions = list(connection.scalars(select(tables.schema.c.version)))
        if versions != [tables.VERSION]:
            found = ", ".join(map(str, versions)) or "none"
            raise UnusableLedgerError(
                f"the ledger has layout version {found}, but this program reads version"
                f" {tables.VERSION}: use the version of dprelease that wrote it"
                f" (ledger {self.shown})"
            )
