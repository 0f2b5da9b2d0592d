"""Decimal arithmetic with fifty digits: no rounding error makes a price look affordable."""

from __future__ import annotations

import decimal
import math
from decimal import Decimal
from fractions import Fraction

DIGITS = decimal.Context(prec=50)
MARGIN = 1 + Decimal("1e-40")
"""A relative margin that exceeds the rounding error of a few operations."""


SURPLUS = (Fraction(1, 10**9), Fraction(1, 10**6), Fraction(1, 10**4))
"""Relative step by which a price found in floating point is raised until it is certified."""


def decimal_of(value: Fraction) -> Decimal:
    """A rational as a decimal with fifty digits, or more if the current context has more."""
    with decimal.localcontext(prec=max(DIGITS.prec, decimal.getcontext().prec)):
        return Decimal(value.numerator) / Decimal(value.denominator)


def round_up(value: Fraction) -> Fraction:
    """A rational rounded up to twelve significant decimal digits."""
    return math.ceil(value / _quantum(value)) * _quantum(value)


def round_down(value: Fraction) -> Fraction:
    """A rational rounded down to twelve significant decimal digits."""
    return math.floor(value / _quantum(value)) * _quantum(value)


def _quantum(value: Fraction) -> Fraction:
    return Fraction(10) ** (math.floor(math.log10(value)) - 11)
