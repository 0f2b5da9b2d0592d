"""The exact standard deviation and the quantiles of a weighted sum of independent noises.

A number computed from several draws has the noise N = a_1 Z_1 + ... + a_t Z_t, with known weights a and
independent discrete Gaussian or Laplace noises Z.

**Lemma.**  Each Z has a continuous X of the same kind and scale within 1 of it: |Z - X| <= 1 in some
joint law.  So P(|N| <= q + |a_1| + ... + |a_t|) >= P(|a_1 X_1 + ... + a_t X_t| <= q).

*Proof.*  Laplace: Z is the difference of two geometric numbers, each the whole part of an exponential
one, and X is the difference of these.  Gaussian, sigma >= 1: signs are independent of sizes, so it is
enough that P(|X| >= n) <= P(|Z| >= n) <= P(|X| >= n - 1) for n = 1, 2, ....  Let f(x) =
exp(-x^2/(2 sigma^2)); its sum over all whole numbers is sqrt(2 pi) sigma (1 + e) with 0 <= e <=
2.1 exp(-19 sigma^2) (Poisson summation).  As f falls, the sum over k >= n is at most its integral from
n - 1 up: the right side.  As f(k + x) <= f(k) exp(-x/sigma^2) for k >= 1, the sum is at least
1 + 1/(2 sigma^2) times the integral from n up, and 1/(2 sigma^2) > e: the left side.  QED

If the steps of a statistic are small compared with its noise, the coverage of such intervals is only
slightly higher than stated.

**Quantiles** of continuous sums X of standard deviation s: the normal law if all noises are Gaussian,
else from the characteristic function phi at u_j = pi j/L (Gil-Pelaez 1951; Abate & Whitt 1992),

    P(|X| <= q) = q/L + (2/pi) times the sum over j of sin(u_j q) phi(u_j)/j,      L = 50 s.

This includes the probability beyond 2 L - q, less than 1e-30.  As phi(u) <= 1/(1 + s^2 u^2/2), the
terms after the first 2^15 add up to less than 2e-7, which is subtracted.

>>> from fractions import Fraction
>>> noise = DiscreteLaplace(1, Fraction(1), Fraction(1000))
>>> round(half_width(np.array([1.0]), [noise], 0.9)), noise.half_width(0.9)
(2304, 2303.0)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from statistics import NormalDist

import numpy as np

from dpcore.arrays import Floats
from dpcore.mechanisms.gaussian import DiscreteGaussian
from dpcore.mechanisms.laplace import DiscreteLaplace

TERMS = 2**15
REACH = 50
LEFT_OUT = 2e-7

Noise = DiscreteGaussian | DiscreteLaplace
"""Integer noise, added to whole steps, with the same law in every cell."""


def stddev(weights: Floats, noises: Sequence[Noise]) -> float:
    """The standard deviation of the sum of independent noises with weights (t,): exact."""
    return float(np.linalg.norm(weights * [noise.stddev for noise in noises]))


def half_width(weights: Floats, noises: Sequence[Noise], level: float) -> float:
    """A half-width q with P(|N| <= q) >= ``level``, for 0 < level < 1, by the module's lemma.

    ``weights``: (t,), not all 0; ``noises``: t noises; Gaussian ones must have a variance of at least
    1.
    """
    if any(isinstance(noise, DiscreteGaussian) and noise.variance < 1 for noise in noises):
        raise ValueError("noises: Gaussian noise must have a variance of at least 1")
    normal, laplace = 0.0, []
    for weight, noise in zip(weights, noises, strict=True):
        if isinstance(noise, DiscreteGaussian):
            normal += weight**2 * float(noise.variance)
        else:
            laplace.append(weight * float(noise.scale))
    return _quantile(normal, tuple(laplace), level) + float(np.abs(weights).sum())


def half_widths_of_two(noise: Noise, weights: Floats, level: float) -> Floats:
    """Half-widths (k,) for Z_1 + a Z_2, two noises of the same law, for weights a >= 0 (k,).

    For continuous Laplace noises of scale 1, P(|X| > q) = (exp(-q) - a^2 exp(-q/a)) / (1 - a^2); it
    rises with a (Anderson 1955).  Close to a = 1 the formula loses digits, so such weights are rounded
    up a little.  For Gaussian noises of a variance below 1, each keeps within its own half-width.
    """
    if isinstance(noise, DiscreteGaussian) and noise.variance < 1:
        return np.asarray((1 + weights) * noise.half_width((1 + level) / 2))
    if isinstance(noise, DiscreteGaussian):
        return np.array([half_width(np.array([1.0, a]), [noise, noise], level) for a in weights])
    a = np.where(np.abs(weights - 1) < 1e-3, 1 + 1e-3, np.maximum(weights, 1e-9))
    low, high = np.zeros_like(a), (1 + a) * 2 * math.log(2 / (1 - level))
    for _ in range(60):
        q = (low + high) / 2
        beyond = (np.exp(-q) - a**2 * np.exp(-q / a)) / (1 - a**2)
        low, high = np.where(beyond > 1 - level, q, low), np.where(beyond > 1 - level, high, q)
    return np.asarray(high * float(noise.scale) + 1 + weights)


@lru_cache(maxsize=256)
def _quantile(normal: float, laplace: tuple[float, ...], level: float) -> float:
    """The q with P(|X| <= q) = ``level``, where X is a normal variable of variance ``normal`` plus
    Laplace variables of scales ``laplace``; slightly too large if it is found numerically."""
    if not any(laplace):
        return math.sqrt(normal) * NormalDist().inv_cdf((1 + level) / 2)
    reach = REACH * math.sqrt(normal + 2 * sum(scale**2 for scale in laplace))
    j = np.arange(1, TERMS + 1)
    u = np.pi * j / reach
    phi = np.exp(-normal * u**2 / 2)
    for scale in laplace:
        phi /= 1 + (scale * u) ** 2

    def excess(q: float) -> float:
        return q / reach + float(np.sin(u * q) @ (phi / j)) * 2 / np.pi - LEFT_OUT - level

    from scipy.optimize import brentq  # slow to import

    return float(brentq(excess, 0.0, reach))
