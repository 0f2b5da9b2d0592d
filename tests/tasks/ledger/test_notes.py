"""Requests and decisions in the ledger."""

import numpy as np
import pytest

from dpcore.accounting.budget import Budget
from dpcore.errors import InputError, LedgerError
from dpcore.line.statistic import Noisy
from tasks.ledger import Action, Charge, ChargeRequest, Ledger


@pytest.fixture
def ledger(url):
    ledger = Ledger(url)
    ledger.grant("wages", Budget.of(2), who="board", why="test")
    charges = {name: Charge(Budget.of("1/2")) for name in ("a", "b")}
    ledger.reserve(ChargeRequest("wages", "r1", "digest", charges))
    ledger.commit("wages", "r1", "a", Noisy(np.array([1])))
    return ledger


@pytest.fixture
def drawn(ledger):
    ledger.commit("wages", "r1", "b", Noisy(np.array([2])))
    return ledger


def test_a_decision_is_recorded_once_with_who_and_why(drawn):
    assert drawn.decision("wages", "r1") is None
    decision = drawn.decide("wages", "r1", True, who="C. Officer", why="checked")
    assert (decision.approved, decision.who, decision.why) == (True, "C. Officer", "checked")
    assert drawn.decision("wages", "r1") == decision
    assert drawn.decide("wages", "r1", True, who="D. Officer", why="again") == decision
    lines = [r for r in drawn.history("wages") if r.action is Action.APPROVE]
    assert [(r.release_id, r.release_name, r.who, r.why) for r in lines] == [
        ("r1", None, "C. Officer", "checked")
    ]


@pytest.mark.parametrize("first", [True, False])
def test_a_decision_is_final(drawn, first):
    drawn.decide("wages", "r1", first, who="C. Officer", why="checked")
    with pytest.raises(LedgerError, match=r"by C\. Officer .* a decision is final"):
        drawn.decide("wages", "r1", not first, who="D. Officer", why="changed my mind")
    assert drawn.decision("wages", "r1").approved is first


def test_a_rejection_gives_nothing_back(drawn):
    drawn.decide("wages", "r1", False, who="C. Officer", why="too fine")
    assert drawn.spent("wages") == Budget.of(1)


def test_what_is_not_drawn_cannot_be_decided_on(ledger):
    with pytest.raises(LedgerError, match=r"not drawn yet \(b\)"):
        ledger.decide("wages", "r1", True, who="C. Officer", why="checked")
    with pytest.raises(InputError, match="has no release 'r2'"):
        ledger.decide("wages", "r2", True, who="C. Officer", why="checked")
    assert ledger.decision("wages", "r2") is None


@pytest.mark.parametrize("blank", ["", "  ", "two\nlines"])
def test_who_and_why_must_be_said(drawn, blank):
    with pytest.raises(InputError, match="who"):
        drawn.decide("wages", "r1", True, who=blank, why="checked")
    with pytest.raises(InputError, match="why"):
        drawn.decide("wages", "r1", True, who="C. Officer", why=blank)


def test_the_first_request_stays(ledger):
    for who in ("B. Analyst", "E. Else"):
        ledger.record_request("wages", "r1", who=who, why="A title")
    lines = [r for r in ledger.history("wages") if r.action is Action.REQUEST]
    assert [(r.who, r.why) for r in lines] == [("B. Analyst", "A title")]
    assert ledger.decision("wages", "r1") is None
