"""What a list of events costs, by every accountant, against laws that are known exactly."""

from dataclasses import replace
from fractions import Fraction
from math import comb, exp

import numpy as np
import pytest

from dpcore.accounting.analytic import analytic_gaussian_scale, gaussian_beta
from dpcore.accounting.budget import Budget
from dpcore.accounting.digits import decimal_of
from dpcore.accounting.zcdp import covers_rho, least_alpha
from dpcore.line.history import BASIC, CONCENTRATED, LOSS_DISTRIBUTIONS, Charged, prices
from dpcore.line.mechanism import affordable
from dpcore.mechanisms.exponential import ExponentialEvent
from dpcore.mechanisms.gaussian import GaussianEvent
from dpcore.mechanisms.laplace import LaplaceEvent
from dpcore.mechanisms.random_laplace import RandomLaplaceEvent
from dpcore.mechanisms.stability import StabilityEvent
from tests.dpcore.releases.contract import CASES, LAWS

MILLIONTH = Fraction(1, 10**6)


def alphas(history: list[Charged], beta: Fraction = MILLIONTH) -> dict[str, Fraction]:
    return {price.accountant: price.budget.alpha for price in prices(history, beta)}


def laplace(alpha: str) -> Charged:
    return Charged(LaplaceEvent(Fraction(1), 1 / Fraction(alpha)), Budget.of(alpha))


def gaussian(rho: Fraction, budget: Budget) -> Charged:
    return Charged(GaussianEvent(Fraction(2), 1 / rho), budget)


def randomised_response_beta(each: float, times: int, alpha: float) -> float:
    """The exact beta of ``times`` randomised responses: binomial laws, summed."""
    truth, lie = 1 / (1 + exp(-each)), exp(-each) / (1 + exp(-each))
    lies = np.arange(times + 1)
    ways = np.array([comb(times, int(k)) for k in lies], dtype=float)
    losses = each * (times - 2 * lies)
    gained = -np.expm1(np.minimum(alpha - losses, 0))
    return float((ways * lie**lies * truth ** (times - lies) * gained).sum())


@pytest.mark.parametrize("name", LAWS)
def test_the_alpha_of_a_pure_event_is_what_its_share_must_cover(name: str):
    release = CASES[name].release
    event, share = release.mechanism.event, release.share
    alpha = event.pure_alpha
    if alpha is None:
        assert share.beta > 0
        return
    assert affordable(event, replace(share, alpha=alpha))
    assert not affordable(event, replace(share, alpha=alpha * (1 - Fraction(1, 10**12))))


@pytest.mark.slow
def test_a_hundred_gaussian_releases_cost_less_by_every_tighter_accountant():
    rho, times = Fraction(5, 1000), 100
    mu = float(2 * rho) ** 0.5
    low, high = 0.0, 10.0  # of one release at a hundredth of beta, by the analytic calibration
    for _ in range(60):
        middle = (low + high) / 2
        enough = analytic_gaussian_scale(middle, 1e-8) * mu <= 1
        low, high = (low, middle) if enough else (middle, high)
    each = Budget(Fraction(high).limit_denominator(10**9), MILLIONTH / times)
    found = alphas([gaussian(rho, each)] * times)
    assert set(found) == {LOSS_DISTRIBUTIONS, CONCENTRATED, BASIC}
    assert found[BASIC] == times * each.alpha

    total = rho * times
    assert covers_rho(total, found[CONCENTRATED], MILLIONTH)
    assert not covers_rho(total, found[CONCENTRATED] * Fraction(9999, 10000), MILLIONTH)

    def exact_beta(alpha: Fraction) -> float:
        return float(gaussian_beta(2 * total, decimal_of(alpha), 20))

    assert (
        exact_beta(found[LOSS_DISTRIBUTIONS])
        <= 1e-6
        < exact_beta(found[CONCENTRATED] * Fraction(9, 10))
    )
    assert exact_beta(found[LOSS_DISTRIBUTIONS] * Fraction(98, 100)) > 1e-6


@pytest.mark.parametrize(("each", "times"), [("0.1", 100), ("1", 10), ("0.01", 1000), ("3", 2)])
def test_no_accountant_undercuts_randomised_response_and_the_tightest_attains_it(each, times):
    found = alphas([laplace(each)] * times)
    for accountant in (CONCENTRATED, LOSS_DISTRIBUTIONS):
        assert randomised_response_beta(float(each), times, float(found[accountant])) <= 1e-6
    tightest = min(found.values())
    assert randomised_response_beta(float(each), times, 0.99 * float(tightest)) > 1e-6


@pytest.mark.slow
def test_a_mixed_history_is_composed_and_gamma_adds():
    history = [
        *10 * [laplace("0.1")],
        *10 * [gaussian(Fraction(5, 1000), Budget.of("0.6", "1e-8"))],
        Charged(ExponentialEvent(Fraction(1), Fraction(40), 2), Budget.of("0.1")),
        Charged(StabilityEvent(Fraction(2), Fraction(20), 400), Budget.of("0.1", "1e-8")),
        Charged(
            RandomLaplaceEvent(Fraction(2), Fraction(20), Fraction(1, 20)),
            Budget.of("0.1", 0, "0.05"),
        ),
    ]
    found = prices(history, MILLIONTH)
    ranked = [LOSS_DISTRIBUTIONS, BASIC]
    assert [price.accountant for price in found if price.accountant != CONCENTRATED] == ranked
    assert {(price.budget.beta, price.budget.gamma) for price in found} == {
        (MILLIONTH, Fraction(1, 20))
    }
    without = alphas([each for each in history if not isinstance(each.event, StabilityEvent)])
    added = alphas(history)[CONCENTRATED] - without[CONCENTRATED]
    assert 0 < added < Fraction(1, 10)  # its rho, and beta is a little less


def test_charges_in_rho_are_never_taken_for_free():
    share = Budget(beta=Fraction(1, 10**8), rho=Fraction(1, 200))
    thresholded = Charged(StabilityEvent(Fraction(2), Fraction(20), 400), share)
    found = alphas([thresholded] * 10)
    assert set(found) == {CONCENTRATED}  # it has no price in alpha, and no known loss
    assert float(found[CONCENTRATED]) == pytest.approx(
        float(least_alpha(Fraction(5, 100), MILLIONTH)), rel=0.02
    )


def test_at_a_beta_that_is_not_enough_an_accountant_has_no_price():
    thresholded = Charged(StabilityEvent(Fraction(2), Fraction(2), 20), Budget.of("1", "1e-4"))
    assert alphas([thresholded], MILLIONTH) == {}
    assert alphas([laplace("1")], Fraction(0)) == {BASIC: 1}
    assert alphas([], MILLIONTH) == {BASIC: 0}
    with pytest.raises(ValueError, match="beta must be"):
        prices([], Fraction(1))


def test_without_the_optional_package_the_others_answer(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("dpcore.line.history.installed", lambda: False)
    assert set(alphas([laplace("1")] * 3)) == {BASIC, CONCENTRATED}
