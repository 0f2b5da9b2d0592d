"""Calibration of continuous Gaussian noise, and what the discrete Gaussian inherits from it."""

import math
from bisect import bisect_left
from decimal import Decimal
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from dpcore.accounting.analytic import (
    ROUNDINGS,
    Inherited,
    analytic_gaussian_scale,
    covers_rounded,
    gaussian_beta,
    rounding,
)

ONE = Fraction(1)


def profile(mu: mpmath.mpf, alpha: mpmath.mpf) -> mpmath.mpf:
    """The least beta of continuous Gaussian noise, with 400 digits."""
    return mpmath.ncdf(mu / 2 - alpha / mu) - mpmath.exp(alpha) * mpmath.ncdf(-mu / 2 - alpha / mu)


@pytest.mark.parametrize(
    ("alpha", "beta"), [(1e-3, 1e-30), (0.1, 1e-9), (1, 0.5), (7, 1e-6), (50, 1e-6), (900, 1e-12)]
)
def test_the_analytic_scale_is_the_least_one(alpha: float, beta: float):
    with mpmath.workdps(400):
        scale = mpmath.mpf(analytic_gaussian_scale(alpha, beta))
        assert profile(1 / (scale * (1 + mpmath.mpf("1e-9"))), mpmath.mpf(alpha)) <= beta
        assert profile(1 / (scale * (1 - mpmath.mpf("1e-9"))), mpmath.mpf(alpha)) >= beta


@pytest.mark.parametrize(("alpha", "beta"), [(0, 0.1), (-1, 0.1), (1, 0), (1, 1), (1, -0.1)])
def test_budgets_that_buy_no_gaussian_noise_are_refused(alpha, beta):
    with pytest.raises(ValueError, match="alpha must be positive and beta between 0 and 1"):
        analytic_gaussian_scale(alpha, beta)


@pytest.mark.parametrize("alpha", ["0.000001", "0.5", "3", "40", "900"])
@pytest.mark.parametrize("mu", ["1/50", "1/4", "1", "7"])
def test_the_certified_beta_is_just_above_the_true_one(mu: str, alpha: str):
    with mpmath.workdps(1500):
        m = mpmath.mpf(Fraction(mu).numerator) / Fraction(mu).denominator
        true = profile(m, mpmath.mpf(alpha))
        bound = gaussian_beta(Fraction(mu) ** 2, Decimal(alpha), 40)
        assert (
            true <= mpmath.mpf(str(bound)) <= true * (1 + mpmath.mpf("1e-30")) + mpmath.mpf("1e-39")
        )


def test_so_little_noise_that_digits_run_out_is_priced_at_everything():
    assert gaussian_beta(Fraction(10**12), Decimal(1), 40) == 1


@pytest.mark.parametrize("part", ROUNDINGS[:4])
def test_rounding_costs_no_more_than_is_counted(part: Fraction):
    """The normalising sum of the rounding law, directly, where it is largest and smallest."""
    k = np.arange(-60, 61)
    sums = [np.exp(-((k - x) ** 2) / (2 * float(part))).sum() for x in np.linspace(0, 1, 201)]
    assert math.log(max(sums) / min(sums)) <= rounding(Inherited(ONE), part)


@pytest.mark.parametrize("cells", [1, 2])
@pytest.mark.parametrize(("alpha", "beta"), [("1", "0.01"), ("0.3", "0.001"), ("2", "0.0001")])
def test_the_exact_profile_of_discrete_noise_is_within_what_was_certified(
    alpha: str, beta: str, cells: int
):
    """One cell by one, or two by one each (a record that moves): the loss is linear in the noise."""
    squared = Fraction(cells)
    grid = [Fraction(i, 50) for i in range(20, 6000)]
    share = Fraction(alpha), Fraction(beta), Inherited(squared)
    place = bisect_left(grid, True, key=lambda v: covers_rounded(squared, v, *share))
    variance = grid[place]
    support = np.arange(-400, 401)
    law = np.exp(-(support**2) / (2 * float(variance)))
    law /= law.sum()
    total = law if cells == 1 else np.convolve(law, law)
    reach = 400 * cells
    losses = (2 * np.arange(-reach, reach + 1) + cells) / (2 * float(variance))
    true = float((total * np.maximum(1 - np.exp(float(Fraction(alpha)) - losses), 0)).sum())
    assert 0.3 * float(Fraction(beta)) < true <= float(Fraction(beta))


def test_no_variance_below_the_smallest_rounding_is_certified():
    assert not covers_rounded(ONE, ROUNDINGS[0], Fraction(900), Fraction(1, 2), Inherited(ONE))
