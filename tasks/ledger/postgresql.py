"""The ledger on a PostgreSQL server, for several machines that release from the same datasets.

Writers lock the row of their dataset (``SELECT ... FOR UPDATE`` in ``queries.py``).  Each transaction
makes all settings that it needs, because a server's defaults may differ.
"""

from __future__ import annotations

import math
from functools import lru_cache
from weakref import WeakSet

from sqlalchemy import URL, Connection, Engine, create_engine, inspect
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from dpcore.errors import UnusableLedgerError
from tasks.ledger import tables
from tasks.ledger.database import Database
from tasks.ledger.roles import OFFICER, PUBLISHER

# An arbitrary number that every version of this program must share.
_CREATION_LOCK = 0x6470726C


class PostgreSQLDatabase(Database):
    """A ledger in the first schema of the search path; tables are created if absent."""

    several = True

    def __init__(self, url: URL, lock_seconds: float, create: bool) -> None:
        port = f":{url.port}" if url.port else ""
        self.shown = f"postgresql://{url.host or ''}{port}/{url.database or ''}"
        self.lock_seconds = lock_seconds
        self._secrets = _secrets(url)
        try:
            self.engine = _engine_for(url, lock_seconds)
        except ImportError:
            raise UnusableLedgerError(
                "a ledger on PostgreSQL needs the driver psycopg: install dprelease[postgres]"
            ) from None
        if create and self.engine not in _FOUND:
            try:
                self._create_if_absent()
            except DBAPIError as error:
                raise UnusableLedgerError(f"{self.explain(error)} (ledger {self.shown})") from None

    def find(self) -> None:
        # Once per process, because a connection costs the server some 10 ms; each later transaction
        # notices by itself if the ledger is gone.
        if self.engine not in _FOUND:
            super().find()
            _FOUND.add(self.engine)

    def require_whole(self, connection: Connection) -> None:
        """Check nothing, because a cluster with checksums itself refuses damaged pages."""

    def require_sound(self, connection: Connection, dataset: str) -> None:
        """Check nothing, as in ``require_whole``."""

    def begin(self, connection: Connection, *, write: bool) -> None:
        # Once a writer has the lock, its statements must see all earlier writes; a reader must see
        # grants and charges of one moment.
        mode = "READ COMMITTED READ WRITE" if write else "REPEATABLE READ READ ONLY"
        connection.exec_driver_sql(f"SET TRANSACTION ISOLATION LEVEL {mode}")
        milliseconds = max(1, round(self.lock_seconds * 1000))  # 0 would wait for ever
        connection.exec_driver_sql(f"SET LOCAL lock_timeout = {milliseconds}")
        if write:
            # A commit waits for the disk, or a crash of the server could lose a draw that was published.
            connection.exec_driver_sql("SET LOCAL synchronous_commit = on")

    def explain(self, error: DBAPIError) -> str:
        code = getattr(error.orig, "sqlstate", None)
        if code == "55P03":  # lock_not_available
            return self.busy_message()
        if code == "42P01":  # undefined_table
            return self.no_ledger_message()
        if code == "25006":  # read_only_sql_transaction
            return "the ledger cannot be written: the server is read-only (a standby?)"
        if code == "42501":  # insufficient_privilege
            return (
                f"this database user lacks a right: publishing needs the role {PUBLISHER},"
                f" granting and voiding the role {OFFICER} (see dprelease ledger roles)"
            )
        # Only the primary message: the detail of a broken constraint quotes the row.
        message = getattr(getattr(error.orig, "diag", None), "message_primary", None)
        if code and message:
            return f"the ledger's database refused: {self._without_secrets(message)}"
        reason = " ".join(str(error.orig).split())
        return f"the ledger's server cannot be reached: {self._without_secrets(reason)}"

    def _create_if_absent(self) -> None:
        with self.engine.connect() as connection, connection.begin():
            if inspect(connection).has_table(tables.schema.name):
                return
        with self.engine.connect() as connection, connection.begin():
            self.begin(connection, write=True)
            # CREATE TABLE has no row to lock; an advisory lock lets one process create.
            connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_CREATION_LOCK})")
            # Another process may have created it while this one waited.
            if inspect(connection).has_table(tables.schema.name):
                return
            self.create_tables(connection)

    def _without_secrets(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return text


_FOUND: WeakSet[Engine] = WeakSet()
"""The engines in whose databases this process has found a ledger."""


@lru_cache(maxsize=8)
def _engine_for(url: URL, lock_seconds: float) -> Engine:
    """An engine without open connections; it is cached to reuse its compiled statements."""
    return create_engine(
        url.set(drivername="postgresql+psycopg"),
        poolclass=NullPool,
        hide_parameters=True,
        connect_args={"connect_timeout": math.ceil(lock_seconds)},  # the driver waits 2 s for 1
    )


def _secrets(url: URL) -> list[str]:
    """Every password in the URL: of its user, or among its options."""
    secrets = [url.password] if url.password else []
    for name, value in url.query.items():
        if "pass" in name.lower():
            secrets += [value] if isinstance(value, str) else list(value)
    return [str(secret) for secret in secrets if secret]
