"""Independent discrete Laplace or discrete Gaussian noise on every cell of an integer vector."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpcore.accounting import gaussian_variance, laplace_scale
from dpcore.budget import Budget
from dpcore.events import Event, GaussianEvent, LaplaceEvent
from dpcore.sampling import discrete_gaussian as gaussian
from dpcore.sampling import discrete_laplace as laplace
from dpcore.sampling.source import RandomSource
from dpcore.statistic import Noisy


@dataclass(frozen=True)
class LaplaceNoise:
    """P(z) proportional to exp(-|z|/scale): (l1_sensitivity/scale)-DP, exactly."""

    size: int
    l1_sensitivity: Fraction
    scale: Fraction

    @property
    def event(self) -> Event:
        return LaplaceEvent(self.l1_sensitivity, self.scale)

    @property
    def stddev(self) -> float:
        return laplace.laplace_stddev(self.scale)

    def half_width(self, level: float) -> float:
        return float(laplace.laplace_quantile(self.scale, level))


@dataclass(frozen=True)
class DiscreteLaplace(LaplaceNoise):
    """Discrete Laplace noise on every cell."""

    sparse = False

    @classmethod
    def within(cls, share: Budget, size: int, l1_sensitivity: Fraction) -> DiscreteLaplace:
        """The mechanism that spends all of the share's alpha."""
        return cls(size, l1_sensitivity, laplace_scale(l1_sensitivity, share.alpha))

    def draw(
        self, values: NDArray[np.int64], cells: NDArray[np.int64] | None, source: RandomSource
    ) -> Noisy:
        noise = laplace.discrete_laplace(self.scale, self.size, source)
        return Noisy(values + noise, reproducible=source.reproducible)


@dataclass(frozen=True)
class DiscreteGaussian:
    """P(z) proportional to exp(-z^2/(2 variance)): (alpha, beta)-DP.

    ``dpcore.accounting.gaussian_variance`` has the proofs.
    """

    size: int
    l2_sensitivity_squared: Fraction
    variance: Fraction

    sparse = False

    @classmethod
    def within(cls, share: Budget, size: int, l2_sensitivity_squared: Fraction) -> DiscreteGaussian:
        """The mechanism that spends all of the share's alpha and beta."""
        variance = gaussian_variance(l2_sensitivity_squared, share.alpha, share.beta)
        return cls(size, l2_sensitivity_squared, variance)

    @property
    def event(self) -> GaussianEvent:
        return GaussianEvent(self.l2_sensitivity_squared, self.variance)

    @property
    def stddev(self) -> float:
        return gaussian.gaussian_stddev(self.variance)

    def half_width(self, level: float) -> float:
        return float(gaussian.gaussian_quantile(self.variance, level))

    def draw(
        self, values: NDArray[np.int64], cells: NDArray[np.int64] | None, source: RandomSource
    ) -> Noisy:
        noise = gaussian.discrete_gaussian(self.variance, self.size, source)
        return Noisy(values + noise, reproducible=source.reproducible)
