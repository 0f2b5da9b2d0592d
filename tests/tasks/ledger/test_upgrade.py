"""A ledger of the layout before is read as it was, keeps basic composition, and can be moved on."""

from fractions import Fraction

import pytest
from sqlalchemy import CheckConstraint, MetaData, Table, UniqueConstraint, text

from dpcore.budget import Budget
from dpcore.errors import BudgetError, LedgerError
from dpcore.mechanisms.laplace import LaplaceEvent
from tasks.ledger import Charge, Ledger, charge_id, tables
from tasks.ledger.append_only import protect
from tasks.ledger.database import Database
from tasks.ledger.ledger import _open
from tests.tasks.ledger.test_postgresql import ENGINES, fresh_url

WHO_WHY = {"who": "A. Officer", "why": "test"}
HALF = {"a": Charge(Budget.of("1/2"), LaplaceEvent(Fraction(1), Fraction(2)).to_dict())}
ADDED = {
    "ledger_grant": ("composition", "rho", "failures"),
    "ledger_charge": ("account", "rho", "series", "run"),
}


def create_old_tables(database: Database, connection) -> None:
    """The tables of layout 2, with their triggers."""
    old = MetaData()
    for table in tables.metadata.sorted_tables:
        gone = ADDED.get(table.name, ())
        kept = [
            each._copy()
            for each in list(table.constraints)
            if isinstance(each, CheckConstraint | UniqueConstraint)
            and each.name != "known_composition"
        ]
        Table(
            table.name, old, *(c._copy() for c in list(table.columns) if c.name not in gone), *kept
        )
    old.create_all(connection, checkfirst=False)
    protect(connection)
    connection.execute(text("INSERT INTO ledger_schema VALUES (2, 'then')"))
    connection.execute(text("INSERT INTO ledger_dataset VALUES ('wages', 'then')"))
    connection.execute(
        text(
            "INSERT INTO ledger_grant (dataset, alpha, beta, gamma, who, why, at)"
            " VALUES ('wages', '1', '0', '0', 'A', 'test', 'then')"
        )
    )
    row = {"id": charge_id("wages", "r1", "a"), "event": HALF["a"].event_text()}
    connection.execute(
        text(
            "INSERT INTO ledger_charge (charge_id, dataset, release_id, release_name, plan_digest,"
            " alpha, beta, gamma, event, state, reserved_at)"
            " VALUES (:id, 'wages', 'r1', 'a', 'p', '1/2', '0', '0', :event, 'RESERVED', 'then')"
        ),
        row,
    )


@pytest.fixture(params=ENGINES)
def url(request, tmp_path, monkeypatch) -> str:
    """A ledger of layout 2 with a grant and a charge."""
    url = fresh_url(request.param, tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(Database, "create_tables", create_old_tables)
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


@pytest.mark.parametrize("change", ["account = 7", "rho = '1'", "series = 'x'", "alpha = '0'"])
def test_all_columns_are_guarded_afterwards(url, change):
    ledger = Ledger(url)
    with (
        pytest.raises(LedgerError, match="the history of a ledger is never changed"),
        ledger._database.transaction(write=True) as connection,
    ):
        connection.exec_driver_sql(f"UPDATE ledger_charge SET {change}")
