"""Numbers of a bundle with the standard errors of their noise, and arithmetic with such numbers.

Numbers from different draws have independent noise.  Numbers from one draw have correlated errors:
their difference is one weighted sum, and their quotient a share (``tasks.bundle.reader``).
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist

from dpcore.errors import InputError
from dpcore.releases.table import LEVEL

FEWEST_ERRORS = 5
"""A divisor must exceed this many of its standard errors: below, the quotient is not near normal."""


@dataclass(frozen=True)
class Estimate:
    """A number with the standard error of its noise; ``interval`` is a normal 90% interval.

    ``draws``: digests of the noisy statistics from which it was computed.
    """

    value: float
    standard_error: float
    draws: frozenset[str] = frozenset()

    @property
    def interval(self) -> tuple[float, float]:
        width = NormalDist().inv_cdf((1 + LEVEL) / 2) * self.standard_error
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
        """The quotient with a public number, such as the rows, or a noisy number of another draw.

        The standard error of a quotient of noisy numbers is that of the delta method, as for
        ``share``.  Raises ``InputError`` for two numbers of one draw.
        """
        other = _as_estimate(by)
        self._require_independent(other, "the share")
        other.require_divisor()
        value = self.value / other.value
        error = (self.standard_error**2 + (value * other.standard_error) ** 2) ** 0.5
        return Estimate(value, error / abs(other.value), self.draws | other.draws)

    def require_divisor(self) -> None:
        """Raise ``InputError`` if the number is too near zero relative to its error."""
        if abs(self.value) <= FEWEST_ERRORS * self.standard_error:
            raise InputError(
                f"the divisor is {self.value:.4g} with a standard error of"
                f" {self.standard_error:.4g}: it must be more than {FEWEST_ERRORS} standard errors"
                " from zero; ask for a larger group"
            )

    def _require_independent(self, other: Estimate, remedy: str) -> None:
        if self.draws & other.draws:
            raise InputError(
                "both numbers come from one draw, so their errors are correlated: ask for " + remedy
            )


def _as_estimate(number: float | Estimate) -> Estimate:
    """The number as an estimate; a public one has no error."""
    return number if isinstance(number, Estimate) else Estimate(number, 0.0)
