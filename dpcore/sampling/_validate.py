"""Argument checks that all samplers share; each message names the argument and its value."""

from __future__ import annotations

import operator
from fractions import Fraction


def positive_rational(name: str, value: Fraction | int, largest: int) -> Fraction:
    """Return ``value`` as a Fraction between 1 / largest and largest.

    Mechanisms check their parameters when they are constructed, so a plan whose noise cannot be drawn
    is refused when it is read.
    """
    # Floats are refused: 0.1 as a float is not 1/10.
    if isinstance(value, bool) or not isinstance(value, Fraction | int):
        raise TypeError(f"{name} must be a Fraction or an int, not {type(value).__name__}")
    if value <= 0:
        raise ValueError(f"{name} must be positive, not {value}")
    if not Fraction(1, largest) <= value <= largest:
        remedy = f"request {'more' if value > 1 else 'less'} alpha"
        raise ValueError(
            f"{name} must lie between {1 / largest:.3g} and {largest:.3g}, not {float(value):.3g}: this"
            f" noise cannot be drawn; {remedy}"
        )
    return Fraction(value)


def whole_number(name: str, value: int, at_most: int | None = None) -> int:
    """Return ``value`` as a built-in integer, not negative and at most ``at_most``."""
    if isinstance(value, bool):
        raise TypeError(f"{name} must be an integer, not bool")
    result = operator.index(value)
    if result < 0:
        raise ValueError(f"{name} must not be negative, not {result}")
    if at_most is not None and result > at_most:
        raise ValueError(f"{name} must be at most {at_most}, not {result}")
    return result


def probability(name: str, value: float) -> float:
    """Return ``value``, which must lie strictly between 0 and 1."""
    if not 0 < value < 1:
        raise ValueError(f"{name} must lie strictly between 0 and 1, not {value}")
    return float(value)
