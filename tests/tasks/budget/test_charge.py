"""What a person is told who runs a plan again."""

import logging

import pytest

from dpcore.errors import BudgetError
from tasks.ledger import Ledger
from tasks.workplace.home import ledger_url
from tasks.workplace.places import FLOW_RUN
from tests import bare

pytestmark = pytest.mark.slow


class KilledError(BaseException):
    """What no step catches, like the death of the process."""


@pytest.fixture
def plan(tmp_path, monkeypatch, caplog):
    """A plan whose release r1 was killed after all draws, before its bundle."""
    bare.leave_out_audits(monkeypatch.setattr)
    path = bare.small_plan(tmp_path)

    def die(*_: object) -> None:
        raise KilledError

    with monkeypatch.context() as patch:
        patch.setattr("flows.course.add_to_checkpoint", die)
        with pytest.raises(KilledError):
            bare.release(path, "r1", tmp_path / "out")
    caplog.set_level(logging.INFO, logger="dprelease")
    return path


def test_a_new_release_names_the_one_that_stopped_before_its_bundle(plan, tmp_path, caplog):
    spent = Ledger(ledger_url()).spent("survey")
    bare.release(plan, "r2", tmp_path / "out")
    assert "run it again with --release-id r1, which costs nothing more" in caplog.text
    caplog.clear()
    with pytest.raises(BudgetError):  # also where it cannot be charged
        bare.release(plan, "r3", tmp_path / "out")
    assert "--release-id r1, which costs nothing more" in caplog.text
    caplog.clear()
    before = Ledger(ledger_url()).spent("survey")
    bare.release(plan, "r1", tmp_path / "out")
    assert before == spent * 2 == Ledger(ledger_url()).spent("survey")
    assert "another release" not in caplog.text


def test_nobody_is_told_of_releases_that_were_published_or_rejected(plan, tmp_path, caplog):
    Ledger(ledger_url()).decide("survey", "r1", approved=False, who="C. Officer", why="a mistake")
    bare.release(plan, "r2", tmp_path / "out")
    with pytest.raises(BudgetError):
        bare.release(plan, "r3", tmp_path / "out")
    assert "another release" not in caplog.text


def test_a_run_says_at_its_start_how_it_goes_on_if_it_stops(plan, tmp_path, caplog, monkeypatch):
    bare.release(plan, "r1", tmp_path / "out")
    assert "if it stops, run it with --release-id r1" in caplog.text
    monkeypatch.setenv("DPRELEASE_LEDGER", ledger_url())  # as a worker must
    monkeypatch.setenv(FLOW_RUN, "a worker's run")
    bare.release(plan, "r1", tmp_path / "out")
    assert "if it stops, press Retry" in caplog.text
