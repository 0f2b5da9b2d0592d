"""Charged once, drawn once, published whole: whenever the process was killed (see ``kills.py``), and
however many machines were at it (see ``races.py``)."""

from __future__ import annotations

import pytest

from tests.apart import apart
from tests.flows.kills import kill
from tests.flows.races import race_pairs
from tests.tasks.ledger.test_postgresql import fresh_url

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("engine", ["sqlite", "postgresql"])
def test_no_kill_costs_a_charge_a_draw_or_a_whole_bundle(engine, tmp_path):
    own = [] if engine == "sqlite" else [fresh_url(engine, tmp_path)]
    composition = "basic" if engine == "sqlite" else "concentrated"
    rows = apart(kill, tmp_path, *own, at_random=4, composition=composition)
    assert {label: row.violations for label, row in rows.items() if row.violations} == {}
    assert sum(row.kills for row in rows.values()) > (20 if engine == "sqlite" else 12)
    for boundary in ("after the noise is drawn", "before ledger COMMIT", "after ledger COMMIT"):
        assert rows[boundary].kills > 0
    assert ("after file rename" in rows) == (engine == "sqlite")
    assert rows["at random"].kills == 4


@pytest.mark.parametrize(
    ("sabotage", "boundary", "harm"),
    [
        (
            "two transactions",
            "UPDATE ledger_charge",
            "the ledger disagrees with itself: RESERVED, but a draw is stored",
        ),
        ("no staging", "file mkdir", "a partial bundle"),
    ],
)
def test_a_product_that_is_broken_on_purpose_is_found_out(sabotage, boundary, harm, tmp_path):
    rows = apart(kill, tmp_path, at_random=0, broken=sabotage, only=boundary)
    assert any(harm in violation for row in rows.values() for violation in row.violations)


@pytest.mark.parametrize("engine", ["sqlite", "postgresql"])
def test_two_machines_that_publish_the_same_release_make_one_bundle(engine, tmp_path):
    own = [] if engine == "sqlite" else [fresh_url(engine, tmp_path)]
    assert apart(race_pairs, tmp_path, *own, pairs=3) == []


def test_machines_that_share_a_staging_folder_are_found_out(tmp_path):
    harm = "\n".join(apart(race_pairs, tmp_path, broken="one staging for all"))
    assert "a run failed" in harm or "a partial bundle" in harm
