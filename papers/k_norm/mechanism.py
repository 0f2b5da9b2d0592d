"""K-norm noise on an integer vector: with the Euclidean norm, the gamma mechanism.

Claim.  Input: integer vectors in blocks of ``dimension`` = d cells.  Neighbours: any relation under
which two vectors differ by at most ``sensitivity`` = D in the norm ||.||, a whole number.  Output:
x + Z, P(Z = z) proportional to exp(-||z||/scale).  It is (D/scale, 0, 0)-DP and (D/scale)^2/2-zCDP.

Preconditions.  1 <= d <= 16 and 1 <= scale <= 2^32 (checked when it is made); 0 < D <= alpha scale (the
privacy line checks it).  The release claims D; ``within`` rounds it up.

Proof.  ||.|| is the Euclidean length rounded up to a whole number: symmetric, and sub-additive since a
sum rounded up is at most the sum of the rounded terms.  So ||y - x'|| - ||y - x|| <= ||x - x'|| <= D.
In whitened coordinates this is the noise of a Mahalanobis norm.

Ranges.  Squares of coordinates from 2^29 on are added up in whole numbers of any size; the length
follows a gamma law of mean d scale < 2^36, so a coordinate passes 2^62 with a chance below exp(-2^25).
The draw is by rejection from Laplace noise with whole numbers alone.

Source.  Hardt & Talwar 2010, section 4; Hall 2012, section 1.3.3.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dpcore.accounting.budget import Budget
from dpcore.arrays import Floats, Integers
from dpcore.line.mechanism import AdditiveNoise, Event, Outputs
from dpcore.line.statistic import Noisy, Statistic
from dpcore.mechanisms.laplace import laplace_scale
from dpcore.sampling.source import RandomSource
from papers.k_norm.sampler import drawable, k_norm_noise, lattice_norm


@dataclass(frozen=True)
class KNormEvent(Event):
    """Noise P(z) proportional to exp(-||z||/scale) on integer vectors of ``dimension`` numbers.

    ||z||: the Euclidean length, rounded up; ``sensitivity``: the largest difference of neighbours in it.
    """

    kind = "discrete-k-norm"

    dimension: int
    sensitivity: int
    scale: Fraction

    @property
    def pure_alpha(self) -> Fraction:
        return self.sensitivity / self.scale

    def covered_by(self, share: Budget) -> bool:
        return self.scale > 0 and 0 < self.sensitivity <= share.alpha * self.scale


@dataclass(frozen=True)
class DiscreteKNorm(AdditiveNoise):
    """P(z) proportional to exp(-||z||/scale) for blocks of ``dimension`` cells: exactly
    (sensitivity/scale)-DP.

    ``sensitivity``: the largest norm, rounded up, of the difference of neighbours.
    """

    dimension: int
    sensitivity: int
    scale: Fraction

    side_by_side = True
    comparable = True

    def __post_init__(self) -> None:
        drawable(self.scale)

    @classmethod
    def within(cls, share: Budget, dimension: int, sensitivity_squared: Fraction) -> DiscreteKNorm:
        """The mechanism that spends all of the share's alpha; the norm is rounded up here."""
        sensitivity = math.isqrt(math.ceil(sensitivity_squared) - 1) + 1
        scale = laplace_scale(Fraction(sensitivity), share.pure_alpha)
        return cls(dimension, dimension, sensitivity, scale)

    @property
    def event(self) -> KNormEvent:
        return KNormEvent(self.dimension, self.sensitivity, self.scale)

    @property
    def stddev(self) -> float:
        """The standard deviation of one coordinate, up to a relative error of order dimension/scale."""
        return float(self.scale) * math.sqrt(self.dimension + 1)

    def draw(self, statistic: Statistic, source: RandomSource) -> Noisy:
        blocks = len(statistic.values) // self.dimension
        noise = k_norm_noise(self.scale, self.dimension, blocks, source)
        return Noisy(statistic.values + noise.ravel(), reproducible=source.reproducible)

    def simulate(self, size: int, generator: np.random.Generator) -> Integers:
        """Approximate noise for simulations: continuous noise, rounded."""
        directions = generator.normal(size=(size // self.dimension, self.dimension))
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        lengths = generator.gamma(self.dimension, float(self.scale), (len(directions), 1))
        return np.rint(directions * lengths).astype(np.int64).ravel()

    def log_chances(self, outputs: Outputs, exact: Statistic, factors: Floats) -> Floats | None:
        noise = (outputs - exact.values).reshape(-1, self.dimension)
        lengths = lattice_norm(noise).reshape(len(outputs), -1)
        return length_chances(lengths, self.dimension, float(self.scale), factors)

    def moved_by(self, near: Statistic, far: Statistic) -> float:
        moved = (near.values - far.values).reshape(-1, self.dimension)
        return float(lattice_norm(moved).max() / self.sensitivity)


SMOOTH = 64.0
"""From this scale on, the number of lattice points in a ball equals its volume, to within 1e-3."""


def length_chances(
    lengths: Integers, dimension: int, scale: float, factors: Floats
) -> Floats | None:
    """``log_chances`` of noise P(z) proportional to exp(-||z||/scale), by its lengths (n, blocks).

    The number of points of length r is the volume of a ball of radius r minus that of radius r - 1, so
    that the weights add up to a constant times (1 - exp(-1/scale)) scale^(dimension + 1).
    """
    total, blocks = lengths.sum(axis=1).astype(np.float64), lengths.shape[1]
    if scale < SMOOTH and len(factors) > 1:  # the total weights are not known precisely enough
        return None
    wide = scale * factors
    log_sums = (dimension + 1) * np.log(wide) + np.log(-np.expm1(-1 / wide))
    return np.asarray(-np.outer(total, 1 / wide) - blocks * log_sums)
