"""A ledger of an older layout is read as it was, keeps basic composition, and can be moved on."""

from fractions import Fraction

import pytest
from sqlalchemy import CheckConstraint, MetaData, Table, UniqueConstraint, text

from dpcore.accounting.budget import Budget
from dpcore.errors import BudgetError, LedgerError
from dpcore.mechanisms.laplace import LaplaceEvent
from tasks.ledger import Charge, Ledger, charge_id, tables
from tasks.ledger.append_only import protect
from tasks.ledger.database import Database
from tasks.ledger.reading import _open
from tests.tasks.ledger.test_postgresql import ENGINES, fresh_url

WHO_WHY = {"who": "A. Officer", "why": "test"}
HALF = {"a": Charge(Budget.of("1/2"), LaplaceEvent(Fraction(1), Fraction(2)).to_dict())}
ADDED = {
    2: {
        "ledger_schema": ("served_at",),
        "ledger_grant": ("composition", "rho", "failures"),
        "ledger_charge": ("account", "rho", "series", "run", "part", "analyst"),
    },
    3: {"ledger_schema": ("served_at",), "ledger_charge": ("part", "analyst")},
    4: {"ledger_charge": ("analyst",)},
}
"""What a ledger of each older layout lacks."""

LATER = {
    2: {"ledger_grant": {}, "ledger_charge": {}},
    3: {
        "ledger_grant": {"composition": "'basic'", "rho": "'0'", "failures": "'0'"},
        "ledger_charge": {"account": "0", "rho": "'0'", "series": "''", "run": "0"},
    },
}
LATER[4] = {**LATER[3], "ledger_charge": LATER[3]["ledger_charge"] | {"part": "''"}}
"""The columns that later layouts have of their own, and their values in the rows below."""


def create_old_tables(layout: int, database: Database, connection) -> None:
    """The tables of a layout, with their triggers, a grant and a charge."""
    old = MetaData()
    for table in tables.metadata.sorted_tables:
        gone = ADDED[layout].get(table.name, ())
        copy = Table(table.name, old, *(c._copy() for c in table.columns if c.name not in gone))
        for each in table.constraints:
            checks = isinstance(each, CheckConstraint | UniqueConstraint)
            if checks and each.name != "known_composition":
                # Without its table, the copy of a check would be added to the table of the product.
                copy.append_constraint(each._copy(target_table=copy))
    old.create_all(connection, checkfirst=False)
    protect(connection)
    connection.execute(text("DROP TABLE ledger_allowance"))
    if layout < 4:
        connection.execute(text("DROP TABLE ledger_source"))
    row = "(version, created_at)"
    connection.execute(text(f"INSERT INTO ledger_schema {row} VALUES ({layout}, 'then')"))
    connection.execute(text("INSERT INTO ledger_dataset VALUES ('wages', 'then')"))
    grant = {"dataset": "'wages'", "alpha": "'1'", "beta": "'0'", "gamma": "'0'", "who": "'A'"}
    insert(connection, layout, "ledger_grant", grant | {"why": "'test'", "at": "'then'"})
    charge = {"charge_id": f"'{charge_id('wages', 'r1', 'a')}'", "dataset": "'wages'"}
    charge |= {"release_id": "'r1'", "release_name": "'a'", "plan_digest": "'p'"}
    charge |= {"alpha": "'1/2'", "beta": "'0'", "gamma": "'0'", "event": ":event"}
    charge |= {"state": "'RESERVED'", "reserved_at": "'then'"}
    insert(connection, layout, "ledger_charge", charge, event=HALF["a"].event_text())


def insert(connection, layout: int, table: str, row: dict, **values) -> None:
    row = row | LATER[layout][table]
    statement = f"INSERT INTO {table} ({', '.join(row)}) VALUES ({', '.join(row.values())})"
    connection.execute(text(statement), values)


@pytest.fixture(params=ADDED, ids="layout {}".format)
def layout(request) -> int:
    return request.param


@pytest.fixture(params=ENGINES)
def url(request, layout, tmp_path, monkeypatch) -> str:
    """A ledger of an older layout."""
    url = fresh_url(request.param, tmp_path)
    with monkeypatch.context() as patch:
        create = lambda database, connection: create_old_tables(layout, database, connection)  # noqa: E731
        patch.setattr(Database, "create_tables", create)
        _open(url, 30, True)
    return url


def test_it_is_read_as_it_was_and_stays_basic(url):
    ledger = Ledger(url)
    assert ledger.account("wages").composition == "basic"
    assert (ledger.granted("wages"), ledger.spent("wages")) == (Budget.of(1), Budget.of("1/2"))
    assert ledger.reserve("wages", "r1", "p", HALF) == []
    ledger.reserve("wages", "r2", "p", HALF)
    with pytest.raises(BudgetError):
        ledger.reserve("wages", "r3", "p", HALF)
    assert [f.what for f in ledger.find_faults("wages")] == ["reserved, not drawn"] * 2
    ledger.grant("wages", Budget.of(2, "1e-6"), **WHO_WHY, composition="concentrated")
    assert Ledger(url).promised("wages") == Budget.of(3, "1e-6")


def test_all_columns_are_guarded_afterwards(url):
    ledger = Ledger(url)
    for change in ("account = 7", "series = 'x'", "part = '1'", "analyst = 'x'", "alpha = '0'"):
        with (
            pytest.raises(LedgerError, match="the history of a ledger is never changed"),
            ledger._database.transaction(write=True) as connection,
        ):
            connection.exec_driver_sql(f"UPDATE ledger_charge SET {change}")


def test_to_which_dataset_a_survey_belongs_is_recorded_from_then_on(url):
    ledger = Ledger(url)
    ledger.reserve("wages", "r2", "p", HALF, sources=["survey"])
    ledger.grant("health", Budget.of(1), **WHO_WHY)
    with pytest.raises(BudgetError, match="belongs to the dataset 'wages'"):
        ledger.reserve("health", "r1", "p", HALF, sources=["survey"])
    with (
        pytest.raises(LedgerError, match="the history of a ledger is never changed"),
        ledger._database.transaction(write=True) as connection,
    ):
        connection.exec_driver_sql("UPDATE ledger_source SET dataset = 'health'")


def test_analysts_can_be_allowed_something_from_then_on(url):
    ledger = Ledger(url)
    ledger.allow("wages", "B. Analyst", Budget.of("1/4"), **WHO_WHY)
    with pytest.raises(BudgetError, match=r"allowed to B\. Analyst"):
        ledger.reserve("wages", "r2", "p", HALF, part=Fraction(1), analyst="B. Analyst")
    with (
        pytest.raises(LedgerError, match="the history of a ledger is never changed"),
        ledger._database.transaction(write=True) as connection,
    ):
        connection.exec_driver_sql("DELETE FROM ledger_allowance")
