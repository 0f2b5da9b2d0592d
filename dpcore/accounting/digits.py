"""Fifty digits: prices are compared in decimals, so that no rounding makes noise look affordable."""

from __future__ import annotations

import decimal
from decimal import Decimal
from fractions import Fraction

DIGITS = decimal.Context(prec=50)
MARGIN = 1 + Decimal("1e-40")
"""More than the rounding of a few operations."""


def decimal_of(value: Fraction) -> Decimal:
    """A rational with fifty digits."""
    with decimal.localcontext(DIGITS):
        return Decimal(value.numerator) / Decimal(value.denominator)
