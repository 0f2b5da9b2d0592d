"""Fifty digits: prices are compared in decimals, so that no rounding makes noise look affordable."""

from __future__ import annotations

import decimal
import math
from decimal import Decimal
from fractions import Fraction

DIGITS = decimal.Context(prec=50)
MARGIN = 1 + Decimal("1e-40")
"""More than the rounding of a few operations."""


SURPLUS = (Fraction(1, 10**9), Fraction(1, 10**6), Fraction(1, 10**4))
"""What is added, relatively, to a price that was found in floating point, until it is certified."""


def decimal_of(value: Fraction) -> Decimal:
    """A rational with fifty digits, or with as many more as the present context has."""
    with decimal.localcontext(prec=max(DIGITS.prec, decimal.getcontext().prec)):
        return Decimal(value.numerator) / Decimal(value.denominator)


def round_up(value: Fraction) -> Fraction:
    """The next rational above with twelve significant decimal digits: short to print and store."""
    return math.ceil(value / _quantum(value)) * _quantum(value)


def round_down(value: Fraction) -> Fraction:
    """The next rational below with twelve significant decimal digits."""
    return math.floor(value / _quantum(value)) * _quantum(value)


def _quantum(value: Fraction) -> Fraction:
    return Fraction(10) ** (math.floor(math.log10(value)) - 11)
