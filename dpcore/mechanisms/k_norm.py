"""K-norm noise on an integer vector: the norm is chosen for how neighbours differ.

With the Euclidean norm this is the gamma mechanism (Hall 2012, section 1.3.3), whose length follows
a gamma law; with whitened coordinates it is the one of a Mahalanobis norm (METHODS b).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpcore.accounting import laplace_scale
from dpcore.budget import Budget
from dpcore.events import KNormEvent
from dpcore.sampling.k_norm import Norm, k_norm_noise
from dpcore.sampling.source import RandomSource
from dpcore.statistic import Noisy


@dataclass(frozen=True)
class DiscreteKNorm:
    """P(z) proportional to exp(-||z||/scale) for blocks of ``dimension`` cells: exactly
    (sensitivity/scale)-DP.

    ``sensitivity``: the largest norm, rounded up, of the difference of neighbours.
    """

    size: int
    dimension: int
    norm: Norm
    sensitivity: int
    scale: Fraction

    sparse = False

    @classmethod
    def within(
        cls, share: Budget, dimension: int, norm: Norm, sensitivity_squared: Fraction
    ) -> DiscreteKNorm:
        """The mechanism that spends all of the share's alpha; the norm is rounded up here."""
        sensitivity = math.isqrt(math.ceil(sensitivity_squared) - 1) + 1
        scale = laplace_scale(Fraction(sensitivity), share.alpha)
        return cls(dimension, dimension, norm, sensitivity, scale)

    @property
    def event(self) -> KNormEvent:
        return KNormEvent(self.norm, self.dimension, self.sensitivity, self.scale)

    @property
    def stddev(self) -> float:
        """Of one coordinate, but for a part of the order of dimension/scale."""
        d = self.dimension
        in_units = {"l2": (d + 1), "cube": (d + 1) * (d + 2) / 3, "discs": (d + 1) * (d + 2) / 4}
        return float(self.scale) * math.sqrt(in_units[self.norm])

    def draw(
        self, values: NDArray[np.int64], cells: NDArray[np.int64] | None, source: RandomSource
    ) -> Noisy:
        blocks = len(values) // self.dimension
        noise = k_norm_noise(self.norm, self.scale, self.dimension, blocks, source)
        return Noisy(values + noise.ravel(), reproducible=source.reproducible)
