"""A soak of a minute: what breaks at every run, not what breaks once in a hundred."""

import pytest

from tests.soak.__main__ import soak, table
from tests.soak.agency import Agency
from tests.soak.troubles import Life
from tests.tasks.ledger.server import Server, programs

pytestmark = pytest.mark.slow


def test_an_agency_keeps_its_promises_for_a_minute(tmp_path):
    postgresql = programs()
    if postgresql is None:
        pytest.skip("PostgreSQL is not installed")
    life = Life(Agency(tmp_path, Server(postgresql), seed=1, number_of_plans=4, briefly=True))
    only = "a run killed"  # whose worker sees it; of others the server hears after minutes
    life.troubles = {only: life.troubles[only]}
    del life.deeds["an audit asked for"]  # which takes most of a minute of two processors
    rows = soak(life, seconds=60, gap=8, settle_seconds=900)
    print(table(life, rows))
    assert [row.what for row in rows if not row.kept] == []
    counted = {row.what: row.count for row in rows}
    assert counted["releases due"] > 0
    assert counted["bundles in all"] > 0
