"""Fieller's set for the quotient of two noisy numbers, of which the divisor may be zero.

A quotient R = N/W of normal numbers is not nearly normal where W is within a few errors of zero.  But
N - R W is normal for every R, so the set of all R with

    (N - R W)^2 <= z^2 (var N - 2 R cov(N, W) + R^2 var W)

contains the exact quotient, whatever it is, with the normal probability of z (Fieller 1954).  It is an
interval where W is more than z errors from zero.  Otherwise it is unbounded: all numbers, or all except
an interval.

>>> [tuple(round(end, 3) for end in piece) for piece in fieller(4.0, 1.0, 20.0, 1.0, 0.0, 1.645)]
[(0.117, 0.286)]
>>> [tuple(round(end, 3) for end in piece) for piece in fieller(4.0, 1.0, 0.5, 1.0, 0.0, 1.645)]
[(-inf, -3.279), (1.651, inf)]
"""

from __future__ import annotations

import math

import numpy as np

from dpcore.arrays import Floats

Pieces = tuple[tuple[float, float], ...]
"""Intervals, in order; ends may be infinite."""

EVERYTHING: Pieces = ((-math.inf, math.inf),)


def fieller(
    number: float,
    variance: float,
    divisor: float,
    of_divisor: float,
    covariance: float,
    z: float,
) -> Pieces:
    """The set {R: a R^2 - 2 b R + c <= 0}, from two numbers with these variances and covariance.

    It is never empty: it contains number / divisor.
    """
    a = divisor**2 - z**2 * of_divisor
    b = number * divisor - z**2 * covariance
    c = number**2 - z**2 * variance
    if a == 0:
        if b == 0:
            return EVERYTHING
        end = c / (2 * b)
        return ((end, math.inf),) if b > 0 else ((-math.inf, end),)
    root = math.sqrt(max(b**2 - a * c, 0.0))
    low, high = sorted(((b - root) / a, (b + root) / a))
    if a > 0:
        return ((low, high),)
    return ((-math.inf, low), (high, math.inf)) if b**2 > a * c else EVERYTHING


def bounded_fieller(
    number: Floats,
    variance: float,
    divisor: Floats,
    of_divisor: float,
    covariance: float,
    z: float,
) -> tuple[Floats, Floats]:
    """Both ends of this set for many quotients; NaN if it is no interval or the divisor is negative."""
    a = divisor**2 - z**2 * of_divisor
    b = number * divisor - z**2 * covariance
    c = number**2 - z**2 * variance
    with np.errstate(divide="ignore", invalid="ignore"):
        root = np.sqrt(np.maximum(b**2 - a * c, 0.0))
        known = (a > 0) & (divisor > 0)
        return np.where(known, (b - root) / a, np.nan), np.where(known, (b + root) / a, np.nan)
