"""Estimates for the periods of a series from its published runs, with exact errors.

Runs 1..t published y = W x + z (``domain.series``): x_s are the counts of period s, W the public table
of weights, z independent noise of known law.  Five sums over periods are estimated for each period t:

    period           x_t
    to-date          x_1 + ... + x_t
    change           x_t - x_(t-1)
    change-on-year   x_t - x_(t-12)                   with 12 periods in a year
    year             x_(t-11) + ... + x_t

An estimate of c x is c W^-1 y, and its noise is c W^-1 z: a sum of the noises with public weights
(``post.combined_noise``).  It is the only linear estimate without bias, as W can be inverted.  W^-1 is
triangular: an estimate for period t uses only runs 1..t, so later runs never revise it, and sums and
changes of published estimates agree with each other up to rounding of floating-point numbers.

>>> from fractions import Fraction
>>> from dpcore.mechanisms.laplace import DiscreteLaplace
>>> from dpcore.domain.series import square_root
>>> factor, noise = square_root(3), DiscreteLaplace(1, Fraction(1), Fraction(1024))
>>> runs = np.array([[4 * 1024], [2 * 1024], [1024]])  # y = 4, 2, 1
>>> estimate(factor, [noise] * 3, runs, "to-date").values  # 1 + 2/2 + 3/8 * 4
array([3.5])
>>> estimate(factor, [noise] * 3, runs, "change-on-year") is None
True
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular

from dpcore.arrays import Floats, Integers
from dpcore.domain.series import STEPS, Factor
from dpcore.post.combined_noise import Noise, half_width, stddev
from dpcore.post.tables.bounded import bounded_interval

YEAR = 12
"""Periods in a year, unless a series says otherwise."""

QUANTITIES = {
    "period": "count of the period",
    "to-date": "total of all periods to date",
    "change": "change from the period before",
    "change-on-year": "change from the same period a year before",
    "year": "total of the periods of the last year",
}
"""The quantities that are estimated, and their names in a sentence."""


@dataclass(frozen=True, eq=False)
class PeriodEstimates:
    """Public estimates in records (cells,), the standard deviation of their noise, equal in all cells,
    and both ends of intervals for the exact numbers."""

    values: Floats
    standard_error: float
    lower: Floats
    upper: Floats


def estimate(
    factor: Factor,
    noises: Sequence[Noise],
    runs: Integers,
    quantity: str,
    year: int = YEAR,
    level: float = 0.9,
) -> PeriodEstimates | None:
    """The estimate of one of ``QUANTITIES`` for period t, from runs 1..t; None if it is not defined
    yet.

    ``runs``: (t, cells) noisy statistics in steps; ``noises``: the law of each run's noise, in steps.
    Each interval contains its exact number with a probability of at least ``level``, which is hardly
    exceeded if the noise is much larger than a step.  Intervals of counts have no negative ends.
    """
    if len(noises) != len(runs):
        raise ValueError(f"noises: must be as many as runs, {len(runs)}, not {len(noises)}")
    periods = counted(quantity, len(runs), year)
    if periods is None:
        return None
    weights = combination(factor, periods)
    values = weights @ runs / STEPS
    both, one = (half_width(weights, noises, p) / STEPS for p in (level, 2 * level - 1))
    if quantity.startswith("change"):
        ends = values - both, values + both
    else:
        ends = bounded_interval(values, both, one, np.inf)
    return PeriodEstimates(values, stddev(weights, noises) / STEPS, *ends)


def combination(factor: Factor, periods: Floats) -> Floats:
    """The weights (t,) of runs 1..t in the estimate of a weighted sum (t,) of periods 1..t."""
    table = factor.matrix(len(periods))
    return np.asarray(solve_triangular(table, periods, trans="T", lower=True))


def counted(quantity: str, now: int, year: int = YEAR) -> Floats | None:
    """How often (now,) a quantity counts each of the periods 1..now; None if it is not defined yet."""
    if quantity not in QUANTITIES:
        raise ValueError(f"quantity: must be one of {', '.join(QUANTITIES)}, not {quantity!r}")
    often = np.zeros(now)
    if quantity == "to-date":
        often[:] = 1
    elif quantity == "year":
        often[-year:] = 1
    else:
        often[-1] = 1
    needed = {"change": 2, "change-on-year": year + 1, "year": year}.get(quantity, 1)
    if now < needed:
        return None
    if quantity.startswith("change"):
        often[now - needed] = -1
    return often
