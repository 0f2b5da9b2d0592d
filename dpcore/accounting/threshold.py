"""The chance that a noisy 1 is above a threshold: p = exp(-threshold/scale) / (1 + exp(-1/scale)).

It is the price in beta of a histogram of occupied cells (``mechanisms.stability``).  Exponentials are
enclosed by integer arithmetic.
"""

from __future__ import annotations

import math
from fractions import Fraction

from dpcore.sampling.enclosures import exp_bounds


def least_threshold(scale: Fraction, beta: Fraction) -> int:
    """The smallest threshold that a noisy 1 exceeds with a chance of at most beta."""
    if not 0 < beta < 1:
        raise ValueError("a histogram of occupied cells needs beta between 0 and 1")
    rate = 1 / float(scale)
    guess = math.ceil(-float(scale) * (math.log(beta) + math.log1p(math.exp(-rate))))
    # The rounding error of ``guess`` is below 2 at every scale that can be drawn.
    threshold = max(0, guess - 2)
    while passing_chance(scale, threshold, beta) > beta:
        threshold += 1
    return threshold


def passing_chance(scale: Fraction, threshold: int, near: Fraction = Fraction(0)) -> Fraction:
    """The chance p, rounded up by 2^-128 of ``near``, or by 2^-128 of p if ``near`` is 0 and p >
    2^-4096."""
    digits = -math.log2(near) if near > 0 else min(4096.0, 2 + 1.5 * float(threshold / scale))
    bits = 128 + math.ceil(digits)
    _, tail = exp_bounds(threshold / scale, bits)
    a, _ = exp_bounds(1 / scale, bits)
    return Fraction(tail, (1 << bits) + a)
