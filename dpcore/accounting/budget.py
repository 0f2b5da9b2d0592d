"""A privacy budget (alpha, beta, gamma) or (rho, beta, gamma) as exact rationals, and how it is split.

``alpha`` is epsilon and ``beta`` is delta of differential privacy; ``gamma`` is the third
parameter of random differential privacy (Hall, Rinaldo & Wasserman 2011); ``rho`` takes the place of
alpha in zero-concentrated differential privacy (Bun & Steinke 2016), where ``beta`` is the chance that
a mechanism fails.  Both composition rules add each coordinate, so budgets add, subtract
and compare coordinate by coordinate, and no sum is ever rounded.

>>> total = Budget.of("1", "1e-6")
>>> [str(part.alpha) for part in split(total, [ShareWeight(2, 0), ShareWeight(1, 1)])]
['2/3', '1/3']
>>> [str(part.beta) for part in split(total, [ShareWeight(2, 0), ShareWeight(1, 1)])]
['0', '1/1000000']
>>> float(Budget(rho=Fraction(1, 2)).pure_alpha)
1.0
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple

Rational = str | int | Fraction


@dataclass(frozen=True)
class Budget:
    """An amount of privacy: all coordinates are exact and not negative.

    A budget that can be spent has alpha or rho, and the other one is 0.
    """

    alpha: Fraction = Fraction(0)
    beta: Fraction = Fraction(0)
    gamma: Fraction = Fraction(0)
    rho: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        for name, value in self._amounts.items():
            if not isinstance(value, Fraction):
                raise TypeError(f"{name} must be a Fraction, not {type(value).__name__}")
            if value < 0:
                raise ValueError(f"{name} must not be negative")

    @classmethod
    def of(cls, alpha: Rational = 0, beta: Rational = 0, gamma: Rational = 0) -> Budget:
        """Return a budget, given decimal strings, integers or fractions (never floats)."""
        return cls(*(_exact(value) for value in (alpha, beta, gamma)))

    def __add__(self, other: Budget) -> Budget:
        return Budget(**{k: value + getattr(other, k) for k, value in self._amounts.items()})

    def __sub__(self, other: Budget) -> Budget:
        """The remaining budget; raises ``ValueError`` if it would be negative."""
        return Budget(**{k: value - getattr(other, k) for k, value in self._amounts.items()})

    def __mul__(self, part: Fraction) -> Budget:
        return Budget(**{k: value * part for k, value in self._amounts.items()})

    def covers(self, other: Budget) -> bool:
        """Whether ``other`` is at most this budget in every coordinate."""
        return all(getattr(other, k) <= value for k, value in self._amounts.items())

    @property
    def pure_alpha(self) -> Fraction:
        """The largest alpha of an (alpha, 0)-private event that this budget pays for, rounded down.

        Such an event is (alpha^2/2)-zCDP (Bun & Steinke 2016, Proposition 1.4).
        """
        return root_below(2 * self.rho) if self.rho else self.alpha

    @property
    def loss(self) -> Fraction:
        """rho if the budget is spent in rho, else alpha."""
        return self.rho or self.alpha

    @property
    def coordinates(self) -> tuple[str, str, str]:
        """The names of the coordinates in which the budget is spent."""
        return ("rho" if self.rho else "alpha", "beta", "gamma")

    def times(self, other: Budget) -> int | None:
        """How many times this budget covers ``other``; None if ``other`` is zero.

        >>> Budget.of("1", "1e-6").times(Budget.of("1/3", "4e-7"))
        2
        """
        amounts = [(getattr(self, f.name), getattr(other, f.name)) for f in fields(self)]
        return min((left // asked for left, asked in amounts if asked), default=None)

    def as_strings(self) -> dict[str, str]:
        """The coordinates as exact strings, such as ``'1/3'``, for documents."""
        return {name: str(getattr(self, name)) for name in self.coordinates}

    def __str__(self) -> str:
        return ", ".join(f"{k} = {decimal_text(getattr(self, k))}" for k in self.coordinates)

    @property
    def _amounts(self) -> dict[str, Fraction]:
        return {field.name: getattr(self, field.name) for field in fields(self)}


class ShareWeight(NamedTuple):
    """The relative claim of one release on each coordinate; a weight of zero gives it no share.

    ``alpha``: the weight for alpha, or for rho if the budget is spent in rho.
    """

    alpha: Fraction | int
    beta: Fraction | int = 0
    gamma: Fraction | int = 0


def total(budgets: Iterable[Budget]) -> Budget:
    """The sum of budgets: basic composition."""
    return sum(budgets, Budget())


def split(whole: Budget, weights: Sequence[ShareWeight]) -> list[Budget]:
    """Shares of ``whole`` in proportion to the weights, coordinate by coordinate.

    The shares of a coordinate add up to it exactly, unless all its weights are zero: then its shares
    are zero.
    """
    # The weight for alpha is also the weight for rho, the fourth coordinate of a budget.
    claims = [(*weight, weight.alpha) for weight in weights]
    sums = [sum((Fraction(claim[i]) for claim in claims), Fraction(0)) for i in range(4)]
    parts = (whole.alpha, whole.beta, whole.gamma, whole.rho)
    return [
        Budget(*(parts[i] * Fraction(c[i]) / sums[i] if sums[i] else Fraction(0) for i in range(4)))
        for c in claims
    ]


def root_below(value: Fraction) -> Fraction:
    """The square root, rounded down to about 30 binary digits."""
    if value <= 0:
        return Fraction(0)
    # Small values get more binary places, so that their relative precision is the same.
    shift = 30 + max(0, value.denominator.bit_length() - value.numerator.bit_length())
    return Fraction(math.isqrt(math.floor(value * 4**shift)), 2**shift)


def decimal_text(value: Fraction) -> str:
    """A rational as a short decimal: exact if six digits suffice, else rounded with an ellipsis."""
    try:
        short = f"{float(value):.6g}"
    except OverflowError:
        short = f"{Decimal(value.numerator) / Decimal(value.denominator):.6g}"
    return short if Fraction(short) == value else f"{short}…"


def _exact(value: Rational) -> Fraction:
    if isinstance(value, bool) or not isinstance(value, str | int | Fraction):
        raise TypeError(f"a budget is written as a decimal string, not as {type(value).__name__}")
    return Fraction(value)
