"""A lower bound on alpha from counts; it is valid for every sample size.

(alpha, beta)-differential privacy means P(S) <= e^alpha P'(S) + beta for every outcome S of the
output and any two neighbouring tables.  If S was chosen before the counted draws were made,

    alpha  >=  ln( (lower limit of P(S) - beta) / upper limit of P'(S) )

except with the probability that one of the two Clopper-Pearson limits fails, which is at most
``error`` when each gets half of it.  Nothing is asymptotic.

500 hits in 1,000 draws against 184 in 1,000 are typical of Laplace noise at alpha = ln(500/184) = 1.

>>> round(float(loss_lower_bound(500, 1000, 184, 1000, error=0.05)), 2)
0.81

With a small beta this bound is weak for Gaussian noise, whose loss is large only in outputs too rare to
be drawn.  But two normal laws whose means differ by mu standard deviations satisfy

    Phi^-1(P(S)) - Phi^-1(P'(S)) <= mu            (Dong, Roth & Su 2022, definition 2.6)

for every S, also a frequent one, so the same limits give a lower bound on mu.

>>> round(float(mu_lower_bound(600, 1000, 400, 1000, error=0.05)), 2)
0.35
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from dpcore.arrays import Floats


def probability_lower(hits: ArrayLike, draws: ArrayLike, error: float) -> Floats:
    """Clopper-Pearson: a lower confidence bound for the probability; it fails with chance ``error``.

    ``hits``, ``draws``: counts of the same shape.  The bound is 0 without hits.
    """
    hits, draws = np.asarray(hits, dtype=float), np.asarray(draws, dtype=float)
    # Without hits the function is undefined, and the bound is 0.
    limit = special.betaincinv(np.maximum(hits, 1.0), draws - np.maximum(hits, 1.0) + 1.0, error)
    return np.asarray(np.where(hits > 0, limit, 0.0))


def probability_upper(hits: ArrayLike, draws: ArrayLike, error: float) -> Floats:
    """Clopper-Pearson: an upper confidence bound for the probability; it fails with chance ``error``."""
    hits, draws = np.asarray(hits, dtype=float), np.asarray(draws, dtype=float)
    return np.asarray(1.0 - probability_lower(draws - hits, draws, error))


def loss_lower_bound(
    hits: ArrayLike,
    draws: ArrayLike,
    other_hits: ArrayLike,
    other_draws: ArrayLike,
    *,
    beta: float = 0.0,
    error: float,
) -> Floats:
    """A lower confidence bound for alpha; it fails with chance ``error``, and may be minus infinity.

    The outcome occurred in ``hits`` of ``draws`` draws from the table where it is likelier, and in
    ``other_hits`` of ``other_draws`` draws from the neighbouring table.  It must not be chosen on these
    draws; if k outcomes are tried on them, each gets a k-th of the error.
    """
    low = probability_lower(hits, draws, error / 2) - beta
    high = probability_upper(other_hits, other_draws, error / 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        bound = np.log(np.maximum(low, 0.0)) - np.log(high)
    return np.asarray(bound)


def loss_estimate(
    hits: ArrayLike, draws: ArrayLike, other_hits: ArrayLike, other_draws: ArrayLike, beta: float
) -> Floats:
    """ln((share of hits - beta) / other share of hits): the estimate without its uncertainty."""
    low = np.asarray(hits, dtype=float) / np.asarray(draws, dtype=float) - beta
    high = np.asarray(other_hits, dtype=float) / np.asarray(other_draws, dtype=float)
    with np.errstate(divide="ignore", invalid="ignore"):
        estimate = np.log(np.maximum(low, 0.0)) - np.log(high)
    return np.asarray(estimate)


def mu_lower_bound(
    hits: ArrayLike,
    draws: ArrayLike,
    other_hits: ArrayLike,
    other_draws: ArrayLike,
    *,
    apart: float = 0.0,
    error: float,
) -> Floats:
    """A lower confidence bound for mu, from the same counts; it fails with chance ``error``.

    ``apart``: the log-ratio by which the law may differ from a rounded normal law
    (``dpcore.accounting.analytic``).
    """
    low = probability_lower(hits, draws, error / 2) * np.exp(-apart)
    high = np.minimum(1.0, probability_upper(other_hits, other_draws, error / 2) * np.exp(apart))
    with np.errstate(invalid="ignore"):
        return np.asarray(np.nan_to_num(special.ndtri(low) - special.ndtri(high), nan=-np.inf))
