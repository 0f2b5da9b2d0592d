"""What the database itself refuses: to everybody, and to a publisher or an officer."""

from __future__ import annotations

import functools
import sqlite3
from contextlib import closing, suppress
from itertools import product

import numpy as np
import psycopg
import pytest
from sqlalchemy import make_url

from dpcore.accounting.budget import Budget
from dpcore.errors import LedgerError
from dpcore.line.statistic import Noisy
from flows.cli import main
from tasks.ledger import Charge, ChargeRequest, Ledger, State, tables
from tests.tasks.bundle.damage import by_hand
from tests.tasks.ledger.test_postgresql import ENGINES, fresh_url

WHO_WHY = {"who": "A. Officer", "why": "test"}
SHARE = {"a": Charge(Budget.of("1/4"))}
NOISY = Noisy(np.array([1, 2]))

HISTORY = [
    "UPDATE ledger_grant SET alpha = '9'",
    "UPDATE ledger_dataset SET created_at = 'now'",
    "UPDATE ledger_draw SET payload = ''",
    "UPDATE ledger_note SET who = 'nobody'",
    "UPDATE ledger_bundle SET digest = 'x'",
    "UPDATE ledger_source SET dataset = 'x'",
    "UPDATE ledger_charge SET part = '1/2'",
    "UPDATE ledger_charge SET analyst = 'C'",
    "UPDATE ledger_allowance SET alpha = '9'",
    "UPDATE ledger_charge SET alpha = '0'",
    "UPDATE ledger_charge SET state = 'VOID' WHERE state = 'RESERVED'",
    "UPDATE ledger_charge SET state = 'COMMITTED', committed_at = 'now', digest = 'x'"
    " WHERE state = 'RESERVED'",
    "UPDATE ledger_charge SET state = 'RESERVED', committed_at = NULL, digest = NULL",
    "UPDATE ledger_charge SET state = 'RESERVED' WHERE state = 'VOID'",
    "INSERT INTO ledger_charge SELECT 'new', dataset, 'r9', release_name, account, plan_digest, alpha,"
    " beta, gamma, rho, event, series, run, part, analyst, state, reserved_at, committed_at, digest FROM"
    " ledger_charge WHERE state = 'VOID'",
    *(f"DELETE FROM {t.name}" for t in tables.metadata.sorted_tables if t is not tables.schema),
]


FORBIDDEN = [
    *HISTORY,
    *(f"TRUNCATE {t.name} CASCADE" for t in tables.metadata.sorted_tables),
    "UPDATE ledger_schema SET version = 1",
    "DELETE FROM ledger_schema",
    "DROP TRIGGER ledger_grant_history ON ledger_grant",
    "ALTER TABLE ledger_grant DISABLE TRIGGER ALL",
    "SET session_replication_role = replica",
    "DROP TABLE ledger_grant CASCADE",
    "CREATE TABLE ledger_more (x int)",
    "CREATE OR REPLACE FUNCTION ledger_refuse() RETURNS trigger LANGUAGE plpgsql"
    " AS $$ BEGIN RETURN NEW; END $$",
]


def lived_in(ledger: Ledger) -> Ledger:
    """A ledger with a row of every kind."""
    ledger.grant("wages", Budget.of(1), **WHO_WHY)
    for release_id in ("r1", "r2", "r3"):
        ledger.reserve(ChargeRequest("wages", release_id, "p", SHARE), sources=["wages.parquet"])
    ledger.commit("wages", "r1", "a", NOISY)
    ledger.seal("wages", "r1", "digest")
    ledger.allow("wages", "B. Analyst", Budget.of("1/4"), **WHO_WHY)
    ledger.void("wages", "r2", "a", **WHO_WHY)
    return ledger


@pytest.fixture(params=ENGINES)
def ledger(request, tmp_path) -> Ledger:
    return lived_in(Ledger(fresh_url(request.param, tmp_path)))


class TestHistory:
    def test_is_never_changed(self, ledger):
        before = ledger.history()
        for statement in HISTORY:
            with (
                pytest.raises(LedgerError, match="the history of a ledger is never changed"),
                ledger._database.transaction(write=True) as connection,
            ):
                connection.exec_driver_sql(statement)
            assert ledger.history() == before, statement
        ledger.commit("wages", "r3", "a", NOISY)

    def test_no_row_takes_the_place_of_an_earlier_one(self, tmp_path):
        lived_in(Ledger(f"sqlite:///{tmp_path}/ledger.db"))
        another = {"ledger_charge": "'new'", "ledger_bundle": "NULL", "ledger_source": "NULL"}
        with closing(sqlite3.connect(tmp_path / "ledger.db")) as program:
            for table in tables.metadata.sorted_tables:
                if table is tables.schema:
                    continue
                key, *rest = (column.name for column in table.c)
                for first in filter(None, (key, another.get(table.name))):
                    columns = ", ".join([first, *rest])
                    with suppress(sqlite3.IntegrityError):
                        program.execute(
                            f"INSERT OR REPLACE INTO {table.name} SELECT {columns} FROM {table.name}"
                        )
                assert program.execute(f"SELECT count(*) FROM {table.name}").fetchone()[0]
                assert program.total_changes == 0, table.name

    def test_the_owner_of_the_database_can_still_break_it(self, ledger):
        with by_hand(ledger) as connection:
            connection.exec_driver_sql("UPDATE ledger_charge SET alpha = '9'")
        assert ledger.find_faults("wages")


