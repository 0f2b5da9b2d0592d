"""Independent discrete Gaussian noise on every cell of an integer vector.

Claim.  Input: integer vectors x (cells,).  Neighbours: any relation under which the squared L2 norm
of the difference of two vectors is at most ``l2_sensitivity_squared`` = D^2.  Output: x + Z with
independent Z_i, P(Z_i = z) proportional to exp(-z^2/(2 variance)).  It is D^2/(2 variance)-zCDP, and
(alpha, beta, 0)-DP for all alpha, beta that either conversion in the proof allows.

Preconditions.  variance lies between 2^-90 and 2^90 (checked when it is made); 0 < beta < 1 and one of
the two conversions holds, in arithmetic of 50 digits or more rounded upwards (the privacy line checks
it).  D^2 is the release's claim, proved there.

Proof.  zCDP: Canonne, Kamath & Steinke 2020, Theorem 14, in any dimension; the conversion is
their Corollary 13 (``accounting.zcdp``).  The second conversion: the discrete Gaussian is, up to a
stated factor, randomly rounded continuous noise and inherits its exact privacy profile (Balle & Wang
2018, Theorem 8; ``accounting.analytic`` has the proof).  The first is better for a variance of a few
units, the second for a large one.

Ranges.  Every release checks that |x_i| < 2^61 (``largest_statistic``).  |Z_i| reaches 2^62 with a
chance below exp(-2^30); a sum that wrapped around would still be post-processing.  No float takes part
in a draw; a variance that was found in floating point is certified before it is used.

Source.  Canonne, Kamath & Steinke 2020; Balle & Wang 2018.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dpcore.accounting.analytic import Inherited, inherited_gaussian
from dpcore.accounting.budget import Budget
from dpcore.accounting.digits import round_up
from dpcore.accounting.gaussian import covers_gaussian, gaussian_variance
from dpcore.arrays import Floats, Integers
from dpcore.line.mechanism import AdditiveNoise, Event, Outputs
from dpcore.line.statistic import Noisy, Statistic
from dpcore.sampling import _validate
from dpcore.sampling import discrete_gaussian as gaussian
from dpcore.sampling.source import RandomSource


@dataclass(frozen=True)
class GaussianEvent(Event):
    """Discrete Gaussian noise P(z) proportional to exp(-z^2/(2 variance)) on an integer vector.

    ``l2_sensitivity_squared``: the largest squared Euclidean distance between the vectors of
    neighbours.
    """

    kind = "discrete-gaussian"

    l2_sensitivity_squared: Fraction
    variance: Fraction

    @property
    def inherited(self) -> Inherited:
        """How far the law is from rounded continuous noise."""
        return Inherited(self.l2_sensitivity_squared)

    def covered_by(self, share: Budget) -> bool:
        law = self.l2_sensitivity_squared, self.variance
        return covers_gaussian(*law, share.alpha, share.beta, self.inherited)

    @property
    def concentrated(self) -> tuple[Fraction, Fraction] | None:
        if self.l2_sensitivity_squared < 0 or self.variance <= 0:
            return None
        rho = self.l2_sensitivity_squared / (2 * self.variance)
        return rho + self.inherited.loss, Fraction(0)

    @property
    def inherited_gaussian(self) -> tuple[Fraction, Fraction] | None:
        return inherited_gaussian(self.l2_sensitivity_squared, self.variance, self.inherited)


@dataclass(frozen=True)
class DiscreteGaussian(AdditiveNoise):
    """Noise P(z) proportional to exp(-z^2/(2 variance)) on every cell: (alpha, beta)-DP."""

    l2_sensitivity_squared: Fraction
    variance: Fraction

    cell_by_cell = True
    comparable = True

    def __post_init__(self) -> None:
        _validate.positive_rational("variance", self.variance, gaussian.LARGEST_VARIANCE)

    @classmethod
    def within(cls, share: Budget, size: int, l2_sensitivity_squared: Fraction) -> DiscreteGaussian:
        """Return the mechanism that spends all of the share's rho, or all of its alpha and beta."""
        if share.rho:
            # The ledger stores the exact fraction: twelve digits keep it short.
            variance = round_up(l2_sensitivity_squared / (2 * share.rho))
        else:
            variance = gaussian_variance(l2_sensitivity_squared, share.alpha, share.beta)
        return cls(size, l2_sensitivity_squared, variance)

    @property
    def event(self) -> GaussianEvent:
        return GaussianEvent(self.l2_sensitivity_squared, self.variance)

    @property
    def stddev(self) -> float:
        return gaussian.gaussian_stddev(self.variance)

    def half_width(self, level: float) -> float:
        """The smallest t with P(|noise| <= t) >= level, for one cell."""
        return float(gaussian.gaussian_quantile(self.variance, level))

    def draw(self, statistic: Statistic, source: RandomSource) -> Noisy:
        noise = gaussian.discrete_gaussian(self.variance, self.size, source)
        return Noisy(statistic.values + noise, reproducible=source.reproducible)

    def simulate(self, size: int, generator: np.random.Generator) -> Integers:
        """Draw continuous Gaussian noise and round it."""
        return np.rint(generator.normal(0, float(self.variance) ** 0.5, size)).astype(np.int64)

    def log_chances(self, outputs: Outputs, exact: Statistic, factors: Floats) -> Floats:
        # As floats: squares may not fit into 64 bits.
        noise = (outputs - exact.values).astype(np.float64)
        squares, seen = np.nansum(noise**2, axis=1), np.sum(~np.isnan(noise), axis=1)
        return gaussian_chances(squares, seen, float(self.variance), factors)

    def moved_by(self, near: Statistic, far: Statistic) -> float:
        # In Python integers, for the same reason.
        squared = sum(int(moved) ** 2 for moved in (near.values - far.values).tolist())
        return math.sqrt(Fraction(squared) / self.l2_sensitivity_squared)


def gaussian_chances(squares: Floats, seen: Integers, variance: float, factors: Floats) -> Floats:
    """Log chances (k, factors) of noise with squared norms (k,) over ``seen`` (k,) numbers."""
    wide = variance * factors**2
    return -np.outer(squares, 1 / (2 * wide)) - np.outer(seen, [_log_sum(each) for each in wide])


def _log_sum(variance: float) -> float:
    """ln of the sum over z of exp(-z^2/(2 variance))."""
    if variance >= 4:
        # The integral: by Poisson's formula it differs from the sum by a factor of at most 1 + 2e-34.
        return math.log(2 * math.pi * variance) / 2
    # The terms that are left out are below exp(-200).
    return math.log(1 + 2 * math.fsum(math.exp(-(z**2) / (2 * variance)) for z in range(1, 40)))
