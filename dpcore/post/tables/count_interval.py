"""90% intervals around published counts that are neither unbiased nor normal, such as fitted counts.

Small counts of a fit are far more accurate than the unbiased estimate, and a simulation of noise and fit
shows how far they lie from the exact ones.  By test inversion (Neyman 1937) the interval contains every
exact count t for which the published count is not among the outermost 5% on either side,

    t + w(t) low(t) <= count <= t + w(t) high(t),

with low and high the 5% and 95% quantiles of simulated errors of cells of that size, and w(t) >= 1 the
ratio of actual to simulated distances of published counts of that size from the measurements.

A simulation starts from fitted tables, which the same fit reproduces better than the exact tables.
Three rules correct this; ``python -m benchmarks.coverage --strata`` measures the resulting coverage:

* the interval contains count -+ 1.645 root mean squared errors;
* if the estimate is more than half a standard deviation of the noise above the count, or the count is
  that far above zero, the upper end is at least the upper end of the estimate's interval; the lower
  end likewise;
* a count above two standard deviations, and every count of a release with too few cells for a
  simulation, has the interval of the estimate, whose coverage does not depend on the fit.

>>> accepted = Accepted.of(np.zeros(400), np.r_[np.zeros(300), np.ones(100)], np.ones_like)
>>> ends = np.array([0.0, 16.0, 20.0]), np.array([8.0, 48.0, 52.0])
>>> counts, errors, estimates = np.array([0, 32, 9]), np.array([2, 4, 2]), np.array([-8, 32, 36])
>>> many = [np.tile(each, 40) for each in (counts, errors, estimates, *ends)]
>>> found = count_interval(*many[:3], 10.0, (many[3], many[4]), accepted)
>>> [each[:3].round(1).tolist() for each in found]
[[0.0, 16.0, 0.0], [3.3, 48.0, 52.0]]
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from dpcore.arrays import Floats, Integers

TAIL = 0.05
TWO_SIDED = NormalDist().inv_cdf(1 - TAIL)

APART, LARGE = 0.5, 2.0
"""Limits for the second and the third rule, in standard deviations of the noise."""

FEW = 100
"""With fewer cells, a simulation does not show the errors of counts by size."""

GRID = np.linspace(0.0, 12.0, 1201)
"""The exact counts that are tried, in standard deviations of the noise."""

POOL, POOLS = 200, 40
"""Quantiles are computed in pools of about 200 cells, in at most 40 pools."""


@dataclass(frozen=True, eq=False)
class Accepted:
    """For each exact count of ``GRID``, the smallest and largest published count that is likely.

    Both ascend, and are in standard deviations of the noise.
    """

    low: Floats
    high: Floats

    @classmethod
    def of(cls, exact: Floats, published: Floats, width: Callable[[Floats], Floats]) -> Accepted:
        """Computed from simulated cells (k,); ``width``: the factor on errors at counts (m,)."""
        empty = exact <= 0
        order = np.argsort(exact[~empty], kind="stable")
        pools = np.array_split(order, min(POOLS, max(1, len(order) // POOL)))
        cells = [np.flatnonzero(empty), *(np.flatnonzero(~empty)[pool] for pool in pools)]
        cells = [each for each in cells if len(each)]
        levels = np.array([exact[each].mean() for each in cells])
        errors = np.array(
            [np.quantile((published - exact)[each], (TAIL, 1 - TAIL)) for each in cells]
        )
        wide = width(levels)
        low, high = (np.interp(GRID, levels, wide * each) for each in errors.T)
        low, high = GRID + np.minimum(low, 0), GRID + np.maximum(high, 0)
        # Quantiles of pools vary by chance, but searchsorted needs numbers that ascend.
        return cls(np.maximum.accumulate(low), np.maximum.accumulate(high))

    def interval(self, counts: Floats) -> tuple[Floats, Floats]:
        """The ends (k,) of intervals for the exact counts, given published counts (k,)."""
        first = np.searchsorted(self.high, counts, side="left")
        last = np.searchsorted(self.low, counts, side="right") - 1
        lower, upper = (GRID[np.clip(each, 0, len(GRID) - 1)] for each in (first, last))
        return np.minimum(lower, counts), np.maximum(upper, counts)


def count_interval(
    counts: Integers,
    errors: Floats,
    estimates: Floats | Integers,
    stddevs: Floats | float,
    ends: tuple[Floats | Integers, Floats | Integers],
    accepted: Accepted,
) -> tuple[Floats, Floats]:
    """The lower and upper ends (k,) of intervals for the exact counts.

    ``errors``: root mean squared errors of the counts; ``estimates``: unbiased numbers with noise of
    these ``stddevs``; ``ends``: of their own intervals.
    """
    lower, upper = (end * stddevs for end in accepted.interval(counts / stddevs))
    lower = np.minimum(lower, counts - TWO_SIDED * errors)
    upper = np.maximum(upper, counts + TWO_SIDED * errors)
    apart, level = (estimates - counts) / stddevs, counts / stddevs
    some, large = level > APART, (level > LARGE) | (len(counts) < FEW)
    lower = np.where(some | (apart < -APART), np.minimum(lower, ends[0]), lower)
    upper = np.where(some | (apart > APART), np.maximum(upper, ends[1]), upper)
    lower = np.where(large, np.minimum(ends[0], counts), np.maximum(lower, 0))
    return lower, np.where(large, np.maximum(ends[1], counts), upper)
