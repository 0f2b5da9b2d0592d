"""Numbers of a bundle with the standard errors of their noise, and arithmetic with such numbers.

Numbers from different draws have independent noise.  Numbers from one draw have correlated errors:
their difference is one weighted sum, and their quotient a share (``share_of``).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from dpcore.arrays import Floats
from dpcore.errors import InputError
from dpcore.estimates.fieller import EVERYTHING, Pieces, fieller
from dpcore.releases.table import FEWEST_ERRORS, TWO_SIDED


@dataclass(frozen=True, repr=False)
class Estimate:
    """A number with the standard error of its noise; ``interval`` is a normal 90% interval.

    It prints as "424 ± 34": the number and its standard error (not an interval), to two digits.

    ``draws``: digests of the noisy statistics from which it was computed.
    """

    value: float
    standard_error: float
    draws: frozenset[str] = frozenset()

    def __repr__(self) -> str:
        if not self.standard_error:
            return f"{self.value:.10g}, exact"
        places = 1 - math.floor(math.log10(self.standard_error))
        value, error = (round(each, places) + 0.0 for each in (self.value, self.standard_error))
        return f"{value:,.{max(places, 0)}f} ± {error:,.{max(places, 0)}f}"

    @property
    def interval(self) -> tuple[float, float]:
        """Both ends of a 90% interval for the exact number."""
        width = TWO_SIDED * self.standard_error
        return self.value - width, self.value + width

    def __add__(self, other: float | Estimate) -> Estimate:
        """The sum with a public number, or with a number of another bundle or release.

        Raises ``InputError`` for two numbers of one draw, whose errors are correlated.
        """
        other = _as_estimate(other)
        self._require_independent(other, "one total, with the sum or difference of both weights")
        error = (self.standard_error**2 + other.standard_error**2) ** 0.5
        return Estimate(self.value + other.value, error, self.draws | other.draws)

    __radd__ = __add__

    def __mul__(self, by: float) -> Estimate:
        """The product with a public number."""
        if isinstance(by, Estimate):
            return NotImplemented
        return Estimate(self.value * by, self.standard_error * abs(by), self.draws)

    __rmul__ = __mul__

    def __sub__(self, other: float | Estimate) -> Estimate:
        """The difference, under the same conditions as the sum."""
        return self + _as_estimate(other) * -1

    def __truediv__(self, by: float | Estimate) -> Estimate:
        """The quotient by a public number, such as the rows, or by a noisy number of another draw.

        A quotient of noisy numbers has the standard error of the delta method, as in ``share_of``, or
        Fieller's set if the divisor is near zero.  Raises ``InputError`` for two numbers of one draw.
        """
        other = _as_estimate(by)
        self._require_independent(other, "the share")
        if other.near_zero:
            return Quotient.of(self, other, 0.0)
        value = self.value / other.value
        error = (self.standard_error**2 + (value * other.standard_error) ** 2) ** 0.5
        return Estimate(value, error / abs(other.value), self.draws | other.draws)

    @property
    def near_zero(self) -> bool:
        """Whether this number is too near zero for a quotient by it to be nearly normal."""
        return abs(self.value) <= FEWEST_ERRORS * self.standard_error

    def _require_independent(self, other: Estimate, remedy: str) -> None:
        if self.draws & other.draws:
            raise InputError(
                "both numbers come from one draw, so their errors are correlated: ask for " + remedy
            )


@dataclass(frozen=True, repr=False)
class Quotient(Estimate):
    """A quotient by a number near zero, with Fieller's 90% set instead of a standard error.

    If the set is unbounded, the divisor may be zero, and the value is NaN.
    """

    pieces: Pieces = EVERYTHING

    def __repr__(self) -> str:
        value = "No value" if math.isnan(self.value) else f"{self.value:.2g}"
        return f"{value}. {self.words}"

    @classmethod
    def of(cls, number: Estimate, by: Estimate, covariance: float) -> Quotient:
        """The quotient of two numbers whose errors have this covariance."""
        if by.value == by.standard_error == 0:
            raise InputError("the divisor is zero")
        variances = number.standard_error**2, by.standard_error**2
        pieces = fieller(number.value, variances[0], by.value, variances[1], covariance, TWO_SIDED)
        bounded = len(pieces) == 1 and all(map(math.isfinite, pieces[0]))
        value = number.value / by.value if bounded else math.nan
        return cls(value, math.nan, number.draws | by.draws, pieces)

    def within(self, low: float, high: float) -> Quotient:
        """The quotient limited to ``low`` to ``high``; if nothing is left, this whole range without a
        value."""
        cut = [(max(low, a), min(high, b)) for a, b in self.pieces]
        left = tuple((a, b) for a, b in cut if a <= b)
        value = min(max(self.value, low), high) if left else math.nan
        return replace(self, value=value, pieces=left or ((low, high),))

    @property
    def interval(self) -> tuple[float, float]:
        """The smallest interval around the set; ends are infinite where the set is unbounded."""
        return self.pieces[0][0], self.pieces[-1][1]

    @property
    def words(self) -> str:
        """The interval or set in a sentence."""
        low, high = self.interval
        if len(self.pieces) == 2:
            below, above = self.pieces[0][1], self.pieces[1][0]
            known = f"all numbers up to {below:.4g} and from {above:.4g}"
            if math.isinf(low):
                return f"The divisor may be zero, and the 90% set is unbounded: {known}."
            known = f"{low:.4g} to {high:.4g}, without {below:.4g} to {above:.4g}"
            return f"The divisor may be zero, and the 90% set is {known}."
        if math.isinf(low) and math.isinf(high):
            return "The divisor may be zero, and any quotient is possible (90% set, unbounded)."
        return f"The 90% interval, which is not symmetric, is {low:.4g} to {high:.4g}."


def share_of(sum_of: Callable[[Floats], Estimate], part: Floats, whole: Floats) -> Estimate:
    """The share of some cells in others that contain them; ``part``, ``whole``: (cells,) 0 or 1.

    Let P and W be the noisy sums over part and whole, and R = P / W.  The variance of R is the variance
    of the sum with weights part - R * whole, divided by W^2 (delta method, first order); this includes
    the covariance of P and W.  If W is near zero, the share has Fieller's 90% set within 0 to 1 instead.
    """
    divisor = sum_of(whole)
    if np.array_equal(part, whole):
        return Estimate(1.0, 0.0, divisor.draws)
    number = sum_of(part)
    if divisor.near_zero:
        squares = [each.standard_error**2 for each in (number, divisor, sum_of(whole - part))]
        quotient = Quotient.of(number, divisor, (squares[0] + squares[1] - squares[2]) / 2)
        return quotient.within(0.0, 1.0)
    value = number.value / divisor.value
    error = sum_of(part - value * whole).standard_error
    return Estimate(value, error / abs(divisor.value), divisor.draws)


def _as_estimate(number: float | Estimate) -> Estimate:
    """The number as an estimate; a public one has no error."""
    return number if isinstance(number, Estimate) else Estimate(number, 0.0)
