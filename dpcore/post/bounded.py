"""Intervals for a number that lies between bounds, from a noisy one that may not.

An interval of the noise alone, cut at zero, may be the point [0, 0]: the lower a noisy count fell by
chance, the surer it would make an empty cell.  Instead the noisy number is moved to the nearest
possible one, x, and the interval is all numbers that have such an x among their likely ones
(Mandelkern & Schultz 2000).  With w and v such that

    P(|noise| <= w) = 90%          P(noise <= v) = 90%

it is [x - w, x + w], but that near zero, where noise errs to one side alone, it begins at x - v, then
at x / 2 until that is x - w; near the upper bound likewise.  It is never a point, no longer than 2w, and
holds the exact number with probability 90%; up to 95% where that lies between v and w from a bound.

>>> import numpy as np
>>> bounded_interval(np.array([-15, 3, 18, 99.0]), 11.0, 8.0, 100.0)
(array([ 0.,  0.,  9., 88.]), array([ 11.,  14.,  29., 100.]))
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def bounded_interval(
    noisy: NDArray[np.int64] | Floats, both: Floats | float, one: Floats | float, top: float
) -> tuple[Floats, Floats]:
    """Lower and upper ends (k,) for numbers in [0, ``top``] behind noisy ones (k,), symmetric noise.

    ``both``: what the noise exceeds in size with probability 10% at most, ``one``: in one direction.
    """
    near: Floats = np.clip(noisy.astype(np.float64), 0.0, top)
    if np.max(both, initial=0.0) * 4 > top:  # the two ends are too near each other
        one = both
    lower = _lower(near, both, one)
    upper = near + both if top == np.inf else top - _lower(np.asarray(top - near), both, one)
    return lower, np.asarray(upper)


def _lower(near: Floats, both: Floats | float, one: Floats | float) -> Floats:
    lower = np.minimum(near - one, np.maximum(near / 2, near - both))
    return np.asarray(np.maximum(lower, 0.0))
