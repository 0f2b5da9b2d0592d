"""The best answer to a noisy count: what a Bayesian with a public prior would say.

Geometric noise followed by the best answer is the best of all alpha-DP mechanisms for a count, for
every prior and loss at once (Ghosh, Roughgarden & Sundararajan 2012, Theorem 1.2).  What is best
depends on the noisy count alone:

    posterior of j, having seen z    prior_j exp(-|z - j|/scale)
    answer                           its median (absolute loss), rounded mean (squared), mode (zero-one)
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_REACH = 45.0
"""Scales beyond which a count has a weight below exp(-45)."""

LARGEST_WINDOW = 2**22
"""The most counts that are weighed."""


def geometric_table(n: int, alpha: float) -> Floats:
    """(n+1, n+1) chances of noisy count z for count j, noise beyond 0 or n moved to the end.

    Nothing is lost by moving: all z <= 0 have the same posterior, and all z >= n.
    """
    j, z = np.arange(n + 1)[:, None], np.arange(n + 1)[None, :]
    a = np.exp(-alpha)
    table = (1 - a) / (1 + a) * a ** np.abs(j - z)
    table[:, 0] = a ** j[:, 0] / (1 + a)
    table[:, n] = a ** (n - j[:, 0]) / (1 + a)
    if n == 0:
        table[:] = 1.0
    return np.asarray(table)


def best_answer(z: int, n: int, scale: float, loss: str, proportion: float | None) -> int:
    """The answer in {0, ..., n} that a Bayesian gives to the noisy count z.

    The prior is uniform, or binomial(n, ``proportion``).  Raises ``ValueError`` where more than
    LARGEST_WINDOW counts would have to be weighed.
    """
    z = min(max(z, 0), n)
    first, last = window(z, n, scale, proportion)
    counts = np.arange(first, last + 1)
    weights = -np.abs(counts - z) / scale
    if proportion is not None:
        from scipy import stats  # slow to import, and a plan is explained without

        weights += stats.binom.logpmf(counts, n, proportion)
    chances = np.exp(weights - weights.max())
    if loss == "zero-one":
        return int(counts[np.argmax(chances)])
    if loss == "squared":
        return round(float(chances @ counts / chances.sum()))
    cumulative = np.cumsum(chances)
    # Half of the mass, but for rounding, is enough: ties go to the lower count.
    return int(counts[np.searchsorted(cumulative, cumulative[-1] * (0.5 - 1e-12))])


def window(z: int, n: int, scale: float, proportion: float | None) -> tuple[int, int]:
    """The counts, first and last, outside of which the posterior is nothing."""
    reach = int(np.ceil(_REACH * scale)) if _REACH * scale < n else n
    first, last = (max(0, z - reach), min(n, z + reach)) if proportion is None else (0, n)
    if last - first >= LARGEST_WINDOW:
        raise ValueError(
            "prior: too many counts to weigh; ask for more alpha, or for a uniform prior"
        )
    return first, last
