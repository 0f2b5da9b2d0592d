"""Pure-alpha densities from noisy cosine coefficients: gamma noise, and Laplace noise on one or two.

    GammaDensity          Euclidean K-norm noise on the whitened coefficients, which is Mahalanobis
                          noise on the coefficients themselves (METHODS b, c); up to 16 of them
    CoefficientDensity    discrete Laplace noise on the first two whitened coefficients

Both are exact, with no Markov chain.  For small bandwidths linear binning (``BinnedDensity``) is the
better pure mechanism: its error does not grow with the number of coefficients.  The smaller body of
the thesis (Hall 2012, chapter 4) is offered in neither form: its noise as printed loses
alpha (m + 1) / 2 (METHODS c), and the right one can be drawn only by a chain whose error would have
to be paid with a beta that nobody can state.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpcore.lattice import Lattice
from dpcore.mechanisms import DiscreteKNorm, DiscreteLaplace
from dpcore.releases.cosines import Cosines
from dpcore.releases.spectral_density import WhitenedDensity
from dpcore.sampling.k_norm import LARGEST_DIMENSION

DAMPED = 0.01
"""Frequencies damped below this are left out: noise is paid for each."""

_BITS = 16
"""The sensitivity is so many bits of steps: squares of noisy coordinates mostly fit in 64 bits."""


@dataclass(frozen=True)
class GammaDensity(WhitenedDensity):
    """Noise whose length in the kernel's own norm follows a gamma law: pure alpha."""

    @cached_property
    def basis(self) -> Cosines:
        reach = math.sqrt(2 * math.log(1 / DAMPED)) / math.pi
        limits = tuple(1 + math.floor(reach / bandwidth) for bandwidth in self.bandwidths)
        basis = Cosines(self.domain.shape, self.bandwidths, limits, self.counts_mass)
        if not 1 <= basis.size <= LARGEST_DIMENSION:
            raise ValueError(
                f"bandwidth: asks for {basis.size} coefficients, and spectral-gamma takes from 1 to"
                f" {LARGEST_DIMENSION}; use another bandwidth, or binned-laplace"
            )
        return basis

    @cached_property
    def lattice(self) -> Lattice:
        return Lattice.for_sensitivity(self.sensitivity, self.basis.size, self.most_rows, _BITS)

    @cached_property
    def mechanism(self) -> DiscreteKNorm:
        squared = self.lattice.l2_sensitivity_squared
        return DiscreteKNorm.within(self.share, self.basis.size, "l2", squared)


@dataclass(frozen=True)
class CoefficientDensity(WhitenedDensity):
    """Independent Laplace noise on the first two coefficients of one column: pure alpha."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.bandwidths) != 1:
            raise ValueError("columns: coefficient-laplace is for one column; use binned-laplace")

    @cached_property
    def basis(self) -> Cosines:
        return Cosines(self.domain.shape, self.bandwidths, (3,), self.counts_mass)

    @cached_property
    def l1_sensitivity(self) -> float:
        """With u = cos(pi x), the first two basis functions are sqrt2 u and sqrt2 (2 u^2 - 1).

        So two records are sqrt2 |u - v| (a + 2 b |u + v|) apart, a^2 and b^2 being the first two
        lambdas: the most at u = 1 and v = -min(1, a/(4b)).  One record has the most at u = 1, the
        constant counted where its coefficient is noisy.
        """
        varying = np.sqrt(self.basis.lambdas[int(self.basis.mass) :]).tolist()
        first, second = (*varying, 0.0, 0.0)[:2]
        v = -min(1.0, first / (4 * second)) if second else -1.0
        apart: float = self.adjacency.sensitivity(
            moved=math.sqrt(2) * (1 - v) * (first + 2 * second * (1 + v)),
            present=1 + math.sqrt(2) * (first + second),
        )
        return apart / self.rows * (1 + 1e-12)

    @cached_property
    def mechanism(self) -> DiscreteLaplace:
        return DiscreteLaplace.within(
            self.share, self.basis.size, self.lattice.l1_sensitivity(self.l1_sensitivity)
        )
