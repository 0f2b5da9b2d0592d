"""Privacy-loss distributions of a history, by the package dp-accounting (extra ``accounting``).

Each event is replaced by a pair of laws that dominates it, whose losses convolve under adaptive
composition (Zhu, Dong & Wang 2022):

    Gaussian noise        the continuous Gaussian that it inherits from (``analytic``); several are
                          joined to one, and squared ratios of sensitivity to deviation add up
    other (alpha, beta)   randomised response that reveals everything with chance beta

Losses are rounded up to a grid.  The convolution is in floating point, so the price is for reports, not
for charging.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from functools import reduce
from importlib.util import find_spec

from dpcore.accounting.budget import Budget
from dpcore.accounting.digits import round_up

_LARGEST_ALPHA = 700
"""The largest loss of a single event: e to this power is still a finite float."""

_FINEST, _COARSEST = 10**6, 10**5
"""The number of grid cells for the sum of all alphas."""


def installed() -> bool:
    """Whether the optional package is installed."""
    return find_spec("dp_accounting") is not None


def loss_distribution_alpha(
    mu_squared: Fraction, inherited: Fraction, others: Mapping[Budget, int], beta: Fraction
) -> Fraction | None:
    """An upper bound on alpha at ``beta``, up to floating-point error; None if there is none.

    ``mu_squared``: of the joint continuous Gaussian; ``inherited``: the sum that its discrete forms add
    to alpha and to ln beta; ``others``: the number of events for each (alpha, beta).
    """
    from dp_accounting.pld import common
    from dp_accounting.pld import privacy_loss_distribution as distributions

    if any(each.alpha > _LARGEST_ALPHA for each in others):
        return None
    loss, mu = float(inherited), math.sqrt(mu_squared)
    alphas = sum(float(each.alpha) * times for each, times in others.items())
    parts = min(max(1000 * sum(others.values()), _COARSEST), _FINEST)
    # The Gaussian loss has mean mu^2/2 and deviation mu: ten deviations are hardly ever exceeded.
    grid = (alphas + 10 * mu + mu * mu / 2) / parts
    factors = []
    if mu:
        gaussian = distributions.from_gaussian_mechanism(1 / mu, value_discretization_interval=grid)
        factors.append(gaussian)
    for each, times in others.items():
        pair = common.DifferentialPrivacyParameters(float(each.alpha), float(each.beta))
        factors.append(distributions.from_privacy_parameters(pair, grid).self_compose(times))
    composed = reduce(lambda one, other: one.compose(other), factors)
    found = composed.get_epsilon_for_delta(float(beta) * math.exp(-loss) * (1 - 1e-9)) + loss
    return round_up(Fraction(found * (1 + 1e-9) + 1e-12)) if math.isfinite(found) else None
