"""A privacy budget (alpha, beta, gamma) as exact rationals, and how it is split.

``alpha`` is epsilon and ``beta`` is delta of differential privacy; ``gamma`` is the third
parameter of random differential privacy (Hall, Rinaldo & Wasserman 2011).  Basic composition adds
each coordinate (METHODS q), so budgets add, subtract and compare coordinate by coordinate, and no
sum is ever rounded.

>>> total = Budget.of("1", "1e-6")
>>> [str(part.alpha) for part in split(total, [Weight(2, 0), Weight(1, 1)])]
['2/3', '1/3']
>>> [str(part.beta) for part in split(total, [Weight(2, 0), Weight(1, 1)])]
['0', '1/1000000']
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple

Rational = str | int | Fraction


@dataclass(frozen=True)
class Budget:
    """An amount of privacy: all three coordinates are exact and not negative."""

    alpha: Fraction = Fraction(0)
    beta: Fraction = Fraction(0)
    gamma: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        for name in ("alpha", "beta", "gamma"):
            value = getattr(self, name)
            if not isinstance(value, Fraction):
                raise TypeError(f"{name} must be a Fraction, not {type(value).__name__}")
            if value < 0:
                raise ValueError(f"{name} must not be negative")

    @classmethod
    def of(cls, alpha: Rational = 0, beta: Rational = 0, gamma: Rational = 0) -> Budget:
        """A budget from decimal strings, integers or fractions (never from floats)."""
        return cls(*(_exact(value) for value in (alpha, beta, gamma)))

    def __add__(self, other: Budget) -> Budget:
        return Budget(self.alpha + other.alpha, self.beta + other.beta, self.gamma + other.gamma)

    def __sub__(self, other: Budget) -> Budget:
        """The budget that is left; raises ``ValueError`` where it would be negative."""
        return Budget(self.alpha - other.alpha, self.beta - other.beta, self.gamma - other.gamma)

    def covers(self, other: Budget) -> bool:
        """Whether ``other`` is at most this budget in every coordinate."""
        return other.alpha <= self.alpha and other.beta <= self.beta and other.gamma <= self.gamma

    def times(self, other: Budget) -> int | None:
        """How many times this budget covers ``other``; None if ``other`` is nothing.

        >>> Budget.of("1", "1e-6").times(Budget.of("1/3", "4e-7"))
        2
        """
        amounts = [(getattr(self, f.name), getattr(other, f.name)) for f in fields(self)]
        return min((left // asked for left, asked in amounts if asked), default=None)

    def as_strings(self) -> dict[str, str]:
        """The three coordinates as exact strings, such as ``'1/3'``, for documents and databases."""
        return {"alpha": str(self.alpha), "beta": str(self.beta), "gamma": str(self.gamma)}

    def __str__(self) -> str:
        return ", ".join(
            f"{k} = {decimal_text(getattr(self, k))}" for k in ("alpha", "beta", "gamma")
        )


class Weight(NamedTuple):
    """The relative claim of one release on each coordinate; zero means no share of it."""

    alpha: Fraction | int
    beta: Fraction | int = 0
    gamma: Fraction | int = 0


def total(budgets: Iterable[Budget]) -> Budget:
    """The sum of budgets: basic composition."""
    return sum(budgets, Budget())


def split(whole: Budget, weights: Sequence[Weight]) -> list[Budget]:
    """Shares of ``whole`` in proportion to the weights, coordinate by coordinate.

    The shares of a coordinate sum to it exactly, unless all weights are zero: then all shares are.
    """
    sums = [sum((Fraction(w[i]) for w in weights), Fraction(0)) for i in range(3)]
    parts = (whole.alpha, whole.beta, whole.gamma)
    return [
        Budget(*(parts[i] * Fraction(w[i]) / sums[i] if sums[i] else Fraction(0) for i in range(3)))
        for w in weights
    ]


def decimal_text(value: Fraction) -> str:
    """A rational as people read it: exact where six digits are exact, else rounded with an ellipsis."""
    try:
        short = f"{float(value):.6g}"
    except OverflowError:
        short = f"{Decimal(value.numerator) / Decimal(value.denominator):.6g}"
    return short if Fraction(short) == value else f"{short}…"


def _exact(value: Rational) -> Fraction:
    if isinstance(value, bool) or not isinstance(value, str | int | Fraction):
        raise TypeError(f"a budget is written as a decimal string, not as {type(value).__name__}")
    return Fraction(value)
