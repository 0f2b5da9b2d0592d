"""Exact numbers in documents: decimal strings, never floats."""

from fractions import Fraction
from typing import Annotated, Any

from pydantic import BeforeValidator, PlainSerializer, WithJsonSchema


def read_rational(value: Any) -> Fraction:
    """A non-negative rational from a decimal string, a fraction such as "1/3" or an integer."""
    if isinstance(value, Fraction):
        number = value
    elif isinstance(value, bool) or not isinstance(value, str | int):
        raise ValueError('write the number as a decimal string in quotes, such as "0.5"')
    else:
        try:
            number = Fraction(value)
        except (ValueError, ZeroDivisionError):
            raise ValueError("not a decimal number or a fraction") from None
    if number < 0:
        raise ValueError("must not be negative")
    return number


Rational = Annotated[
    Fraction,
    BeforeValidator(read_rational),
    PlainSerializer(str),
    WithJsonSchema({"type": ["string", "integer"], "examples": ["0.5", "1e-6", "1/3"]}),
]
