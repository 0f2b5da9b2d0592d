"""A draw reads a tally only for a charge that is reserved, and only once."""

import numpy as np
import pytest

from dpcore.errors import LedgerError
from schemas.plan import load_plan
from tasks.budget.charge import reserve_budget
from tasks.draw import draw
from tasks.ledger import Ledger
from tasks.workplace.home import ledger_url
from tasks.workplace.job import ReleaseJob
from tests.bare import small_plan
from tests.tasks.made_up import made_up_tally

pytestmark = pytest.mark.usefixtures("own_home")


@pytest.fixture
def job(tmp_path):
    """Its budget is reserved; the tally of ``people`` is on disk."""
    plan = load_plan(small_plan(tmp_path))
    job = ReleaseJob(plan, "r1")
    reserve_budget.fn(job)
    tally = made_up_tally(plan.built["people"].domain, plan.rows)
    np.save(tmp_path / "people.npy", np.stack([tally.cells, tally.counts]))
    return job


def test_a_retry_finds_the_draw_and_reads_no_tally(job, tmp_path):
    draw.fn(job, "people", "people", tmp_path)
    (tmp_path / "people.npy").unlink()
    draw.fn(job, "people", "people", tmp_path)


def test_nothing_is_drawn_for_a_charge_that_is_void(job, tmp_path):
    Ledger(ledger_url()).void("survey", "r1", "people", who="A. Officer", why="test")
    (tmp_path / "people.npy").unlink()
    for name in ("people", "nobody"):
        with pytest.raises(LedgerError, match=f"{name}: its budget is not reserved"):
            draw.fn(job, name, name, tmp_path)
