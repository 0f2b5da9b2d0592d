"""What each analyst may spend: inside the grant, by the same ledger, and by nobody else."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from fractions import Fraction

import pytest

from dpcore.accounting.budget import Budget
from dpcore.accounting.concentrated import caps
from dpcore.errors import BudgetError, InputError
from tasks.ledger import Action, Charge, ChargeRequest, Ledger
from tests.tasks.bundle.damage import by_hand
from tests.tasks.ledger.conftest import refused

WHO_WHY = {"who": "A. Officer", "why": "a thesis"}
QUARTER = {"a": Charge(Budget.of("1/4", "1e-7"))}
HALF = Fraction(1, 2)
ANALYST, OTHER = "B. Analyst", "C. Analyst"


@pytest.fixture
def ledger(url) -> Ledger:
    ledger = Ledger(url)
    ledger.grant("visits", Budget.of(8, "8e-6"), **WHO_WHY)
    return ledger


def left(ledger: Ledger, analyst: str) -> Budget:
    return ledger.allowances("visits")[analyst].left


class TestAmounts:
    def test_allowances_add_up_and_take_their_part_of_the_grant_s_beta(self, ledger):
        ledger.allow("visits", ANALYST, Budget.of("1/2"), **WHO_WHY)
        ledger.allow("visits", ANALYST, Budget.of("1/2", "1e-6"), **WHO_WHY)
        assert left(ledger, ANALYST) == Budget.of(1, "1.5e-6")

    def test_each_analyst_spends_an_own_one_and_all_spend_the_same_part(self, ledger):
        for analyst in (ANALYST, OTHER):
            ledger.allow("visits", analyst, Budget.of(3), **WHO_WHY)
        three, two = ({"a": Charge(Budget.of(alpha))} for alpha in (3, 2))
        ledger.reserve(ChargeRequest("visits", "r1", "p", three, HALF, ANALYST))
        request = ChargeRequest("visits", "r2", "p", QUARTER, HALF, ANALYST)
        refused(ledger, request, BudgetError, r"left 0 of 3 allowed to B\. Analyst")
        request = ChargeRequest("visits", "r2", "p", two, HALF, OTHER)
        refused(ledger, request, BudgetError, "left 1 of 4 opened to requests")
        ledger.reserve(ChargeRequest("visits", "r2", "p", QUARTER, HALF, OTHER))
        assert left(ledger, OTHER).alpha == Fraction(11, 4)
        assert ledger.spent("visits").alpha == Fraction(13, 4)

    def test_a_retry_is_not_charged_again_and_a_void_gives_back(self, ledger):
        ledger.allow("visits", ANALYST, Budget.of("1/4"), **WHO_WHY)
        request = ChargeRequest("visits", "r1", "p", QUARTER, HALF, ANALYST)
        assert ledger.reserve(request) == ["a"]
        assert ledger.reserve(request) == []
        assert left(ledger, ANALYST).alpha == 0
        ledger.void("visits", "r1", "a", **WHO_WHY)
        assert left(ledger, ANALYST).alpha == Fraction(1, 4)

    def test_the_grant_covers_whatever_was_allowed(self, ledger):
        ledger.allow("visits", ANALYST, Budget.of(2), **WHO_WHY)
        ledger.reserve(ChargeRequest("visits", "own", "p", {"a": Charge(Budget.of("7.9"))}))
        with pytest.raises(BudgetError, match=r"left 0\.1 of 8 granted"):
            ledger.reserve(ChargeRequest("visits", "r1", "p", QUARTER, HALF, ANALYST))

    def test_nobody_can_be_allowed_more_than_was_granted(self, ledger):
        ledger.allow("visits", ANALYST, Budget.of(7), **WHO_WHY)
        with pytest.raises(BudgetError, match="cannot be allowed more"):
            ledger.allow("visits", ANALYST, Budget.of(2), **WHO_WHY)
        with pytest.raises(BudgetError, match="has no grant"):
            ledger.allow("nothing", ANALYST, Budget.of(1), **WHO_WHY)
        assert left(ledger, ANALYST).alpha == 7

    def test_a_concentrated_grant_has_allowances_in_rho_and_ends_those_before(self, ledger):
        ledger.allow("visits", ANALYST, Budget.of(1), **WHO_WHY)
        ledger.grant("visits", Budget.of(8, "1e-6"), **WHO_WHY, composition="concentrated")
        assert left(ledger, ANALYST) == Budget()
        rho = caps("concentrated", Budget.of(1, "1e-6")).rho
        charge = {"a": Charge(Budget(rho=rho))}
        with pytest.raises(BudgetError, match="allowed to"):
            ledger.reserve(ChargeRequest("visits", "r1", "p", charge, HALF, ANALYST))
        ledger.allow("visits", ANALYST, Budget.of(1), **WHO_WHY)
        ledger.reserve(ChargeRequest("visits", "r1", "p", charge, HALF, ANALYST))
        assert left(ledger, ANALYST).rho == 0
        ledger.allow("visits", ANALYST, Budget.of(1), **WHO_WHY)
        assert left(ledger, ANALYST).rho == rho
        assert ledger.account("visits").caps.covers(left(ledger, ANALYST))

    def test_more_than_was_allowed_is_a_fault(self, ledger):
        ledger.allow("visits", ANALYST, Budget.of("1/4"), **WHO_WHY)
        ledger.reserve(ChargeRequest("visits", "r1", "p", QUARTER, HALF, ANALYST))
        with by_hand(ledger) as connection:
            connection.exec_driver_sql("UPDATE ledger_charge SET alpha = '1'")
        assert "more was charged to B. Analyst" in ledger.find_faults("visits")[0].what


class TestWhoAsks:
    def test_without_allowances_requests_need_none_and_afterwards_each_does(self, ledger):
        ledger.reserve(ChargeRequest("visits", "r1", "p", QUARTER, HALF, ANALYST))
        ledger.allow("visits", ANALYST, Budget.of(1), **WHO_WHY)
        assert left(ledger, ANALYST).alpha == 1  # what anybody might have asked under this name
        for name in ("", OTHER, "b. analyst"):
            with pytest.raises(BudgetError, match="has no allowance"):
                ledger.reserve(ChargeRequest("visits", "r2", "p", QUARTER, HALF, name))
        # The agency asks itself for nothing.
        ledger.reserve(ChargeRequest("visits", "own", "p", QUARTER))

    def test_only_the_newest_token_of_an_analyst_opens_the_allowance(self, ledger):
        old = ledger.allow("visits", ANALYST, Budget.of(1), **WHO_WHY)
        new = ledger.allow("visits", ANALYST, Budget(), **WHO_WHY)
        other = ledger.allow("visits", OTHER, Budget.of(1), **WHO_WHY)
        allowance = ledger.allowance("visits", ANALYST)
        allowance.require(new)
        assert allowance.left.alpha == 1
        for token in (old, other, "", allowance.key):
            with pytest.raises(InputError, match="not the analyst's newest token"):
                allowance.require(token)

    def test_the_ledger_holds_no_token(self, ledger, url, tmp_path):
        token = ledger.allow("visits", ANALYST, Budget.of(1), **WHO_WHY)
        found = ledger.allowances("visits")[ANALYST]
        assert token not in repr((found, ledger.history("visits")))
        assert found.key not in repr(found)
        if url.startswith("sqlite"):
            assert token.encode() not in (tmp_path / url.rpartition("/")[2]).read_bytes()

    @pytest.mark.parametrize(
        "name",
        ["", " ", "two\nlines", " B. Analyst", "=1+1", "B.\u00a0Analyst", "\u202eB", "x" * 201],
    )
    def test_a_name_that_cannot_be_published_is_refused(self, ledger, name):
        with pytest.raises(InputError):
            ledger.allow("visits", name, Budget.of(1), **WHO_WHY)
        assert ledger.allowances("visits") == {}

    def test_a_name_that_looks_like_another_is_refused(self, ledger):
        ledger.allow("visits", ANALYST, Budget.of(1), **WHO_WHY)
        with pytest.raises(InputError, match="look alike"):
            ledger.allow("visits", "\u0412. Analyst", Budget.of(1), **WHO_WHY)

    def test_history_says_who_allowed_whom_how_much(self, ledger):
        ledger.allow("visits", ANALYST, Budget.of(1), **WHO_WHY)
        (line,) = [each for each in ledger.history("visits") if each.action is Action.ALLOW]
        assert (line.who, line.why, line.budget.alpha) == (
            "A. Officer",
            "B. Analyst: a thesis",
            1,
        )


@pytest.mark.slow
def test_forty_at_the_same_time_spend_no_more_than_either_was_allowed(ledger, url):
    ledger.allow("visits", ANALYST, Budget.of(1), **WHO_WHY)
    ledger.allow("visits", OTHER, Budget.of("0.6"), **WHO_WHY)

    def ask(n: int) -> None:
        analyst = (ANALYST, OTHER)[n % 2]
        with suppress(BudgetError):
            Ledger(url).reserve(ChargeRequest("visits", f"r{n}", "p", QUARTER, HALF, analyst))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(ask, range(40)))
    assert (left(ledger, ANALYST).alpha, left(ledger, OTHER).alpha) == (0, Fraction(1, 10))
    assert ledger.spent("visits").alpha == Fraction(3, 2)
