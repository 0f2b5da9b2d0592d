"""The ledger in one SQLite file that only its owner can read, created completely or not at all.

Its file is always a complete ledger; an empty or foreign file is refused and never filled in.
"""

from __future__ import annotations

import os
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from functools import lru_cache
from pathlib import Path

from sqlalchemy import URL, Connection, Engine, create_engine
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from dpcore.errors import InputError, UnusableLedgerError
from tasks.ledger.database import Database
from tasks.ledger.records import RESTORE
from tasks.workplace.home import flush_folder


class SQLiteDatabase(Database):
    """A ledger file; if it is missing and ``create`` is set, it is created with its folder."""

    several = False

    def __init__(self, url: URL, lock_seconds: float, create: bool) -> None:
        if url.host or url.query or url.database in (None, "", ":memory:"):
            raise UnusableLedgerError(
                "the URL of an SQLite ledger is sqlite:///relative/file.db or "
                "sqlite:////absolute/file.db, without options"
            )
        # Made absolute now, so that a later change of folder does not change the ledger.
        self.path = Path(str(url.database)).expanduser().absolute()
        self.shown = str(self.path)
        self.lock_seconds = lock_seconds
        self.engine = _engine_for(self.path, lock_seconds)
        try:
            if not self.path.exists():
                if not create:
                    raise UnusableLedgerError(f"there is no ledger at {self.shown}")
                self._create()
        except (OSError, DBAPIError) as error:
            reason = error.strerror if isinstance(error, OSError) else self.explain(error)
            raise UnusableLedgerError(
                f"cannot open or create the ledger {self.shown}: {reason}"
            ) from None

    def copy_to(self, path: Path) -> None:
        """Write one consistent state of the ledger to a new file, even while others write."""
        try:
            with (
                _whole(path) as temporary,
                closing(sqlite3.connect(f"{self.path.as_uri()}?mode=ro", uri=True)) as source,
                closing(sqlite3.connect(temporary)) as target,
            ):
                source.backup(target)
        except FileExistsError:
            raise InputError(f"{path}: exists already, and no file is replaced") from None
        except (OSError, sqlite3.Error) as error:
            raise UnusableLedgerError(f"{self.shown} cannot be copied to {path}: {error}") from None

    def require_whole(self, connection: Connection) -> None:
        whole = list(connection.exec_driver_sql("PRAGMA integrity_check(1)").scalars()) == ["ok"]
        self._require_agreement(whole)

    def require_sound(self, connection: Connection, dataset: str) -> None:
        """Raise ``LedgerError`` if a damaged dataset name hides a charge in the table or in an index."""
        # Table and index are read to their ends: a search in a damaged index may miss rows that exist.
        # The index is on the unique names of a charge; the dataset is the first of them.
        counts = {
            connection.exec_driver_sql(
                f"SELECT total(dataset = ?) FROM ledger_charge {how}", (dataset,)
            ).scalar()
            for how in ("NOT INDEXED", "INDEXED BY sqlite_autoindex_ledger_charge_2")
        }
        self._require_agreement(len(counts) == 1)

    def _require_agreement(self, agree: bool) -> None:
        if not agree:
            raise UnusableLedgerError(
                f"the ledger is damaged, its tables and indexes disagree: {RESTORE}"
                f" (ledger {self.shown})"
            )

    def begin(self, connection: Connection, *, write: bool) -> None:
        # IMMEDIATE takes the write lock of the whole file before anything is read.
        connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")

    def explain(self, error: DBAPIError) -> str:
        # The low byte is the primary result code; the rest only refines it.
        code = getattr(error.orig, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            return self.busy_message()
        if code in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM):
            return (
                "the ledger cannot be opened: its file is missing, or this user may not use it or its"
                " folder. Do not make a new ledger in its place, which would lack what was spent"
            )
        if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_AUTH):
            return "the ledger cannot be written: its file or folder is read-only for this user"
        undecoded = str(error.orig).startswith("Could not decode")  # the text quotes stored data
        if code in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT) or undecoded:
            return f"the ledger is damaged, or is not a ledger: {RESTORE}"
        if code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR):
            return "the disk of the ledger is full or failing; nothing was changed"
        if "no such table" in str(error.orig):
            return self.no_ledger_message()
        return f"the ledger's database refused: {error.orig}"

    def _create(self) -> None:
        with (
            suppress(FileExistsError),  # another process has made the ledger meanwhile
            _whole(self.path) as temporary,
            _engine_for(temporary, self.lock_seconds).connect() as connection,
            connection.begin(),
        ):
            self.begin(connection, write=True)
            self.create_tables(connection)


@lru_cache(maxsize=8)
def _engine_for(path: Path, lock_seconds: float) -> Engine:
    """An engine without open connections; it is cached to reuse its compiled statements."""

    def connect() -> sqlite3.Connection:
        # mode=rw: a missing ledger is an error; the default would create an empty one.
        # isolation_level=None: otherwise Python's driver begins a transaction at the first write only.
        connection = sqlite3.connect(
            f"{path.as_uri()}?mode=rw", uri=True, timeout=lock_seconds, isolation_level=None
        )
        connection.execute("PRAGMA foreign_keys = ON")
        # A reported commit must survive a power failure, or a charge could be drawn twice.  FULL would
        # not sync the folder: the journal's removal may be lost, and the journal undoes the commit.
        connection.execute("PRAGMA synchronous = EXTRA")
        return connection

    return create_engine("sqlite://", creator=connect, poolclass=NullPool, hide_parameters=True)


@contextmanager
def _whole(path: Path) -> Iterator[Path]:
    """A temporary file, renamed once it is filled; raises ``FileExistsError`` if the name exists."""
    if not path.parent.is_dir():  # a mistyped path must not become an empty ledger
        raise InputError(f"{path.parent}: there is no such folder; make it before the ledger")
    # mkstemp makes the file owner-only; SQLite gives its journal the same mode.
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".new")
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        os.link(temporary, path)  # os.replace would overwrite a ledger that was made meanwhile
        flush_folder(path.parent)
    finally:
        temporary.unlink(missing_ok=True)
