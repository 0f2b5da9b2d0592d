"""Grants that add up rho: caps fixed by the promise, accounts, and what cannot be mixed."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from dpcore.accounting.budget import Budget
from dpcore.accounting.concentrated import caps
from dpcore.errors import BudgetError, LedgerError
from dpcore.line.statistic import Noisy
from dpcore.mechanisms.laplace import LaplaceEvent
from tasks.ledger import Charge, ChargeRequest, Ledger
from tests.tasks.bundle.damage import by_hand
from tests.tasks.ledger.conftest import refused

WHO_WHY = {"who": "A. Officer", "why": "test"}
PROMISE = Budget.of("2", "1e-6")
CAPS = caps("concentrated", PROMISE)
MONTH = {"a": Charge(CAPS * Fraction(1, 12))}


@pytest.fixture
def ledger(url) -> Ledger:
    ledger = Ledger(url)
    ledger.grant("wages", PROMISE, **WHO_WHY, composition="concentrated")
    return ledger


def test_a_year_of_twelfths_fits_and_no_more(ledger: Ledger):
    assert ledger.granted("wages") == CAPS
    for month in range(12):
        ledger.reserve(ChargeRequest("wages", f"m{month}", "p", MONTH))
    assert ledger.remaining("wages") == Budget()
    one_more = ChargeRequest("wages", "m12", "p", MONTH)
    refused(ledger, one_more, BudgetError, r"rho: asked .*nothing was charged")
    assert ledger.spent("wages") == CAPS
    assert ledger.reserve(ChargeRequest("wages", "m3", "p", MONTH)) == []  # a retry pays nothing
    ledger.void("wages", "m5", "a", **WHO_WHY)
    assert ledger.reserve(one_more) == ["a"]


def test_chances_to_fail_have_a_cap_of_their_own(ledger: Ledger):
    failing = Charge(Budget(beta=CAPS.beta * 2, rho=CAPS.rho / 100))
    with pytest.raises(BudgetError, match="beta: asked"):
        ledger.reserve(ChargeRequest("wages", "r", "p", {"a": failing}))


def test_rules_are_not_mixed(ledger: Ledger):
    with pytest.raises(BudgetError, match=r"grant .* is concentrated.*plan spends alpha"):
        ledger.reserve(ChargeRequest("wages", "r", "p", {"a": Charge(Budget.of("1/10"))}))
    ledger.grant("health", PROMISE, **WHO_WHY)
    with pytest.raises(BudgetError, match=r"grant .* is basic.*plan spends rho"):
        ledger.reserve(ChargeRequest("health", "r", "p", MONTH))
    with pytest.raises(BudgetError, match="basic one cannot follow"):
        ledger.grant("wages", PROMISE, **WHO_WHY)
    with pytest.raises(ValueError, match="needs a beta"):
        ledger.grant("wages", Budget.of("2"), **WHO_WHY, composition="concentrated")
    assert ledger.spent("wages") == ledger.spent("health") == Budget()
    assert ledger.promised("wages") == PROMISE


def test_moving_to_concentrated_composition_opens_an_account_and_its_promise_adds(ledger: Ledger):
    ledger.grant("health", Budget.of("3", "1e-7"), **WHO_WHY)
    ledger.reserve(ChargeRequest("health", "old", "p", {"a": Charge(Budget.of("1"))}))
    ledger.grant("health", PROMISE, **WHO_WHY, composition="concentrated")
    assert ledger.account("health").composition == "concentrated"
    assert (ledger.granted("health"), ledger.spent("health")) == (CAPS, Budget())
    assert ledger.promised("health") == PROMISE + Budget.of("3", "1e-7")
    ledger.reserve(ChargeRequest("health", "new", "p", MONTH))
    with pytest.raises(BudgetError, match="plan spends alpha"):  # what was left is closed
        ledger.reserve(ChargeRequest("health", "late", "p", {"a": Charge(Budget.of("1"))}))
    assert not any("more was charged" in fault.what for fault in ledger.find_faults("health"))


def test_another_concentrated_grant_does_not_add_to_the_caps_of_the_first(ledger: Ledger):
    """Caps that grew in view of results would be no filter; the second account is one of its own."""
    ledger.reserve(ChargeRequest("wages", "r1", "p", {"a": Charge(CAPS * Fraction(1, 2))}))
    ledger.grant("wages", PROMISE, **WHO_WHY, composition="concentrated")
    assert ledger.remaining("wages") == CAPS
    with pytest.raises(BudgetError, match="rho: asked"):
        ledger.reserve(ChargeRequest("wages", "r2", "p", {"a": Charge(CAPS * Fraction(5, 4))}))
    ledger.reserve(ChargeRequest("wages", "r2", "p", {"a": Charge(CAPS)}))
    assert ledger.remaining("wages") == Budget()
    assert ledger.promised("wages") == PROMISE + PROMISE


def test_the_history_names_the_caps_and_the_accounts(ledger: Ledger):
    ledger.reserve(ChargeRequest("wages", "r1", "p", MONTH))
    grant, reserve = ledger.history("wages")
    assert (grant.budget, grant.caps) == (PROMISE, CAPS)
    assert (reserve.budget, reserve.account) == (MONTH["a"].budget, grant.account)


def test_an_account_that_was_overspent_by_hand_is_a_fault(ledger: Ledger):
    ledger.reserve(ChargeRequest("wages", "r1", "p", MONTH))
    with by_hand(ledger) as connection:
        connection.exec_driver_sql("UPDATE ledger_grant SET rho = '1/1000'")
    assert "more was charged" in ledger.find_faults("wages")[0].what


def test_a_budget_in_both_alpha_and_rho_is_refused(ledger: Ledger):
    both = replace(MONTH["a"].budget, alpha=Fraction(1, 100))
    with pytest.raises(BudgetError, match="plan spends alpha"):
        ledger.reserve(ChargeRequest("wages", "r", "p", {"a": Charge(both)}))


def a_run(number: int, scale: str = "4", series: str = "calls", part: str = "1/40") -> dict:
    event = LaplaceEvent(Fraction(1), Fraction(scale)).to_dict()
    return {"a": Charge(CAPS * Fraction(part), event, series, number)}


class TestSeries:
    def test_runs_are_charged_in_order_and_each_once(self, ledger: Ledger):
        with pytest.raises(BudgetError, match="of run 1 was not charged"):
            ledger.reserve(ChargeRequest("wages", "r2", "p", a_run(2)))
        for number in (1, 2):
            ledger.reserve(ChargeRequest("wages", f"r{number}", "p", a_run(number)))
        with pytest.raises(BudgetError, match="was charged as release 'r2'"):
            ledger.reserve(ChargeRequest("wages", "again", "p", a_run(2)))
        ledger.reserve(ChargeRequest("wages", "other", "p", a_run(1, series="visits")))
        assert ledger.spent("wages") == CAPS * Fraction(3, 40)

    def test_noise_may_widen_but_not_shrink(self, ledger: Ledger):
        ledger.reserve(ChargeRequest("wages", "r1", "p", a_run(1)))
        with pytest.raises(BudgetError, match="narrower noise than run 1"):
            ledger.reserve(ChargeRequest("wages", "r2", "p", a_run(2, scale="3")))
        ledger.reserve(ChargeRequest("wages", "r2", "p", a_run(2, scale="5")))

    def test_only_the_last_run_is_voided(self, ledger: Ledger):
        """The price of a run counts on those before."""
        for number in (1, 2):
            ledger.reserve(ChargeRequest("wages", f"r{number}", "p", a_run(number)))
        with pytest.raises(LedgerError, match="void the later runs first"):
            ledger.void("wages", "r1", "a", **WHO_WHY)
        for number in (2, 1):
            ledger.void("wages", f"r{number}", "a", **WHO_WHY)
        assert ledger.spent("wages") == Budget()

    def test_a_run_of_which_something_is_drawn_is_not_voided_in_part(self, ledger: Ledger):
        """The series could not go on without the other part."""
        both = a_run(1) | {"b": a_run(1)["a"]}
        ledger.reserve(ChargeRequest("wages", "r1", "p", both))
        ledger.commit("wages", "r1", "a", Noisy(np.array([1])))
        with pytest.raises(LedgerError, match="run the plan with the id 'r1' again"):
            ledger.void("wages", "r1", "b", **WHO_WHY)

    def test_runs_before_another_grant_do_not_count(self, ledger: Ledger):
        ledger.reserve(ChargeRequest("wages", "r1", "p", a_run(1)))
        ledger.grant("wages", PROMISE, **WHO_WHY, composition="concentrated")
        with pytest.raises(BudgetError, match="not charged to the same grant"):
            ledger.reserve(ChargeRequest("wages", "r2", "p", a_run(2)))
