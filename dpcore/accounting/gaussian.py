"""Discrete Gaussian noise: the least variance that a budget allows.

Two proofs are tried, and either is enough: zero-concentrated differential privacy (``zcdp``) and
rounding of the continuous noise (``analytic``).  The first is the better one for a variance of a few
units, the second for a large one, where it needs a standard deviation 7 per cent smaller at
beta = 1e-6 and 20 per cent smaller at beta = 0.1.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

from dpcore.accounting.analytic import ROUNDINGS, analytic_gaussian_scale, covers_rounded, rounding
from dpcore.accounting.digits import round_up
from dpcore.accounting.zcdp import covers_rho, largest_rho

_MARGINS = (Fraction(1, 10**9), Fraction(1, 10**6), Fraction(1, 10**4))
"""What is added, relatively, to a variance that was found in floating point."""


def gaussian_variance(
    l2_sensitivity_squared: Fraction, alpha: Fraction, beta: Fraction
) -> Fraction:
    """The least discrete Gaussian variance that is (alpha, beta)-DP by either proof, rounded up."""
    if alpha <= 0:
        raise ValueError("alpha must be positive")
    if not 0 < beta < 1:
        raise ValueError("a Gaussian mechanism needs beta between 0 and 1")
    if l2_sensitivity_squared <= 0:
        raise ValueError("the sensitivity must be positive")
    for margin in _MARGINS:
        for found in sorted(_candidates(l2_sensitivity_squared, alpha, beta)):
            variance = round_up(found * (1 + margin))
            if covers_gaussian(l2_sensitivity_squared, variance, alpha, beta):
                return variance
    raise ValueError(f"no Gaussian noise could be certified for alpha {alpha}, beta {beta}")


@lru_cache(maxsize=256)
def covers_gaussian(squared: Fraction, variance: Fraction, alpha: Fraction, beta: Fraction) -> bool:
    """Whether noise of this variance is (alpha, beta)-DP, by either proof.

    ``squared``: the L2 sensitivity, squared.
    """
    if variance <= 0 or not 0 < beta < 1 or alpha <= 0:
        return False
    return covers_rho(squared / (2 * variance), alpha, beta) or covers_rounded(
        squared, variance, alpha, beta
    )


def _candidates(squared: Fraction, alpha: Fraction, beta: Fraction) -> list[Fraction]:
    """The least variance of each proof, to the precision of floats."""
    rho = largest_rho(alpha, beta)
    found = [squared / (2 * Fraction(rho))] if rho else []
    for part in ROUNDINGS:
        loss = rounding(squared, part)
        if 2 * loss < alpha:
            scale = analytic_gaussian_scale(float(alpha) - loss, float(beta) * math.exp(-loss))
            found.append(squared * Fraction(scale) ** 2 + part)
    return found
