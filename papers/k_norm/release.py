"""A pure-alpha density by gamma noise: the Euclidean K-norm on the whitened coefficients.

It is Mahalanobis noise on the coefficients themselves, on up to 16 of them, and exact,
with no Markov chain.  For small bandwidths linear binning (``BinnedDensity``) is the better pure
mechanism: its error does not grow with the number of coefficients.  The smaller body of the thesis
(Hall 2012, chapter 4) is not offered: its noise as printed loses alpha (m + 1) / 2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

from dpcore.releases.densities.basis import Basis
from dpcore.releases.densities.spectral_density import WhitenedDensity
from papers.k_norm.mechanism import DiscreteKNorm
from papers.k_norm.sampler import LARGEST_DIMENSION
from papers.least_left_out import least_left_out

DAMPED = 0.01
"""Functions damped less than this are always kept; others only if they reduce the total error."""


@dataclass(frozen=True)
class GammaDensity(WhitenedDensity):
    """Noise whose length in the kernel's own norm follows a gamma law: pure alpha."""

    most_bits = 16
    """With this limit, squares of noisy coordinates mostly fit in 64 bits."""

    @cached_property
    def basis(self) -> Basis:
        """More functions for more records or alpha, so that the worst truncation error is small relative
        to noise."""
        first, *others = (self._above(DAMPED / 4**k) for k in range(12))
        if not 1 <= first.size <= LARGEST_DIMENSION:
            raise ValueError(
                f"bandwidth: asks for {first.size} coefficients, and spectral-gamma takes from 1 to"
                f" {LARGEST_DIMENSION}; use another bandwidth, or binned-laplace"
            )
        return least_left_out([first, *others], LARGEST_DIMENSION, self._typical_noise)

    def _above(self, damped: float) -> Basis:
        """All functions that no axis damps below this factor."""
        limits = tuple(self.functions.limit_above(damped, h) for h in self.bandwidths)
        return self.functions(self.answered.shape, self.bandwidths, limits, self.counts_mass)

    def _typical_noise(self, basis: Basis) -> float:
        """The approximate root mean square of the noise in the functions of ``basis``."""
        per_record = math.sqrt(float(basis.lambdas.sum()) * (len(basis.lambdas) + 1))
        square = self.adjacency.squared(moved=8 * float(basis.lambdas.sum()), present=basis.longest)
        return (
            per_record * math.sqrt(square) / float(self.share.pure_alpha) / self.rows / math.sqrt(2)
        )

    @cached_property
    def mechanism(self) -> DiscreteKNorm:
        squared = self.lattice.l2_sensitivity_squared
        return DiscreteKNorm.within(self.share, self.basis.size, squared)
