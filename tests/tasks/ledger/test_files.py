"""The ledger as a file: who may read it, what its transactions are, and what damage it refuses."""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np
import pytest
from sqlalchemy import event

from dpcore.accounting.budget import Budget
from dpcore.errors import BudgetError, DPReleaseError, InputError, LedgerError
from dpcore.line.statistic import Noisy
from tasks.ledger import Charge, ChargeRequest, Ledger
from tests.tasks.bundle.damage import by_hand

CHARGES = {"a": Charge(Budget.of("1/2"))}


@pytest.fixture
def path(tmp_path) -> Path:
    return tmp_path / "ledger.db"


@pytest.fixture
def ledger(path) -> Ledger:
    ledger = Ledger(f"sqlite:///{path}", lock_seconds=0.2)
    ledger.grant("wages", Budget.of(1), "A. Officer", "test")
    return ledger


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that any user can reach (pytest's own can only be entered by its owner)."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@contextmanager
def nobody() -> Iterator[None]:
    """Without the rights of root, which no permission stops."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


class TestOwnership:
    def test_the_file_is_the_owner_s_alone(self, tmp_path):
        tmp_path.chmod(0o755)
        previous = os.umask(0)
        try:
            Ledger(f"sqlite:///{tmp_path}/ledger.db")
        finally:
            os.umask(previous)
        assert mode(tmp_path / "ledger.db") == 0o600
        assert os.listdir(tmp_path) == ["ledger.db"]

    def test_a_mistyped_folder_does_not_become_an_empty_ledger(self, tmp_path):
        with pytest.raises(InputError, match="no such folder"):
            Ledger(f"sqlite:///{tmp_path}/leger/ledger.db")
        assert os.listdir(tmp_path) == []

    def test_the_journal_is_the_owner_s_alone(self, ledger, path):
        previous = os.umask(0)
        try:
            with by_hand(ledger) as connection:
                connection.exec_driver_sql("UPDATE ledger_grant SET who = 'x'")
                assert mode(path.with_name("ledger.db-journal")) == 0o600
        finally:
            os.umask(previous)

    def test_a_relative_path_stays_the_same_ledger_when_the_folder_changes(
        self, tmp_path, monkeypatch
    ):
        (tmp_path / "elsewhere").mkdir()
        monkeypatch.chdir(tmp_path)
        ledger = Ledger("sqlite:///odd name#%41.db")
        monkeypatch.chdir(tmp_path / "elsewhere")
        ledger.grant("wages", Budget.of(1), "A. Officer", "test")
        assert len(os.listdir(tmp_path)) == 2
        assert os.listdir(tmp_path / "elsewhere") == []


class TestTransactions:
    def test_a_writer_begins_immediate_and_a_reader_does_not(self, ledger):
        statements: list[str] = []
        event.listen(
            ledger._database.engine,
            "before_cursor_execute",
            lambda *args: statements.append(args[2]),
        )
        ledger.reserve(ChargeRequest("wages", "r1", "p", CHARGES))
        assert statements[0] == "BEGIN IMMEDIATE"
        statements.clear()
        ledger.check(ChargeRequest("wages", "r1", "p", CHARGES))
        assert statements[0] == "BEGIN"

    def test_the_write_lock_is_held_from_the_first_statement(self, ledger, path):
        with closing(sqlite3.connect(path, timeout=0, isolation_level=None)) as other:
            with ledger._database.transaction(write=True):
                with pytest.raises(sqlite3.OperationalError, match="locked"):
                    other.execute("BEGIN IMMEDIATE")
                other.execute("SELECT * FROM ledger_grant").fetchall()
            other.execute("BEGIN IMMEDIATE")

    def test_connections_are_durable_and_keep_references(self, ledger):
        with ledger._database.transaction(write=True) as connection:
            # The driver itself begins nothing.
            assert connection.connection.driver_connection.isolation_level is None
            pragma = connection.exec_driver_sql
            assert pragma("PRAGMA synchronous").scalar() == 3  # EXTRA
            assert pragma("PRAGMA foreign_keys").scalar() == 1
            assert pragma("PRAGMA journal_mode").scalar() == "delete"
        with (
            pytest.raises(LedgerError, match="FOREIGN KEY"),
            ledger._database.transaction(write=True) as connection,
        ):
            connection.exec_driver_sql("INSERT INTO ledger_draw VALUES ('unknown', x'00')")

    def test_a_lock_that_is_not_had_in_time(self, ledger, path):
        with closing(sqlite3.connect(path, isolation_level=None)) as holder:
            holder.execute("BEGIN IMMEDIATE")
            with pytest.raises(LedgerError, match=r"held the lock .* for 0\.2 s.*nothing"):
                ledger.reserve(ChargeRequest("wages", "r1", "p", CHARGES))
            assert ledger.spent("wages") == Budget()
            holder.execute("ROLLBACK")
        assert ledger.reserve(ChargeRequest("wages", "r1", "p", CHARGES)) == ["a"]

    def test_a_reader_that_does_not_go_away_makes_the_writer_give_up_whole(self, ledger, path):
        with closing(sqlite3.connect(path, isolation_level=None)) as reader:
            reader.execute("BEGIN")
            reader.execute("SELECT * FROM ledger_grant").fetchall()
            with pytest.raises(LedgerError, match="held the lock"):
                ledger.reserve(ChargeRequest("wages", "r1", "p", CHARGES))
        assert ledger.spent("wages") == Budget()


class TestLossAndDamage:
    def test_a_removed_ledger_is_not_made_anew(self, ledger, path):
        path.unlink()
        for use in (
            lambda: ledger.granted("wages"),
            lambda: ledger.first_grant("wages", Budget.of(1), "A. Officer", "test"),
        ):
            with pytest.raises(LedgerError, match="file is missing"):
                use()
        assert not path.exists()

    def test_without_create_a_missing_ledger_is_an_error(self, path):
        with pytest.raises(LedgerError, match="there is no ledger"):
            Ledger(f"sqlite:///{path}", create=False)
        assert not path.exists()
        Ledger(f"sqlite:///{path}")
        Ledger(f"sqlite:///{path}", create=False)

    @pytest.mark.parametrize(
        ("content", "text"),
        [
            (b"", "holds no ledger"),
            (b"this is not a database, whatever its name may say\n" * 99, "not a ledger"),
        ],
    )
    def test_a_file_that_is_no_ledger_is_refused_and_left_alone(self, path, content, text):
        path.write_bytes(content)
        with pytest.raises(LedgerError, match=text):
            Ledger(f"sqlite:///{path}")
        assert path.read_bytes() == content

    def test_another_program_s_database_is_refused(self, path):
        with closing(sqlite3.connect(path)) as other:
            other.execute("CREATE TABLE dataset (name TEXT)")
        with pytest.raises(LedgerError, match="holds no ledger"):
            Ledger(f"sqlite:///{path}")

    def test_a_torn_file_is_reported_as_damage(self, ledger, path):
        whole = path.read_bytes()
        path.write_bytes(whole[:4096] + b"\xff" * (len(whole) - 4096))
        with pytest.raises(LedgerError, match=r"damaged.*backup"):
            ledger.granted("wages")

    def test_one_changed_byte_in_a_draw_is_noticed(self, ledger, path):
        drawn = Noisy(np.arange(1000) + 10**12)
        ledger.reserve(ChargeRequest("wages", "r1", "p", CHARGES))
        ledger.commit("wages", "r1", "a", drawn)
        stored = bytearray(path.read_bytes())
        at = stored.index((10**12 + 1).to_bytes(8, "little"))
        stored[at] ^= 1
        path.write_bytes(stored)
        with pytest.raises(LedgerError, match="not the one that was committed"):
            ledger.committed("wages", "r1", "a")

    def test_no_bit_of_a_name_that_turned_lets_more_be_spent(self, ledger, path, tmp_path):
        """Whether it is in a table or in one of its indexes, which hides a charge from sums."""
        for release_id in ("r1", "r2"):
            ledger.reserve(ChargeRequest("wages", release_id, "plan", CHARGES))
        sound, refused = path.read_bytes(), []
        places = [i for i in range(len(sound)) if sound.startswith(b"wages", i)]
        for number, place in enumerate(places):
            copy = tmp_path / f"{number}.db"
            copy.write_bytes(sound[:place] + b"v" + sound[place + 1 :])
            with pytest.raises((BudgetError, LedgerError)) as error:
                Ledger(f"sqlite:///{copy}").reserve(ChargeRequest("wages", "r3", "plan", CHARGES))
            refused.append("damaged" in str(error.value))
            if refused[-1]:
                with pytest.raises(LedgerError, match="damaged"):
                    Ledger(f"sqlite:///{copy}").copy_to(tmp_path / "backup.db")
        assert sum(refused) >= 4

    @pytest.mark.slow
    def test_a_damaged_draw_is_found_by_the_whole_check_and_stops_no_other_release(
        self, ledger, path
    ):
        """A reservation reads the charges of its dataset, and not every draw that was ever made."""
        small = {"a": Charge(Budget.of("1/100"))}
        for number in range(40):
            ledger.reserve(ChargeRequest("wages", f"r{number}", "plan", small))
            ledger.commit("wages", f"r{number}", "a", Noisy(np.arange(2000) + 10**12))
        stored = bytearray(path.read_bytes())
        with closing(sqlite3.connect(path)) as other:
            of_draws = "SELECT rootpage FROM sqlite_master WHERE name = 'ledger_draw'"
            root = other.execute(of_draws).fetchone()[0]
            size = other.execute("PRAGMA page_size").fetchone()[0]
        stored[(root - 1) * size : root * size] = b"\xff" * size
        path.write_bytes(stored)
        ledger = Ledger(f"sqlite:///{path}")
        ledger.require_sound("wages")
        ledger.reserve(ChargeRequest("wages", "more", "plan", small))
        with pytest.raises(LedgerError, match="damaged"):
            ledger.require_whole()

    @pytest.mark.slow
    def test_a_reservation_costs_the_same_statements_however_long_the_history(self, ledger):
        statements: list[str] = []

        def note(*given: object) -> None:
            statements.append(str(given[2]))

        event.listen(ledger._database.engine, "before_cursor_execute", note)
        numbers = []
        for number in range(30):
            statements.clear()
            asked = {"a": Charge(Budget.of("1/100"))}
            ledger.check(ChargeRequest("wages", f"r{number}", "plan", asked))
            ledger.reserve(ChargeRequest("wages", f"r{number}", "plan", asked, ending="-x"))
            numbers.append(len(statements))
        event.remove(ledger._database.engine, "before_cursor_execute", note)
        assert len(set(numbers)) == 1
        assert not any("integrity_check" in each for each in statements)

    def test_text_that_is_none_is_damage(self, ledger, path):
        sound = path.read_bytes()
        path.write_bytes(sound.replace(b"A. Officer", b"A. \xff\xfeficer"))
        with pytest.raises(LedgerError, match="damaged"):
            Ledger(f"sqlite:///{path}").history("wages")

    @pytest.mark.parametrize(
        "statement",
        ["DELETE FROM ledger_schema", "INSERT INTO ledger_schema VALUES (6, 'now', NULL)"],
    )
    def test_an_unclear_layout_is_refused(self, ledger, path, statement):
        with closing(sqlite3.connect(path)) as other, other:
            other.execute(statement)
        with pytest.raises(LedgerError, match="layout version"):
            Ledger(f"sqlite:///{path}")


class TestPermissions:
    def test_a_folder_that_may_not_be_written(self, open_folder):
        open_folder.chmod(0o555)
        with nobody(), pytest.raises(LedgerError, match="Permission denied"):
            Ledger(f"sqlite:///{open_folder}/ledger.db")
        assert os.listdir(open_folder) == []

    def test_a_ledger_that_may_only_be_read_can_be_read(self, open_folder):
        path = open_folder / "ledger.db"
        Ledger(f"sqlite:///{path}").grant("wages", Budget.of(1), "A. Officer", "test")
        path.chmod(0o444)
        open_folder.chmod(0o555)
        with nobody():
            ledger = Ledger(f"sqlite:///{path}")
            assert ledger.remaining("wages") == Budget.of(1)
            with pytest.raises(LedgerError, match="read-only"):
                ledger.reserve(ChargeRequest("wages", "r1", "p", CHARGES))

    def test_a_ledger_of_somebody_else_is_closed(self, open_folder):
        Ledger(f"sqlite:///{open_folder}/ledger.db")
        if os.geteuid() != 0:
            pytest.skip("needs a second user")
        with nobody(), pytest.raises(LedgerError, match="may not use"):
            Ledger(f"sqlite:///{open_folder}/ledger.db")


class TestURL:
    @pytest.mark.parametrize(
        "url",
        [
            "sqlite://",
            "sqlite:///:memory:",
            "sqlite://server/ledger.db",
            "sqlite:///ledger.db?mode=memory",
            "mysql://ledger:hush-hush@server/ledger",
            "postgresql+asyncpg://ledger:hush-hush@server/ledger",
            "ledger.db",
            "",
            "postgresql://ledger:hush-hush@server:port/ledger",
            "://ledger:hush-hush@",
        ],
    )
    def test_a_url_that_names_no_ledger_is_refused_without_quoting_it(
        self, url, tmp_path, monkeypatch
    ):
        monkeypatch.chdir(tmp_path)
        with pytest.raises(DPReleaseError, match="sqlite:///") as caught:
            Ledger(url)
        assert "hush" not in str(caught.value)
        assert caught.value.__suppress_context__ or caught.value.__context__ is None
        assert os.listdir(tmp_path) == []

    @pytest.mark.parametrize("password", ["hush@hush", "hush@hu/sh", "hu/sh@hush"])
    def test_a_password_with_an_at_sign_is_not_taken_for_a_host(self, password):
        with pytest.raises(InputError, match="write @ as %40") as caught:
            Ledger(f"postgresql://ledger:{password}@server/ledger")
        assert "hu" not in str(caught.value)

    def test_a_server_without_its_driver_says_what_to_install(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "psycopg", None)
        with pytest.raises(LedgerError, match=r"install dprelease\[postgres\]"):
            Ledger("postgresql://ledger:hush-hush@server/ledger")
