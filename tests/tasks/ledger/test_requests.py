"""Grants in shared ledgers, one budget for one survey, and what requests may spend."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from fractions import Fraction

import pytest

from dpcore.accounting.budget import Budget
from dpcore.errors import BudgetError
from tasks.ledger import Action, Charge, ChargeRequest, Ledger
from tests.tasks.ledger.conftest import refused

WHO_WHY = {"who": "A. Officer", "why": "test"}
SHARE = {"a": Charge(Budget.of("1/4", "1e-7"))}
TENTH = Fraction(1, 10)


@pytest.fixture
def ledger(url) -> Ledger:
    ledger = Ledger(url)
    for dataset in ("visits", "visits-evil"):
        ledger.grant(dataset, Budget.of(20, "1e-5"), **WHO_WHY)
    return ledger


def test_the_first_use_of_a_dataset_grants_nothing_once_a_server_uses_the_ledger(url):
    ledger = Ledger(url)
    for _ in range(2):
        ledger.mark_served()
    assert Ledger(url).shared
    assert not Ledger(url).first_grant("visits", Budget.of(9), **WHO_WHY)
    with pytest.raises(BudgetError, match="dprelease ledger grant"):
        ledger.reserve(ChargeRequest("visits", "r", "p", SHARE))
    assert ledger.history() == []


class TestSurveys:
    def test_a_second_dataset_over_a_survey_is_refused_and_charges_nothing(self, ledger):
        ledger.reserve(ChargeRequest("visits", "r", "p", SHARE), sources=["survey"])
        with pytest.raises(BudgetError, match="belongs to the dataset 'visits'"):
            ledger.require_own("visits-evil", ["survey"])
        with pytest.raises(BudgetError, match="belongs to the dataset 'visits'"):
            ledger.reserve(ChargeRequest("visits-evil", "r", "p", SHARE), ["other", "survey"])
        assert ledger.spent("visits-evil") == Budget()
        assert ledger.sources() == {"survey": "visits"}

    def test_a_retry_may_not_read_another_dataset_s_survey(self, ledger):
        ledger.reserve(ChargeRequest("visits", "r", "p", SHARE), sources=["survey"])
        ledger.reserve(ChargeRequest("visits-evil", "r", "p", SHARE), sources=["its own"])
        with pytest.raises(BudgetError, match="belongs to the dataset"):
            ledger.reserve(ChargeRequest("visits-evil", "r", "p", SHARE), sources=["survey"])

    def test_a_dataset_may_have_several(self, ledger):
        for month in ("may", "june"):
            ledger.reserve(ChargeRequest("visits", month, "p", SHARE), sources=[month])
        assert ledger.sources() == {"may": "visits", "june": "visits"}

    def test_a_person_may_say_that_another_survey_took_its_place(self, ledger):
        ledger.reserve(ChargeRequest("visits", "r", "p", SHARE), sources=["survey"])
        for dataset in ("visits-evil", "visits"):
            ledger.assign(["survey"], dataset, **WHO_WHY)
            assert ledger.sources() == {"survey": dataset}
        assigned = [line for line in ledger.history() if line.action is Action.ASSIGN]
        assert [(line.dataset, line.who) for line in assigned] == [
            ("visits-evil", "A. Officer"),
            ("visits", "A. Officer"),
        ]
        with pytest.raises(BudgetError, match="belongs to the dataset 'visits'"):
            ledger.reserve(ChargeRequest("visits-evil", "r", "p", SHARE), sources=["survey"])
        with pytest.raises(BudgetError, match="has no grant"):
            ledger.assign(["survey"], "nothing", **WHO_WHY)

    def test_the_last_of_several_decisions_counts_though_no_run_came_between(self, ledger):
        for dataset in ("visits", "visits-evil", "visits"):
            ledger.assign(["survey"], dataset, **WHO_WHY)
            assert ledger.sources() == {"survey": dataset}

    def test_of_two_datasets_at_the_same_time_one_gets_it(self, ledger, url):
        def reserve(n: int) -> None:
            dataset = ("visits", "visits-evil")[n % 2]
            with suppress(BudgetError):
                Ledger(url).reserve(ChargeRequest(dataset, f"r{n}", "p", SHARE), sources=["survey"])

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(reserve, range(8)))
        spent = {name: ledger.spent(name).alpha for name in ledger.datasets()}
        assert sorted(spent.values()) == [0, 1]
        assert spent[ledger.sources()["survey"]] == 1


class TestRequests:
    @pytest.mark.slow
    def test_forty_at_the_same_time_spend_no_more_than_is_opened(self, ledger, url):
        def ask(n: int) -> None:
            with suppress(BudgetError):
                Ledger(url).reserve(ChargeRequest("visits", f"r{n}", "p", SHARE, TENTH))

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(ask, range(40)))
        assert ledger.spent("visits").alpha == 2  # a tenth of 20

    @pytest.mark.parametrize("share", [Budget.of("2.01"), Budget.of("1", "1.1e-6")])
    def test_each_coordinate_has_its_open_fraction(self, ledger, share):
        request = ChargeRequest("visits", "r", "p", {"a": Charge(share)}, TENTH)
        refused(ledger, request, BudgetError, "opened to requests")
        assert ledger.spent("visits") == Budget()

    def test_what_the_agency_releases_itself_does_not_count(self, ledger):
        ledger.reserve(ChargeRequest("visits", "own", "p", {"a": Charge(Budget.of(10))}))
        request = ChargeRequest("visits", "r1", "p", {"a": Charge(Budget.of(2))}, TENTH)
        assert ledger.reserve(request) == ["a"]
        assert ledger.reserve(request) == []
        with pytest.raises(BudgetError, match="left 0 of 2 opened to requests"):
            ledger.reserve(ChargeRequest("visits", "r2", "p", SHARE, TENTH))
        ledger.reserve(ChargeRequest("visits", "r2", "p", SHARE))

    def test_a_smaller_fraction_counts_what_was_requested_within_a_larger_one(self, ledger):
        ledger.reserve(ChargeRequest("visits", "r1", "p", {"a": Charge(Budget.of(4))}, 5 * TENTH))
        with pytest.raises(BudgetError, match="opened to requests"):
            ledger.reserve(ChargeRequest("visits", "r2", "p", SHARE, open_fraction=TENTH))
