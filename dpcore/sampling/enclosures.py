"""Exact comparisons of a uniform random number with a real number, at any precision.

A sampler is exact when every comparison ``u < p`` of a uniform u in [0, 1) with a real number p has
the answer of exact real arithmetic.  Neither number has finitely many binary digits, so both are
computed on demand:

    p   as a function from a number of bits to two integers  lower <= 2**bits * p <= upper
    u   as the digits that have been drawn so far; more are drawn when a comparison needs them

All arithmetic is on Python integers, and every rounding is directed outwards, so an enclosure holds
by construction; guard digits only make it tight.

>>> exp_bounds(Fraction(1), 16)  # 2**16 / e = 24109.3...
(24109, 24110)
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from dpcore.sampling.source import RandomSource

Bounds = tuple[int, int]
Probability = Callable[[int], Bounds]


class LazyUniform:
    """A uniform number in [0, 1), drawn to as many binary digits as its comparisons need.

    ``digits``: the leading ``bits`` binary digits, as an integer; they are already random.
    All comparisons use the same number: later ones reuse the digits that earlier ones drew.
    """

    def __init__(self, digits: int, bits: int, source: RandomSource) -> None:
        self._digits = digits
        self._bits = bits
        self._source = source

    def below(self, probability: Probability) -> bool:
        """Whether the number is less than p; true with probability exactly p.

        The digits drawn so far say that  digits <= 2**bits * u < digits + 1.  While that interval
        overlaps the enclosure of p, 64 more digits are drawn.  They make a further overlap 2**64 times
        less likely, so the loop ends.
        """
        while True:
            lower, upper = probability(self._bits)
            if self._digits + 1 <= lower:
                return True
            if self._digits >= upper:
                return False
            self._digits = (self._digits << 64) | int(self._source.words(1)[0])
            self._bits += 64


def exp_bounds(exponent: Fraction, bits: int) -> Bounds:
    """Integers with ``lower <= 2**bits * exp(-exponent) <= upper``, for a rational exponent >= 0.

    The Taylor series of exp(y), y = exponent / 2**halvings <= 1/2, has positive terms that at least
    halve.  Its first terms, rounded down, are a lower bound; rounded up, with twice the first omitted
    term added, they are an upper bound.  Then come a reciprocal, and squarings that undo the halvings.
    """
    numerator, denominator = exponent.numerator, exponent.denominator
    if numerator > (bits + 1) * denominator:
        return 0, 1  # exp(-(bits + 1)) < 2**-bits
    halvings = (2 * numerator // denominator).bit_length()
    # Each squaring below doubles the relative error.
    working = bits + 2 * halvings + 16
    one = 1 << working
    y_lower = (numerator << working) // (denominator << halvings)
    y_upper = y_lower + 1

    low_sum, low_term = one, one
    high_sum, high_term = one, one
    order = 1
    # A term that is rounded up never falls below 1.
    while high_term > 1:
        low_term = (low_term * y_lower >> working) // order
        high_term = divide_up(high_term * y_upper, order << working)
        low_sum += low_term
        high_sum += high_term
        order += 1
    high_sum += 2 * high_term

    lower, upper = (one << working) // high_sum, divide_up(one << working, low_sum)
    for _ in range(halvings):
        lower, upper = lower * lower >> working, shift_up(upper * upper, working)
    return lower >> (working - bits), shift_up(upper, working - bits)


def divide_up(numerator: int, denominator: int) -> int:
    """The quotient, rounded up."""
    return -(-numerator // denominator)


def shift_up(value: int, bits: int) -> int:
    """``value / 2**bits``, rounded up."""
    return -(-value >> bits)
