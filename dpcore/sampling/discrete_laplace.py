"""Discrete Laplace and geometric noise: exact, at any scale.

    P(Z = z) = (1 - a) / (1 + a) * a**|z|     discrete Laplace, any integer z;  a = exp(-1 / scale)
    P(G = k) = (1 - a) * a**k                 geometric, k = 0, 1, 2, ...

Adding Z to an integer query of L1 sensitivity s gives alpha-differential privacy when the scale is
s / alpha (Ghosh, Roughgarden & Sundararajan 2012).  For a large scale b its standard deviation is
nearly b * sqrt(2), as for the continuous Laplace law.

Up to scale 32 a magnitude comes from one inversion table.  Beyond, the table is coarse and a
uniform draw refines it:

    |Z| = 2**j * q + r      q    geometric of scale  scale / 2**j, from a table
                            r    uniform on {0, ..., 2**j - 1}, kept with probability
                                 exp(-r / scale)

>>> from dpcore.sampling.source import SeededSource
>>> discrete_laplace(Fraction(20), 8, SeededSource(2)).tolist()
[23, 34, 29, -38, 7, -28, -1, -14]
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache, partial

import numpy as np

from dpcore.arrays import Integers
from dpcore.sampling import _validate
from dpcore.sampling.bernoulli import bernoulli_exp
from dpcore.sampling.enclosures import Bounds, divide_up, exp_bounds, shift_up
from dpcore.sampling.inversion import InversionTable
from dpcore.sampling.rejection import fill, with_signs, with_signs_but_one_zero
from dpcore.sampling.source import RandomSource

SMALLEST = 1e-50
"""The smallest standard deviation stated, so that products of variances are floats above zero."""

LARGEST_SCALE = 1 << 45
"""Scales from 2**-45 to 2**45: a value beyond the range of int64 has probability below exp(-2**17)."""

_TABLE_SCALE = 32
_TABLE_REACH = 24
"""The table holds 24 scales: a draw lies beyond it with probability exp(-24)."""


def discrete_laplace(scale: Fraction | int, size: int, source: RandomSource) -> Integers:
    """Draw (size,) independent numbers, exactly: P(z) prop. to exp(-|z| / scale).

    ``scale`` is public: sensitivity / alpha, a rational from 2**-45 to 2**45.
    """
    scale = _validate.positive_rational("scale", scale, LARGEST_SCALE)
    size = _validate.whole_number("size", size)
    shift = _coarsening(scale)

    def attempt(trials: int) -> Integers:
        if shift == 0:
            return with_signs(_table(scale, True).draw(trials, source), source)
        return with_signs_but_one_zero(_large_geometric(scale, shift, trials, source), source)

    return fill(size, attempt)


def geometric(scale: Fraction | int, size: int, source: RandomSource) -> Integers:
    """Draw (size,) independent geometric numbers, exactly: P(k) = (1 - a) a**k, a = exp(-1 / scale).

    Discrete Laplace noise that has passed a threshold exceeds it by such a draw.
    ``scale`` is public: a rational from 2**-45 to 2**45.
    """
    scale = _validate.positive_rational("scale", scale, LARGEST_SCALE)
    size = _validate.whole_number("size", size)
    shift = _coarsening(scale)
    if shift == 0:
        return fill(size, lambda trials: _table(scale, False).draw(trials, source))
    return fill(size, lambda trials: _large_geometric(scale, shift, trials, source))


def laplace_stddev(scale: Fraction | int) -> float:
    """The standard deviation of discrete Laplace noise, sqrt(2 a) / (1 - a), at least ``SMALLEST``."""
    rate = 1 / float(_validate.positive_rational("scale", scale, LARGEST_SCALE))
    return max(math.sqrt(2 * math.exp(-rate)) / -math.expm1(-rate), SMALLEST)


def laplace_quantile(scale: Fraction | int, level: float) -> int:
    """The smallest integer t with P(|Z| <= t) = 1 - 2 a**(t + 1) / (1 + a) >= level, for 0 < level < 1.

    In floating point: t may be off by one where P(|Z| <= t) equals the level to about 12 digits.
    """
    scale = _validate.positive_rational("scale", scale, LARGEST_SCALE)
    level = _validate.probability("level", level)
    a = math.exp(-1 / scale)
    return max(0, math.ceil(-float(scale) * math.log((1 - level) * (1 + a) / 2)) - 1)


def _coarsening(scale: Fraction) -> int:
    """The smallest shift with  scale / 2**shift <= 32."""
    return (math.ceil(scale / _TABLE_SCALE) - 1).bit_length()


def _large_geometric(scale: Fraction, shift: int, trials: int, source: RandomSource) -> Integers:
    """Draw geometric numbers 2**shift * q + r: the accepted ones of ``trials`` draws, nearly all of
    them.

    P(q, r) is the product of exp(-2**shift * q / scale), the coarse geometric law, and exp(-r / scale),
    the probability to keep a uniform r.
    """
    coarse = _table(scale / (1 << shift), False).draw(trials, source)
    # The low bits of a word are r, the others decide whether it is kept: one word is enough for both.
    words = source.words(trials)
    low = (words & np.uint64((1 << shift) - 1)).astype(np.int64)
    # r < 2**40 is exact as a float; 1 / scale and the product are rounded once each.
    kept = bernoulli_exp(
        low.astype(np.float64) * float(1 / scale),
        lambda i: int(low[i]) / scale,
        words >> np.uint64(shift),
        64 - shift,
        source,
    )
    return ((coarse << shift) | low)[kept]


@lru_cache(maxsize=32)
def _table(scale: Fraction, folded: bool) -> InversionTable:
    """The table of the geometric law or, if ``folded``, of the magnitude of discrete Laplace noise."""
    return InversionTable(partial(_cuts, scale, folded), length=math.ceil(_TABLE_REACH * scale) + 1)


def _cuts(scale: Fraction, folded: bool, bits: int) -> Iterator[Bounds]:
    """Enclosures of  2**bits * P(X < k), k = 1, 2, ...

    P(X >= k) is a**k, or 2 * a**k / (1 + a) if ``folded``.
    """
    working = bits + 32
    one = 1 << working
    a_lower, a_upper = exp_bounds(1 / scale, working)
    # tail = P(X >= k), from k = 1 on
    if folded:
        # a / (1 + a) rises with a, so a bound of the tail uses the same bound of a in both places.
        tail_lower = 2 * (a_lower << working) // (one + a_lower)
        tail_upper = divide_up(2 * a_upper << working, one + a_upper)
    else:
        tail_lower, tail_upper = a_lower, a_upper
    while True:
        yield (one - tail_upper) >> 32, shift_up(one - tail_lower, 32)
        tail_lower = tail_lower * a_lower >> working
        tail_upper = shift_up(tail_upper * a_upper, working)
