"""From counts to a lower bound on alpha that holds for every sample size.

(alpha, beta)-differential privacy means P(S) <= e^alpha P'(S) + beta for every event S of the
output and any two neighbouring tables.  If S was chosen before the draws were made that count it,

    alpha  >=  ln( (lower limit of P(S) - beta) / upper limit of P'(S) )

except with the probability that one of the two Clopper-Pearson limits fails, which is at most
``error`` when each gets half of it.  Nothing is asymptotic (METHODS n).

500 hits of 1,000 draws against 184 of 1,000: Laplace noise at alpha = 1 would have ln(500/184) = 1.

>>> round(float(loss_lower_bound(500, 1000, 184, 1000, error=0.05)), 2)
0.81
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

Floats = NDArray[np.float64]


def probability_lower(hits: ArrayLike, draws: ArrayLike, error: float) -> Floats:
    """Clopper-Pearson: a number that the probability is not below, but with chance ``error``.

    ``hits``, ``draws``: counts of any one shape.  No hits give 0.
    """
    hits, draws = np.asarray(hits, dtype=float), np.asarray(draws, dtype=float)
    limit = special.betaincinv(np.maximum(hits, 1.0), draws - np.maximum(hits, 1.0) + 1.0, error)
    return np.asarray(np.where(hits > 0, limit, 0.0))


def probability_upper(hits: ArrayLike, draws: ArrayLike, error: float) -> Floats:
    """Clopper-Pearson: a number that the probability is not above, but with chance ``error``."""
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
    """A number that alpha is not below, but with chance ``error``; minus infinity says nothing.

    ``hits`` of ``draws`` from the table under which the event is likelier, ``other_hits`` of
    ``other_draws`` from its neighbour.  The event may not have been chosen on these draws; where k
    events are tried on them, each has a k-th of the error.
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
