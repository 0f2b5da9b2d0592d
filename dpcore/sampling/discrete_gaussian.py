"""Discrete Gaussian noise: exact, at any scale.

    P(Z = z) prop. to exp(-z**2 / (2 * variance)),   any integer z

Adding independent such Z to an integer vector of L2 sensitivity s gives
s**2 / (2 * variance)-zero-concentrated differential privacy (Canonne, Kamath & Steinke 2020,
section 2).  ``variance`` is the parameter sigma**2 of the law.  The true variance is never larger;
from 4 on both are equal as floats.

Up to sigma = 32 a magnitude comes from one inversion table.  Beyond, the table is coarse and a
uniform draw refines it (as in Ducas, Durmus, Lepoint & Lyubashevsky 2013, section 6):

    |Z| = 2**j * q + r      q    half a discrete Gaussian with sigma / 2**j, from a table
                            r    uniform on {0, ..., 2**j - 1}, kept with probability
                                 exp(-r (2 * 2**j * q + r) / (2 * variance))

>>> from dpcore.sampling.source import SeededSource
>>> discrete_gaussian(Fraction(100), 8, SeededSource(3)).tolist()
[-1, -2, 3, 21, 21, 11, 15, -6]
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache, partial
from statistics import NormalDist

import numpy as np

from dpcore.arrays import Integers
from dpcore.sampling import _validate
from dpcore.sampling.bernoulli import bernoulli_exp
from dpcore.sampling.discrete_laplace import SMALLEST
from dpcore.sampling.enclosures import Bounds, divide_up, exp_bounds, shift_up
from dpcore.sampling.inversion import InversionTable
from dpcore.sampling.rejection import fill, with_signs, with_signs_but_one_zero
from dpcore.sampling.source import RandomSource

LARGEST_VARIANCE = 1 << 90
"""Sigma from 2**-45 to 2**45: a value beyond the range of int64 has probability below exp(-2**30)."""

_TABLE_SIGMA = 32
_TABLE_REACH = 8
"""The table holds 8 sigmas: a draw lies beyond it with probability below 2e-15."""


def discrete_gaussian(variance: Fraction | int, size: int, source: RandomSource) -> Integers:
    """Draw (size,) independent numbers, exactly: P(z) prop. to exp(-z**2 / (2 * variance)).

    ``variance`` is public: the parameter sigma**2, a rational from 2**-90 to 2**90.
    """
    variance = _validate.positive_rational("variance", variance, LARGEST_VARIANCE)
    size = _validate.whole_number("size", size)
    shift = _coarsening(variance)

    def attempt(trials: int) -> Integers:
        if shift == 0:
            return with_signs(_table(variance, True).draw(trials, source), source)
        return with_signs_but_one_zero(_large_half(variance, shift, trials, source), source)

    return fill(size, attempt)


def gaussian_stddev(variance: Fraction | int) -> float:
    """The exact standard deviation of discrete Gaussian noise, as a float, but at least ``SMALLEST``."""
    variance = _validate.positive_rational("variance", variance, LARGEST_VARIANCE)
    if variance >= 4:
        # Poisson summation: the relative difference is of the order of exp(-2 pi**2 variance).
        return math.sqrt(variance)
    z = np.arange(1, 40)
    weights = np.exp(-(z**2) / (2 * float(variance)))
    squared = 2 * float(weights @ z**2) / (1 + 2 * float(weights.sum()))
    return max(math.sqrt(squared), SMALLEST)


def gaussian_quantile(variance: Fraction | int, level: float) -> int:
    """The smallest integer t with P(|Z| <= t) >= level, for 0 < level < 1.

    In floating point: t may be off by one where P(|Z| <= t) equals the level to about 12 digits.
    """
    variance = _validate.positive_rational("variance", variance, LARGEST_VARIANCE)
    level = _validate.probability("level", level)
    sigma = math.sqrt(variance)
    if sigma > 1000:
        # With b = t + 1/2, P(|Z| <= t) is P(|X| <= b) for the continuous law with density f, plus
        # b f(b) / (12 sigma**2) (midpoint rule).  Increasing b by b / (24 sigma**2) has this effect.
        b = -sigma * (1 - 1 / (24 * sigma**2)) * NormalDist().inv_cdf((1 - level) / 2)
        return max(0, math.ceil(b - 0.5))
    # Beyond 40 sigma a weight is zero as a float.
    z = np.arange(math.ceil(40 * sigma) + 2)
    weights = np.exp(-(z**2) / (2 * float(variance)))
    weights[1:] *= 2
    # Summed from the far end, so that small tails keep their digits.
    at_least = np.cumsum(weights[::-1])[::-1]
    return int(np.argmax(at_least[1:] <= (1 - level) * at_least[0]))


def _coarsening(variance: Fraction) -> int:
    """The smallest shift with  sigma / 2**shift <= 32."""
    # A shift by one bit divides the variance by four.
    return -(-(math.ceil(variance / _TABLE_SIGMA**2) - 1).bit_length() // 2)


def _large_half(variance: Fraction, shift: int, trials: int, source: RandomSource) -> Integers:
    """Draw k >= 0 with weights exp(-k**2 / (2 * variance)): the accepted ones of ``trials`` draws.

    With k = m q + r and m = 2**shift, k**2 = (m q)**2 + r (2 m q + r).  The first term is the coarse
    half Gaussian; the second gives the probability to keep a uniform r.
    """
    coarse = _table(variance / (1 << 2 * shift), False).draw(trials, source)
    # The low bits of a word are r, the others decide whether it is kept: one word is enough for both.
    words = source.words(trials)
    low = (words & np.uint64((1 << shift) - 1)).astype(np.int64)
    other = (coarse << (shift + 1)) | low
    # k**2 may exceed int64, but not a float.  Two conversions, two products and 1 / (2 * variance)
    # are rounded, each by at most 2**-53: together by less than 2**-50.
    kept = bernoulli_exp(
        low.astype(np.float64) * other * float(1 / (2 * variance)),
        lambda i: int(low[i]) * int(other[i]) / (2 * variance),
        words >> np.uint64(shift),
        64 - shift,
        source,
    )
    return ((coarse << shift) | low)[kept]


@lru_cache(maxsize=32)
def _table(variance: Fraction, folded: bool) -> InversionTable:
    """The table of the discrete Gaussian for k >= 0 or, if ``folded``, of |Z|: k > 0 counts twice."""
    return InversionTable(
        partial(_cuts, variance, folded), length=math.ceil(_TABLE_REACH * math.sqrt(variance)) + 1
    )


def _cuts(variance: Fraction, folded: bool, bits: int) -> Iterator[Bounds]:
    """Enclosures of  2**bits * P(X < k),  k = 1, 2, ..., as ratios of enclosed sums of weights.

    From one weight to the next, w_k = w_(k-1) * d_k and d_(k+1) = d_k * exp(-1 / variance), where
    d_1 = exp(-1 / (2 * variance)).  The sum ends where the lower bound of a weight is zero; the
    terms left out then sum to at most the next weight / (1 - d).
    """
    working = bits + 48
    one = 1 << working
    d_lower, d_upper = exp_bounds(1 / (2 * variance), working)
    factor_lower, factor_upper = exp_bounds(1 / variance, working)
    w_lower, w_upper = one, one
    sum_lower, sum_upper = one, one
    sums = [(one, one)]
    multiplicity = 2 if folded else 1
    while w_lower:
        w_lower = w_lower * d_lower >> working
        w_upper = shift_up(w_upper * d_upper, working)
        d_lower = d_lower * factor_lower >> working
        d_upper = shift_up(d_upper * factor_upper, working)
        sum_lower += multiplicity * w_lower
        sum_upper += multiplicity * w_upper
        sums.append((sum_lower, sum_upper))
    total_lower = sum_lower
    total_upper = sum_upper + multiplicity * divide_up(w_upper * d_upper, one - d_upper)

    for lower, upper in sums:
        yield (lower << bits) // total_upper, min(divide_up(upper << bits, total_lower), 1 << bits)
    while True:
        # Further cuts lie between the last one and 1; more bits bring more weights.
        yield (sum_lower << bits) // total_upper, 1 << bits
