"""Confidence intervals for a number between bounds, from a noisy number that may lie outside them.

An interval for the noise alone, cut at zero, may be the point [0, 0]: a very negative noisy count would
suggest certainty that the cell is empty.  Instead the noisy number is moved to the nearest possible
one, x, and the interval contains all numbers for which x is a likely value (Mandelkern & Schultz
2000).  With w and v such that

    P(|noise| <= w) = 90%          P(noise <= v) = 90%

it is [x - w, x + w], except near a bound, where only noise in one direction matters.  Near zero, as x
grows, the lower end is first x - v, then x / 2 until this equals x - w; near the upper bound likewise.
The interval is never a single point, is at most 2w long, and contains the exact number with probability
90%, or up to 95% if that number is between v and w away from a bound.

>>> import numpy as np
>>> bounded_interval(np.array([-15, 3, 18, 99.0]), 11.0, 8.0, 100.0)
(array([ 0.,  0.,  9., 88.]), array([ 11.,  14.,  29., 100.]))
"""

from __future__ import annotations

import numpy as np

from dpcore.arrays import Floats, Integers


def bounded_interval(
    noisy: Integers | Floats, both: Floats | float, one: Floats | float, top: float
) -> tuple[Floats, Floats]:
    """Lower and upper ends (k,) for numbers in [0, ``top``], given noisy ones (k,); symmetric noise.

    |noise| exceeds ``both`` (w), and noise exceeds ``one`` (v), with probability at most 10%.
    """
    near: Floats = np.clip(noisy.astype(np.float64), 0.0, top)
    # Where the corrections near both ends would overlap, there are none.
    one = np.where(np.multiply(both, 4) > top, both, one)
    lower = _lower(near, both, one)
    upper = near + both if top == np.inf else top - _lower(np.asarray(top - near), both, one)
    return lower, np.asarray(upper)


def _lower(near: Floats, both: Floats | float, one: Floats | float) -> Floats:
    lower = np.minimum(near - one, np.maximum(near / 2, near - both))
    return np.asarray(np.maximum(lower, 0.0))
