"""Confidence intervals for exact counts if noisy counts are published only above a threshold.

If a noisy count Y = count + Z, Z discrete Laplace, is published only where Y > tau, it is too large on
average, because counts with negative noise are more often left out.  Given that it passed, Y has the
law of c + Z truncated at tau:

    P(Y = y | Y > tau) = P(Z = y - c) / P(Z > tau - c),        y > tau

For every c up to tau this is the same geometric law of the excess Y - tau - 1.  So a small excess
cannot distinguish such counts, and the interval reaches down to zero.

The interval is the set of all c for which the observed value is among the most likely 90% of values
(test inversion with acceptance regions of highest probability, as in Crow & Gardner 1959), with gaps
filled.  So it contains the exact count of a published cell with probability at least 90%, for every
exact count and not only on average over cells.

>>> import numpy as np
>>> lower, upper = passed_interval(4.0, 44, np.array([45, 60, 200]), 0.9)
>>> lower.tolist(), upper.tolist()
([0, 53, 191], [52, 69, 209])
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from dpcore.arrays import Booleans, Floats, Integers

FAR = 12.0
"""The threshold's influence on larger values is ignored beyond this many scales above it."""


def passed_interval(
    scale: float, threshold: int, values: Integers, level: float
) -> tuple[Integers, Integers]:
    """Lower and upper ends (k,) for the exact counts, given values (k,) above the threshold."""
    lowest = np.full(values.shape, threshold + 1)
    reach = math.ceil(-math.log((1 - level) / 2) * scale) + 2
    # Both ends of the accepted values ascend with the count, so the ends are found by bisection.
    upper = _largest(
        lambda count: count - _reach(scale, count - threshold - 1, level) <= values,
        values,
        values + reach,
    )
    lower = (
        _largest(
            lambda count: count + _reach(scale, count - threshold - 1, level) < values,
            lowest - 1,
            values,
        )
        + 1
    )
    below = values - lowest <= _reach_below(scale, level)
    return np.where(below, 0, lower), upper


def passed_error(scale: float, threshold: int, values: Integers) -> Floats:
    """Root mean squared errors (k,) of values above the threshold, given that they passed.

    The mean is over the posterior of the exact count for a uniform prior.  If a value is just above the
    threshold, the cell may well be empty.
    """
    ratio = math.exp(-1 / scale)
    far = math.ceil(FAR * scale) + 1
    excess, places = np.unique(np.minimum(values - threshold, far), return_inverse=True)
    step = max(1, int(scale / 8))
    above = np.arange(1, 2 * far, step)  # exact counts less the threshold, about 8 in a scale
    distances = np.abs(excess[:, None] - above)
    weights = step * ratio**distances / (1 + ratio - ratio**above)
    weight_below = ratio ** (excess - 1.0)  # equal for all counts up to the threshold
    squares_below = _sum_of_squares(excess + threshold) - _sum_of_squares(excess - 1)
    squares = np.sum(weights * distances**2, axis=1) + weight_below * squares_below
    mass = weights.sum(axis=1) + weight_below * (threshold + 1)
    return np.asarray(np.sqrt(squares / mass)[places])


def _sum_of_squares(last: Integers) -> Floats:
    """1 + 4 + 9 + ... + last^2."""
    return np.asarray(last * (last + 1.0) * (2.0 * last + 1) / 6)


def _reach(scale: float, room: Integers, level: float) -> Floats:
    """The half-width of the most likely values about a count.

    ``room``: the count minus the smallest value that can be published; below 0 it counts as 0.
    """
    log = -1 / scale  # the logarithm of the ratio, which may be too small for a float
    ratio = math.exp(log)
    seen = 1 - np.exp(log * (np.maximum(room, 0) + 1.0)) / (1 + ratio)
    two_sided = np.ceil(np.log((1 - level * seen) * (1 + ratio) / 2) / log - 1e-9) - 1
    one_sided = np.ceil(np.log((1 - level) * seen * (1 + ratio)) / log - 1e-9) - 1
    return np.asarray(np.maximum(np.where(two_sided <= room, two_sided, one_sided), 0))


def _reach_below(scale: float, level: float) -> float:
    """The quantile ``level`` of the excess over the threshold, for counts up to the threshold."""
    return max(math.ceil(-math.log(1 - level) * scale - 1e-9) - 1, 0)


def _largest(holds: Callable[[Integers], Booleans], low: Integers, high: Integers) -> Integers:
    """The largest whole number from ``low`` to ``high`` (k,) that meets a condition, by bisection.

    The condition must hold up to some number and not beyond; if it holds nowhere, the result is
    ``low``.
    """
    low, high = low.copy(), high.copy()
    while np.any(low < high):
        middle = low + (high - low + 1) // 2
        holding = holds(middle)
        low, high = np.where(holding, middle, low), np.where(holding, high, middle - 1)
    return low
