"""What noise a budget buys, against the laws of the noise and the published calibrations."""

import math
from fractions import Fraction

import numpy as np
import pytest

from dpcore.accounting.budget import Budget
from dpcore.accounting.gaussian import gaussian_variance
from dpcore.accounting.zcdp import largest_rho
from dpcore.line.mechanism import affordable
from dpcore.mechanisms.gaussian import GaussianEvent
from dpcore.mechanisms.laplace import LaplaceEvent, laplace_scale

ONE = Fraction(1)
BUDGETS = [("1", "1e-6"), ("0.5", "1e-6"), ("1", "0.1"), ("0.01", "1e-9"), ("20", "1e-12")]


def hockey_stick(log_p: np.ndarray, log_q: np.ndarray, alpha: float) -> float:
    """The least beta for which two laws on the same points are (alpha, beta) apart."""
    return float(np.maximum(np.exp(log_p) - np.exp(alpha + log_q), 0).sum())


def discrete_gaussian_loss(variance: Fraction, shift: int, alpha: float) -> float:
    """The exact beta of discrete Gaussian noise on one number that neighbours move by ``shift``."""
    reach = math.ceil(40 * math.sqrt(variance)) + 10 * shift
    support = np.arange(-reach, reach + 1)
    weights = -(support**2) / (2 * float(variance))
    log_total = np.logaddexp.reduce(weights)
    shifted = -((support - shift) ** 2) / (2 * float(variance))
    return hockey_stick(weights - log_total, shifted - log_total, alpha)


def zcdp_beta(rho: float, alpha: float) -> float:
    """Canonne, Kamath & Steinke (2020), Corollary 13, by brute force over the orders."""
    orders = 1 + np.geomspace(1e-4, 1e8, 2_000_001)
    exponent = (orders - 1) * (orders * rho - alpha) + orders * np.log1p(-1 / orders)
    return math.exp((exponent - np.log(orders - 1)).min())


@pytest.mark.parametrize(
    ("alpha", "beta", "sigma", "surplus"),
    [
        ("1", "1e-6", 4.22468, 1.015),
        ("0.5", "1e-6", 8.05762, 1.005),
        ("1", "0.1", 1.08588, 1.20),
    ],
)
def test_gaussian_noise_is_a_little_more_than_the_continuous_optimum_and_never_less(
    alpha: str, beta: str, sigma: float, surplus: float
):
    bought = math.sqrt(gaussian_variance(ONE, Fraction(alpha), Fraction(beta)))
    assert sigma < bought < surplus * sigma
    fine = Fraction(2**48)  # a real vector on a lattice: the rounding costs nothing
    bought = math.sqrt(gaussian_variance(fine, Fraction(alpha), Fraction(beta)) / fine)
    assert sigma * (1 - 1e-5) < bought < sigma * (1 + 1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(("alpha", "beta"), BUDGETS)
def test_the_conversion_from_zcdp_is_the_least_over_all_orders_and_never_beaten(
    alpha: str, beta: str
):
    a, b = Fraction(alpha), Fraction(beta)
    rho = largest_rho(a, b)
    assert zcdp_beta(rho, float(a)) == pytest.approx(float(b), rel=1e-5)
    assert zcdp_beta(rho * 1.0001, float(a)) > float(b)
    for squared in (ONE, Fraction(6), Fraction(2**48 + 1, 7)):
        by_zcdp = squared / (2 * Fraction(rho))
        assert gaussian_variance(squared, a, b) <= by_zcdp * (1 + Fraction(1, 10**8))


@pytest.mark.parametrize(("alpha", "beta"), [*BUDGETS[:3], ("4", "0.001")])
@pytest.mark.parametrize("shift", [1, 3, 100])
def test_the_exact_loss_of_the_noise_that_is_bought_is_within_the_budget(
    alpha: str, beta: str, shift: int
):
    variance = gaussian_variance(Fraction(shift**2), Fraction(alpha), Fraction(beta))
    assert discrete_gaussian_loss(variance, shift, float(alpha)) <= float(beta)
    assert discrete_gaussian_loss(variance * Fraction(1, 2), shift, float(alpha)) > float(beta)


@pytest.mark.parametrize(("alpha", "beta"), [*BUDGETS, ("0.000001", "1e-100"), ("1", "0.999")])
def test_what_is_bought_is_affordable_and_a_little_less_noise_is_not(alpha: str, beta: str):
    share = Budget.of(alpha, beta)
    variance = gaussian_variance(Fraction(6), share.alpha, share.beta)
    assert affordable(GaussianEvent(Fraction(6), variance), share)
    if beta != "0.999":  # there rho stops at alpha
        less = variance * Fraction(9_999, 10_000)
        assert not affordable(GaussianEvent(Fraction(6), less), share)
    assert not affordable(GaussianEvent(Fraction(6), variance), Budget.of(alpha))

    scale = laplace_scale(Fraction(6), share.alpha)
    assert scale * share.alpha == 6
    assert affordable(LaplaceEvent(Fraction(6), scale), Budget.of(alpha))
    nearly = scale * (1 - Fraction(1, 10**30))
    assert not affordable(LaplaceEvent(Fraction(6), nearly), share)


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(2), Fraction(40)])
def test_discrete_laplace_noise_loses_exactly_its_sensitivity_over_its_scale(scale: Fraction):
    support = np.arange(-30, 31)
    for shift in (1, 2, 5):
        loss = (np.abs(support - shift) - np.abs(support)) / float(scale)
        assert loss.max() == pytest.approx(shift / float(scale))
        assert affordable(LaplaceEvent(Fraction(shift), scale), Budget(shift / scale))
        assert not affordable(LaplaceEvent(Fraction(shift), scale), Budget(shift / scale * ONE / 2))


@pytest.mark.parametrize(
    "event",
    [
        LaplaceEvent(ONE, Fraction(0)),
        LaplaceEvent(ONE, Fraction(-1)),
        LaplaceEvent(Fraction(0), Fraction(0)),
        GaussianEvent(ONE, Fraction(0)),
        GaussianEvent(ONE, Fraction(-1)),
        "an event that nobody has priced",
        None,
    ],
)
def test_an_event_without_a_price_is_never_affordable(event: object):
    assert not affordable(event, Budget.of("100", "0.5"))


def test_budgets_that_buy_nothing_are_refused():
    for alpha in (Fraction(0), Fraction(-1)):
        with pytest.raises(ValueError, match="alpha must be positive"):
            laplace_scale(ONE, alpha)
        with pytest.raises(ValueError, match="alpha must be positive"):
            gaussian_variance(ONE, alpha, Fraction("1e-6"))
    for beta in (Fraction(0), ONE, Fraction(2)):
        with pytest.raises(ValueError, match="beta between 0 and 1"):
            gaussian_variance(ONE, ONE, beta)
    for sensitivity in (Fraction(0), Fraction(-1)):
        with pytest.raises(ValueError, match="sensitivity must be positive"):
            gaussian_variance(sensitivity, ONE, Fraction("1e-6"))
