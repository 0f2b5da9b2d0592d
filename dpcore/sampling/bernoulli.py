"""Arrays of coins: heads with probability exactly exp(-x), for any rational x >= 0.

This is the acceptance step of rejection samplers.  The comparison ``u < exp(-x)`` is made in
floating point.  The bound on its error uses only the IEEE 754 rules for + - *, so the quality of a
platform's exponential function does not matter.  Where u is further from the computed probability
than this bound, the answer is certain; otherwise (about once in 2**35 coins) the coin is decided in
integer arithmetic, with as many digits as it needs.

>>> from dpcore.sampling.source import SeededSource
>>> source = SeededSource(7)
>>> x = [Fraction(1, 2), Fraction(3), Fraction(0)]
>>> heads = bernoulli_exp(np.array([0.5, 3.0, 0.0]), x.__getitem__, source.words(3), 64, source)
>>> heads.tolist()
[True, False, True]
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache, partial

import numpy as np
from numpy.typing import NDArray

from dpcore.arrays import Booleans, Floats
from dpcore.sampling.enclosures import LazyUniform, exp_bounds, shift_up
from dpcore.sampling.source import RandomSource

_STEPS = 64
_LARGEST = 44
_EXP_ERROR = 2.0**-36


def bernoulli_exp(
    exponents: Floats,
    exact_exponent: Callable[[int], Fraction],
    digits: NDArray[np.uint64],
    bits: int,
    source: RandomSource,
) -> Booleans:
    """Draw (n,) independent coins; coin i shows heads (True) with probability exactly exp(-x_i).

    ``exponents``: (n,) floats, with relative error at most 2**-50 from x_i >= 0.
    ``exact_exponent``: returns x_i, given i; called for the coins that floating point cannot decide.
    ``digits``: (n,) the first ``bits`` <= 64 binary digits of the uniform that decides coin i.  The
    caller draws them, and may use the other bits of the same word.
    """
    # The error of a probability, plus rounding (2**-53) and undrawn digits of a uniform.
    margin = _EXP_ERROR + 2.0**-52 + 2.0**-bits
    uniforms = digits * 2.0**-bits
    heads = uniforms < 1 - margin - exponents  # 1 - x <= exp(-x): most coins need no exponential
    rest = np.flatnonzero(~heads)
    excess = uniforms[rest] - _exp_minus(exponents[rest])
    heads[rest] = excess < 0
    for i in rest[np.abs(excess) <= margin]:
        uniform = LazyUniform(int(digits[i]), bits, source)
        heads[i] = uniform.below(partial(exp_bounds, exact_exponent(int(i))))
    return heads


def _exp_minus(x: Floats) -> Floats:
    """exp(-x) to within 2**-36, for an x with relative error at most 2**-50.

    exp(-x) = exp(-k/64) exp(-t) with 0 <= t < 1/64, where k = floor(64 x).  The errors add up to
    less than 2**-36:

        x itself             less than 2**-51: x exp(-x) <= 1/e, times the relative 2**-50
        x cut at 44          less than exp(-44) < 2**-63
        k and t              none: 64 x only moves the exponent, and x - k/64 is exact (Sterbenz)
        series of exp(-t)    alternating, so less than its next term, t**5 / 120 < 2**-36.9
        table, arithmetic    fewer than 20 roundings of 2**-53 of numbers of at most 1
    """
    x = np.minimum(x, _LARGEST)
    k = (x * _STEPS).astype(np.intp)
    t = x - k * (1 / _STEPS)
    series = 1 - t * (1 - t * (1 / 2) * (1 - t * (1 / 3) * (1 - t * (1 / 4))))
    result: Floats = _exp_table()[k] * series
    return result


@lru_cache(maxsize=1)
def _exp_table() -> Floats:
    """exp(-k/64) for k = 0, ..., 44 * 64, each within 2**-52."""
    bits = 128
    lower, upper = 1 << bits, 1 << bits
    step_lower, step_upper = exp_bounds(Fraction(1, _STEPS), bits)
    table = []
    for _ in range(_LARGEST * _STEPS + 1):
        table.append(lower / (1 << bits))  # Python rounds a quotient of integers correctly
        assert upper - lower < 1 << (bits - 54)
        lower, upper = lower * step_lower >> bits, shift_up(upper * step_upper, bits)
    return np.array(table)