class TestSeals:
    def test_are_kept_once_and_only_for_what_is_drawn(self, ledger):
        ledger.seal("wages", "r1", "digest")
        ledger.seal("wages", "r1", "another")
        assert ledger.seals("wages", "r1") == {"digest", "another"}
        for release_id in ("r2", "r3", "r4"):
            with pytest.raises(LedgerError, match=r"not drawn yet|has no release"):
                ledger.seal("wages", release_id, "digest")
            assert ledger.seals("wages", release_id) == set()


@pytest.mark.slow
class TestRoles:
    @pytest.fixture
    def url(self, tmp_path) -> str:
        return fresh_url("postgresql", tmp_path)

    @pytest.fixture
    def owner(self, url) -> Ledger:
        return lived_in(Ledger(url))

    @pytest.fixture
    def users(self, url, owner, capsys) -> dict[str, str]:
        """The ledger's URL for a publisher and for an officer."""
        assert main(["ledger", "roles", "--apply", "--ledger", url]) == 0
        sql = capsys.readouterr().out
        plain = make_url(url)
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(sql)  # a second time does no harm
            for role in ("publisher", "officer"):
                user = f"{role}_{plain.database}"
                connection.execute(f"CREATE USER {user} PASSWORD 'x' IN ROLE dprelease_{role}")
        return {
            role: plain.set(username=f"{role}_{plain.database}", password="x").render_as_string(
                hide_password=False
            )
            for role in ("publisher", "officer")
        }

    def test_a_publisher_publishes_and_does_nothing_else(self, users, owner):
        ledger = Ledger(users["publisher"])
        for dataset in ("wages", "health"):
            assert not ledger.first_grant(dataset, Budget.of(9), **WHO_WHY)
        ledger.reserve(ChargeRequest("wages", "r4", "p", SHARE), sources=["wages-2026.parquet"])
        assert owner.sources()["wages-2026.parquet"] == "wages"
        ledger.commit("wages", "r4", "a", NOISY)
        ledger.seal("wages", "r4", "digest")
        assert ledger.find_faults("wages") == owner.find_faults("wages")
        for forbidden in (
            lambda: ledger.grant("wages", Budget.of(9), **WHO_WHY),
            lambda: ledger.allow("wages", "B. Analyst", Budget.of("1/4"), **WHO_WHY),
            lambda: ledger.void("wages", "r3", "a", **WHO_WHY),
            lambda: ledger.assign(["wages.parquet"], "wages", **WHO_WHY),
        ):
            with pytest.raises(LedgerError, match="dprelease ledger roles"):
                forbidden()
        assert owner.granted("wages") == Budget.of(1)
        assert owner.release("wages", "r3")["a"].state is State.RESERVED

    def test_an_officer_grants_and_voids_and_does_nothing_else(self, users, owner):
        ledger = Ledger(users["officer"])
        ledger.grant("wages", Budget.of(1), **WHO_WHY)
        ledger.grant("health", Budget.of(1), **WHO_WHY)
        ledger.allow("health", "B. Analyst", Budget.of("1/4"), **WHO_WHY)
        for forbidden in (
            lambda: ledger.reserve(ChargeRequest("wages", "r4", "p", SHARE)),
            lambda: ledger.commit("wages", "r3", "a", NOISY),
            lambda: ledger.seal("wages", "r1", "forged"),
        ):
            with pytest.raises(LedgerError, match="dprelease ledger roles"):
                forbidden()
        ledger.assign(["wages.parquet"], "health", **WHO_WHY)
        assert owner.sources()["wages.parquet"] == "health"
        ledger.void("wages", "r3", "a", **WHO_WHY)
        assert owner.granted("wages") == Budget.of(2)
        assert owner.release("wages", "r3")["a"].state is State.VOID

    def test_neither_can_touch_history_by_sql(self, users, owner):
        before = owner.history()
        for role, statement in product(users, FORBIDDEN):
            with psycopg.connect(users[role]) as connection, pytest.raises(psycopg.Error):
                connection.execute(statement)
            assert owner.history() == before, (role, statement)

    def test_a_table_of_one_s_own_does_not_fool_the_triggers(self, users, owner):
        with psycopg.connect(users["publisher"]) as connection:
            connection.execute(
                "CREATE TEMP TABLE ledger_note AS SELECT charge_id, 'void' AS action"
                " FROM ledger_charge"
            )
            connection.execute("SET search_path = pg_temp, public")
            with pytest.raises(psycopg.errors.RaiseException):
                connection.execute("UPDATE public.ledger_charge SET state = 'VOID'")
        assert owner.release("wages", "r3")["a"].state is State.RESERVED

    @pytest.mark.parametrize(("action", "allowed"), [("void", False), ("remark", True)])
    def test_a_publisher_may_note_anything_but_a_void(self, users, owner, action, allowed):
        note = "INSERT INTO ledger_note (charge_id, action, who, why, at) SELECT charge_id, %s,"
        with psycopg.connect(users["publisher"]) as connection:
            write = functools.partial(
                connection.execute, note + " 'x', 'y', 'z' FROM ledger_charge", [action]
            )
            if allowed:
                write()
            else:
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    write()
