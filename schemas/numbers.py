"""Numbers in documents: exact rationals as decimal strings, and floats as they were written."""

from fractions import Fraction
from functools import partial
from typing import Annotated, Any

from pydantic import BeforeValidator, PlainSerializer, WithJsonSchema

LONGEST = 60
"""A number in a plan may have at most this many characters."""

LONGEST_COMPUTED = 4000
"""The same for numbers in a manifest, where shares are quotients of a plan's numbers."""

LARGEST_EXPONENT = 50


def plain(value: float) -> str:
    """A float in its shortest form, without an exponent or a trailing .0.

    >>> plain(22.0), plain(1000000.0), plain(0.1)
    ('22', '1000000', '0.1')
    """
    text = f"{value:.15g}"
    return text if float(text) == value else repr(value)


def read_rational(value: Any, longest: int = LONGEST) -> Fraction:
    """A non-negative rational from a decimal string, a fraction such as "1/3" or an integer."""
    if isinstance(value, Fraction):
        number = value
    elif isinstance(value, bool) or not isinstance(value, str | int):
        raise ValueError('write the number as a decimal string in quotes, such as "0.5"')
    else:
        number = _exact(value, longest)
    if number < 0:
        raise ValueError("must not be negative")
    return number


def _exact(value: str | int, longest: int) -> Fraction:
    """Convert a number, after checking its length and exponent: "1e999999999" would fill the memory."""
    # By bits, because writing a whole number takes time quadratic in its length.
    if (len(value) if isinstance(value, str) else value.bit_length() // 4) > longest:
        raise ValueError(f"a number may have at most {longest} characters")
    try:
        exponent = int(str(value).lower().partition("e")[2] or 0)
        if abs(exponent) <= LARGEST_EXPONENT:
            return Fraction(value)
    except (ValueError, ZeroDivisionError):
        raise ValueError("not a decimal number or a fraction") from None
    raise ValueError(f"the exponent must lie between -{LARGEST_EXPONENT} and {LARGEST_EXPONENT}")


_AS_TEXT = PlainSerializer(str)
_SCHEMA = WithJsonSchema({"type": ["string", "integer"], "examples": ["0.5", "1e-6", "1/3"]})

Rational = Annotated[
    Fraction, BeforeValidator(partial(read_rational, longest=LONGEST_COMPUTED)), _AS_TEXT, _SCHEMA
]
WrittenRational = Annotated[Fraction, BeforeValidator(read_rational), _AS_TEXT, _SCHEMA]
