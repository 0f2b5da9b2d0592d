"""The ledger on a real PostgreSQL server: started on loopback for these tests and stopped after.

``ENGINES`` and ``fresh_url`` let the other ledger tests state each promise once for both engines.
The server's programs must be installed, and the driver psycopg; the tests are skipped without.
"""

from __future__ import annotations

import atexit
import functools
import itertools
from pathlib import Path

import pytest
from sqlalchemy.event import listen

from dpcore.accounting.budget import Budget
from dpcore.errors import BudgetError, LedgerError
from tasks.ledger import Charge, ChargeRequest, Ledger, queries, tables
from tests.tasks.bundle.damage import by_hand
from tests.tasks.ledger.server import PASSWORD, Server, started

ENGINES = ["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)]
_numbers = itertools.count(1)


def fresh_url(engine: str, folder: Path) -> str:
    """The URL of a ledger that does not exist yet."""
    if engine == "sqlite":
        return f"sqlite:///{folder}/ledger.db"
    return _fresh_database()


@functools.cache
def shared_server() -> Server:
    """Start a server once for the whole test run; it stops when the tests end."""
    server = started()
    atexit.register(server.remove)
    return server


def fresh_schema() -> str:
    """As ``fresh_url``, in a database that others have: to make one takes ten times as long."""
    name = f"ledger{next(_numbers)}"
    shared_server().administer(f"CREATE SCHEMA {name}")
    return f"{shared_server().url('postgres')}?options=-csearch_path%3D{name}"


def _fresh_database() -> str:
    name = f"ledger{next(_numbers)}"
    shared_server().administer(f"CREATE DATABASE {name}")
    return shared_server().url(name)


class TestWithoutAServer:
    """What can be said before any connection; it needs the driver only."""

    @pytest.fixture(autouse=True)
    def driver(self):
        pytest.importorskip("psycopg")

    @pytest.mark.parametrize(
        "url",
        [
            "postgresql://ledger:hush-hush@127.0.0.1:1/x",
            "postgresql+psycopg://ledger:hush-hush@127.0.0.1:1/x",
            "postgres://ledger@127.0.0.1:1/x?password=hush-hush",
            "postgresql://ledger:hush%2Dhush@127.0.0.1:1/x?wrong_option=1",
        ],
    )
    def test_an_unreachable_server_is_reported_without_the_password(self, url):
        with pytest.raises(LedgerError, match=r"cannot be reached.*127\.0\.0\.1:1/x") as caught:
            Ledger(url, lock_seconds=1)
        assert PASSWORD not in repr(caught.value)
        assert caught.value.__suppress_context__


@pytest.mark.slow
class TestServer:
    @pytest.fixture
    def url(self) -> str:
        return _fresh_database()

    def test_a_wrong_password_is_reported_without_it(self, url):
        with pytest.raises(LedgerError, match="cannot be reached") as caught:
            Ledger(url.replace(PASSWORD, "sesame-sesame"))
        assert "sesame" not in str(caught.value)

    def test_the_ledger_prints_without_user_and_password(self, url):
        text = repr(Ledger(url))
        assert PASSWORD not in text
        assert "ledger:" not in text

    def test_a_ledger_that_is_not_there_is_not_made_on_reading(self, url):
        with pytest.raises(LedgerError, match="holds no ledger"):
            Ledger(url, create=False)
        Ledger(url)
        Ledger(url, create=False)

    def test_a_lock_that_is_not_had_in_time(self, url):
        ledger = Ledger(url, lock_seconds=0.3)
        ledger.grant("wages", Budget.of(1), "A. Officer", "test")
        ledger.grant("health", Budget.of(1), "A. Officer", "test")
        with ledger._database.transaction(write=True) as holder:
            holder.exec_driver_sql(
                "SELECT 1 FROM ledger_dataset WHERE dataset = 'wages' FOR UPDATE"
            )
            with pytest.raises(LedgerError, match=r"held the lock .* for 0\.3 s"):
                ledger.reserve(ChargeRequest("wages", "r1", "p", {"a": Charge(Budget.of(1))}))
            ledger.reserve(ChargeRequest("health", "r1", "p", {"a": Charge(Budget.of(1))}))
        assert ledger.spent("wages") == Budget()

    def test_a_grant_that_comes_between_lock_and_check_is_not_spent_without_a_lock(
        self, url, monkeypatch
    ):
        ledger, lock = Ledger(url), queries.lock

        def lock_and_lose(connection, dataset):
            locked = lock(connection, dataset)
            monkeypatch.undo()
            Ledger(url).grant(dataset, Budget.of(1), "A. Officer", "test")
            return locked

        monkeypatch.setattr(queries, "lock", lock_and_lose)
        with pytest.raises(BudgetError, match="has no grant"):
            ledger.reserve(ChargeRequest("wages", "r1", "p", {"a": Charge(Budget.of(1))}))
        assert ledger.remaining("wages") == Budget.of(1)

    def test_the_server_s_defaults_are_not_trusted(self, url):
        database = Ledger(url)._database
        with database.transaction(write=True) as connection:
            show = connection.exec_driver_sql
            assert show("SHOW transaction_isolation").scalar() == "read committed"
            assert show("SHOW synchronous_commit").scalar() == "on"
        with database.transaction(write=False) as connection:
            show = connection.exec_driver_sql
            assert show("SHOW transaction_isolation").scalar() == "repeatable read"
            assert show("SHOW transaction_read_only").scalar() == "on"

    def test_a_broken_constraint_is_reported_without_the_row(self, url):
        ledger = Ledger(url)
        ledger.grant("wages", Budget.of(1), "A. Officer", "test")
        with (
            pytest.raises(LedgerError, match="refused") as caught,
            by_hand(ledger) as connection,
        ):
            connection.exec_driver_sql("UPDATE ledger_grant SET who = NULL")
        assert "test" not in str(caught.value)

    def test_a_removed_table_is_an_error(self, url):
        ledger = Ledger(url)
        ledger.grant("wages", Budget.of(1), "A. Officer", "test")
        with ledger._database.transaction(write=True) as connection:
            connection.exec_driver_sql("DROP TABLE ledger_schema")
        with pytest.raises(LedgerError, match="tables were removed"):
            ledger.granted("wages")

    def test_a_process_looks_once_for_a_ledger_and_makes_none_in_its_place(self, url):
        database = Ledger(url)._database
        opened: list[object] = []
        listen(database.engine, "connect", lambda *connection: opened.append(connection))
        assert Ledger(url).datasets() == []
        assert len(opened) == 1
        with database.transaction(write=True) as connection:
            tables.metadata.drop_all(connection)
        with pytest.raises(LedgerError, match="tables were removed"):
            Ledger(url).datasets()
