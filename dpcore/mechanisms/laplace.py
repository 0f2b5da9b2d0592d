"""Independent discrete Laplace noise on every cell of an integer vector.

Claim.  Input: integer vectors x (cells,).  Neighbours: any relation under which two vectors differ
by at most ``l1_sensitivity`` = D in the L1 norm.  Output: x + Z with independent Z_i,
P(Z_i = z) proportional to exp(-|z|/scale).  It is (D/scale, 0, 0)-DP, and (D/scale)^2/2-zCDP.

Preconditions.  scale lies between 2^-45 and 2^45 (checked when it is made) and D <= alpha scale (the
privacy line checks it).  D is the release's claim, proved there.

Proof.  For neighbours x, x' the ratio of chances of y is exp((|y - x'| - |y - x|)/scale), at most
exp(|x - x'|/scale) <= exp(D/scale) by the triangle inequality, coordinate by coordinate.

Ranges.  Every release checks that |x_i| < 2^61 (``largest_statistic``).  |Z_i| reaches 2^62 with a
chance below exp(-2^17); a sum that wrapped around would still be post-processing of the exact sum.
The law is exact: no float takes part in a draw.

Source.  Ghosh, Roughgarden & Sundararajan 2012; Dwork, McSherry, Nissim & Smith 2006.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dpcore.accounting.budget import Budget
from dpcore.arrays import Floats, Integers
from dpcore.line.mechanism import AdditiveNoise, Event, Mechanism, Outputs
from dpcore.line.statistic import Noisy, Statistic
from dpcore.sampling import _validate
from dpcore.sampling import discrete_laplace as laplace
from dpcore.sampling.source import RandomSource


@dataclass(frozen=True)
class LaplaceEvent(Event):
    """Discrete Laplace noise P(z) proportional to exp(-|z|/scale) on an integer vector.

    ``l1_sensitivity``: the largest L1 distance between the vectors of neighbours.
    """

    kind = "discrete-laplace"

    l1_sensitivity: Fraction
    scale: Fraction

    @property
    def pure_alpha(self) -> Fraction:
        return self.l1_sensitivity / self.scale

    def covered_by(self, share: Budget) -> bool:
        return self.scale > 0 and self.l1_sensitivity <= share.alpha * self.scale


@dataclass(frozen=True)
class LaplaceNoise(Mechanism):
    """Noise P(z) proportional to exp(-|z|/scale) on every cell: (l1_sensitivity/scale)-DP, exactly."""

    l1_sensitivity: Fraction
    scale: Fraction

    cell_by_cell = True
    comparable = True

    def __post_init__(self) -> None:
        _validate.positive_rational("scale", self.scale, laplace.LARGEST_SCALE)

    @property
    def event(self) -> Event:
        return LaplaceEvent(self.l1_sensitivity, self.scale)

    @property
    def stddev(self) -> float:
        return laplace.laplace_stddev(self.scale)

    def half_width(self, level: float) -> float:
        """The smallest t with P(|noise| <= t) >= level, for one cell."""
        return float(laplace.laplace_quantile(self.scale, level))

    @property
    def mean_absolute(self) -> float:
        """The mean absolute value of the noise in a cell."""
        rate = 1 / float(self.scale)
        # Beyond, sinh overflows.
        return 1 / math.sinh(rate) if rate < 700 else 0.0

    def simulate(self, size: int, generator: np.random.Generator) -> Integers:
        # The difference of two geometric numbers is a discrete Laplace number.
        passing = -math.expm1(-1 / float(self.scale))
        one, other = generator.geometric(passing, (2, size))
        return np.asarray(one - other)

    def log_chances(self, outputs: Outputs, exact: Statistic, factors: Floats) -> Floats:
        return laplace_chances(outputs - exact.values, float(self.scale), factors)

    def moved_by(self, near: Statistic, far: Statistic) -> float:
        return float(Fraction(int(np.abs(near.values - far.values).sum())) / self.l1_sensitivity)


@dataclass(frozen=True)
class DiscreteLaplace(LaplaceNoise, AdditiveNoise):
    """Discrete Laplace noise on every cell."""

    @classmethod
    def within(cls, share: Budget, size: int, l1_sensitivity: Fraction) -> DiscreteLaplace:
        """Return the mechanism that spends all of the share's alpha."""
        return cls(size, l1_sensitivity, laplace_scale(l1_sensitivity, share.pure_alpha))

    def draw(self, statistic: Statistic, source: RandomSource) -> Noisy:
        noise = laplace.discrete_laplace(self.scale, self.size, source)
        return Noisy(statistic.values + noise, reproducible=source.reproducible)


def laplace_scale(sensitivity: Fraction, alpha: Fraction) -> Fraction:
    """The scale of noise P(z) proportional to exp(-||z||/scale) that costs exactly ``alpha``."""
    if alpha <= 0:
        raise ValueError("alpha must be positive")
    return sensitivity / alpha


def laplace_chances(noise: Floats, scale: float, factors: Floats) -> Floats:
    """``Round.logs`` for discrete Laplace noise (n, m), which is NaN where it is not observed."""
    lengths, seen = np.nansum(np.abs(noise), axis=1), np.sum(~np.isnan(noise), axis=1)
    scales = scale * factors
    # sum over z of exp(-|z|/s) = 1/tanh(1/(2 s))
    return np.outer(seen, np.log(np.tanh(1 / (2 * scales)))) - np.outer(lengths, 1 / scales)


def log_cdf(z: Floats, scale: float) -> Floats:
    """log P(Z <= z) for discrete Laplace noise Z and integers z."""
    a = math.exp(-1.0 / scale)
    # Both branches are computed for all z: the cut keeps the unused one from overflowing.
    upper = np.log1p(-(a ** (np.maximum(z, 0.0) + 1.0)) / (1.0 + a))
    return np.asarray(np.where(z >= 0, upper, np.minimum(z, 0.0) / scale - math.log1p(a)))
