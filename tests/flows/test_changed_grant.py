"""A dataset's budget that changes between a run's check and its charge."""

from collections.abc import Callable

import pytest

import flows.course
from dpcore.accounting.budget import Budget
from dpcore.errors import BudgetError
from tasks.ledger import Charge, Ledger
from tasks.workplace.home import ledger_url
from tests.bare import leave_out_audits, release, small_plan


def meanwhile(monkeypatch, act: Callable[[Ledger], object]) -> None:
    """Have somebody act on the ledger after the run's check of the budget, before its charge."""
    audit = flows.course.passed_audit

    def audit_and_act(plan):
        found = audit(plan)
        act(Ledger(ledger_url()))
        return found

    monkeypatch.setattr(flows.course, "passed_audit", audit_and_act)


@pytest.fixture
def plan(tmp_path, monkeypatch):
    leave_out_audits(monkeypatch.setattr)
    Ledger(ledger_url()).grant("survey", Budget.of(2), who="the board", why="two releases")
    return small_plan(tmp_path)


@pytest.mark.slow
def test_a_run_whose_budget_another_run_took_meanwhile_charges_and_draws_nothing(
    plan, tmp_path, monkeypatch
):
    taken = {"b": Charge(Budget.of("3/2"))}
    meanwhile(monkeypatch, lambda ledger: ledger.reserve("survey", "other", "p", taken))
    with pytest.raises(BudgetError):
        release(plan, "r1", tmp_path / "out")
    ledger = Ledger(ledger_url())
    assert ledger.spent("survey") == Budget.of("3/2")
    assert not ledger.release("survey", "r1")
    assert not (tmp_path / "out" / "survey" / "r1").exists()


@pytest.mark.slow
def test_a_grant_that_grows_during_a_run_is_there_for_the_next(plan, tmp_path, monkeypatch):
    more = {"who": "the board", "why": "a third release"}
    meanwhile(monkeypatch, lambda ledger: ledger.grant("survey", Budget.of(1), **more))
    release(plan, "r1", tmp_path / "out")
    assert Ledger(ledger_url()).remaining("survey") == Budget.of(2)
