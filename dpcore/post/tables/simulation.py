"""The errors of post-processed counts, estimated by simulation (parametric bootstrap).

Counts that are made non-negative, whole and consistent have no simple law.  But every step that makes
them is public: treat the published counts as exact, add noise of the same law, process it in the same
way, and measure how far the result is from its start (Efron & Tibshirani 1993, section 6.5).  Cells
with about the same count have about the same errors, so errors are pooled: a table of many cells
needs few repetitions.

The noise comes from ``Mechanism.simulate`` and an ordinary generator, because it protects nobody.
"""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np

from dpcore.arrays import Floats, Integers
from dpcore.post.tables.simplex import round_to_total

POOL = 100
"""Errors are averaged over about this many cells of neighbouring counts."""

POOLS = 24
"""The most pools."""

LEAST_CELLS = 10
"""The fewest cells in a pool: the cells of smaller pools are near a level because of small errors."""

CERTAIN = NormalDist().inv_cdf(0.95)


def likely_counts(noisy: Integers, counts: Integers, stddev: float) -> Integers:
    """Whole counts (k,) with about the variance of the exact counts: the start of a simulation.

    ``counts`` (k,), computed from noisy counts (k,), vary more than the exact ones, because of the
    noise.  They are shrunken towards their mean to remove the noise variance, but only as far as it is
    certain: the mean of k squared Laplace noises has a relative error of sqrt(5 / k).  The total stays
    the same.
    """
    spread = float(noisy.var())
    left = max(0.0, 1 - stddev**2 / spread) if spread > 0 else 0.0
    kept = math.sqrt(min(1.0, left + CERTAIN * math.sqrt(5 / len(noisy))))
    mean = counts.mean()
    return round_to_total(np.maximum(mean + kept * (counts - mean), 0), int(counts.sum()))


def pooled_means(
    values: Integers | Floats, levels: Integers | Floats, at: Integers | Floats
) -> Floats:
    """Mean values at the levels ``at`` (m,), estimated from ``values`` and ``levels`` of the same
    shape.

    Values at neighbouring levels are pooled; those at level zero have a separate pool if a table has
    enough of them.  The means of the pools are interpolated.
    """
    most = min(POOLS, values.shape[-1] // LEAST_CELLS)
    tables = values.size // values.shape[-1]
    values, levels = values.ravel(), levels.ravel()
    zero = levels <= 0
    if zero.sum() < LEAST_CELLS * tables:
        zero[:] = False
    above, seen = levels[~zero], values[~zero]
    order = np.argsort(above, kind="stable")
    pools = np.array_split(order, max(1, min(most, len(above) // POOL)))
    if not len(above):
        return np.full(at.shape, values.mean())
    result = np.interp(
        at, [above[pool].mean() for pool in pools], [seen[pool].mean() for pool in pools]
    )
    return np.where(at <= 0, values[zero].mean(), result) if zero.any() else np.asarray(result)
