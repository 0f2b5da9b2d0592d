"""The best answer to a noisy count: the Bayes estimate for a public prior.

Geometric noise followed by the best answer is the best of all alpha-DP mechanisms for a count, for
every prior and loss at once (Ghosh, Roughgarden & Sundararajan 2012, Theorem 1.2).  The best answer
depends on the noisy count z alone:

    posterior of j given z           prior_j exp(-|z - j|/scale)
    answer                           its median (absolute loss), rounded mean (squared), mode (zero-one)
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from scipy.special import gammaln, xlog1py, xlogy

CountLoss = Literal["absolute", "squared", "zero-one"]

_REACH = 45.0
"""Counts farther than this many scales from the noisy count have a weight below exp(-45)."""

LARGEST_WINDOW = 2**22
"""The most counts in a posterior."""


def best_answer(z: int, n: int, scale: float, loss: str, proportion: float | None) -> int:
    """The answer in {0, ..., n} with the least expected loss, given the noisy count z.

    The prior is uniform, or binomial(n, ``proportion``).  Raises ``ValueError`` if the posterior would
    have more than LARGEST_WINDOW counts.
    """
    # Beyond an end of the range the posterior is the same as at the end.
    z = min(max(z, 0), n)
    first, last = window(z, n, scale, proportion)
    counts = np.arange(first, last + 1)
    weights = -np.abs(counts - z) / scale
    if proportion is not None:
        # The logarithm of the binomial chances without log n!; scipy.stats would load slowly.
        weights += xlogy(counts, proportion) + xlog1py(n - counts, -proportion)
        weights -= gammaln(counts + 1) + gammaln(n - counts + 1)
    chances = np.exp(weights - weights.max())
    if loss == "zero-one":
        return int(counts[np.argmax(chances)])
    if loss == "squared":
        return round(float(chances @ counts / chances.sum()))
    cumulative = np.cumsum(chances)
    # Half of the mass is enough, up to rounding: ties go to the lower count.
    return int(counts[np.searchsorted(cumulative, cumulative[-1] * (0.5 - 1e-12))])


def window(z: int, n: int, scale: float, proportion: float | None) -> tuple[int, int]:
    """The first and the last count whose posterior weight is not negligible."""
    reach = int(np.ceil(_REACH * scale)) if _REACH * scale < n else n
    # Most of the weight of a binomial prior may lie far from the noisy count.
    first, last = (max(0, z - reach), min(n, z + reach)) if proportion is None else (0, n)
    if last - first >= LARGEST_WINDOW:
        raise ValueError(
            "prior: too many counts are likely; request more alpha, or use a uniform prior"
        )
    return first, last
