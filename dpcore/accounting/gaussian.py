"""Discrete Gaussian noise: the least variance that a budget allows.

Two proofs are tried, and either is enough: zero-concentrated differential privacy (``zcdp``) and
rounding of the continuous noise (``analytic``).  The first is better for a variance of a few units, the
second for a large variance, where its standard deviation is 7 per cent smaller at beta = 1e-6 and 20 per
cent smaller at beta = 0.1.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

from dpcore.accounting.analytic import (
    ROUNDINGS,
    Inherited,
    analytic_gaussian_scale,
    covers_rounded,
    rounding,
)
from dpcore.accounting.digits import SURPLUS, round_up
from dpcore.accounting.zcdp import covers_rho, largest_rho


@lru_cache(maxsize=256)
def gaussian_variance(
    l2_sensitivity_squared: Fraction,
    alpha: Fraction,
    beta: Fraction,
    inherited: Inherited | None = None,
) -> Fraction:
    """The smallest variance, rounded up, that at least one proof shows to be (alpha, beta)-DP.

    ``inherited``: by default for integer vectors, in which at most as many coordinates differ as the
    squared sensitivity.
    """
    inherited = inherited or Inherited(l2_sensitivity_squared)
    if alpha <= 0:
        raise ValueError("alpha must be positive")
    if not 0 < beta < 1:
        raise ValueError("a Gaussian mechanism needs beta between 0 and 1")
    if l2_sensitivity_squared <= 0:
        raise ValueError("the sensitivity must be positive")
    # Candidates are found in floating point; the first that is certified has the least surplus.
    for margin in SURPLUS:
        for found in sorted(_candidates(l2_sensitivity_squared, alpha, beta, inherited)):
            variance = round_up(found * (1 + margin))
            if covers_gaussian(l2_sensitivity_squared, variance, alpha, beta, inherited):
                return variance
    raise ValueError(f"no Gaussian noise could be certified for alpha {alpha}, beta {beta}")


@lru_cache(maxsize=256)
def covers_gaussian(
    squared: Fraction,
    variance: Fraction,
    alpha: Fraction,
    beta: Fraction,
    inherited: Inherited,
) -> bool:
    """Whether at least one proof shows that noise of this variance is (alpha, beta)-DP.

    ``squared``: the squared L2 sensitivity.
    """
    if variance <= 0 or not 0 < beta < 1 or alpha <= 0:
        return False
    rho = squared / (2 * variance) + inherited.loss
    return covers_rho(rho, alpha, beta) or covers_rounded(squared, variance, alpha, beta, inherited)


def _candidates(
    squared: Fraction, alpha: Fraction, beta: Fraction, inherited: Inherited
) -> list[Fraction]:
    """The smallest variance by each proof, in floating point."""
    rho = Fraction(largest_rho(alpha, beta)) - inherited.loss
    found = [squared / (2 * rho)] if rho > 0 else []
    for part in ROUNDINGS:
        loss = rounding(inherited, part)
        if 2 * loss < min(float(alpha), 1.0):
            scale = analytic_gaussian_scale(float(alpha) - loss, float(beta) * math.exp(-loss))
            found.append(squared * Fraction(scale) ** 2 + part)
    return found
