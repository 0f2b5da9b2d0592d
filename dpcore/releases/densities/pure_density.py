"""Pure-alpha densities from noisy cosine coefficients: gamma noise, and Laplace noise on a few.

    GammaDensity          Euclidean K-norm noise on the whitened coefficients, which is Mahalanobis
                          noise on the coefficients themselves (METHODS b, c); up to 16 of them
    CoefficientDensity    discrete Laplace noise on the first whitened coefficients of one column: with
                          a small bandwidth the perturbed orthogonal series of Wasserman & Zhou
                          (2010, section 6), at the sensitivity of the basis itself

Both are exact, with no Markov chain.  For small bandwidths linear binning (``BinnedDensity``) is the
better pure mechanism: its error does not grow with the number of coefficients.  The smaller body of
the thesis (Hall 2012, chapter 4) is offered in neither form: its noise as printed loses
alpha (m + 1) / 2 (METHODS c), and the right one can be drawn only by a chain whose error would have
to be paid with a beta that nobody can state.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpcore.mechanisms import DiscreteKNorm, DiscreteLaplace
from dpcore.releases.densities.basis import Basis
from dpcore.releases.densities.left_out import least_left_out
from dpcore.releases.densities.spectral_density import WhitenedDensity
from dpcore.sampling.k_norm import LARGEST_DIMENSION

DAMPED = 0.01
"""Functions damped less than this are kept, always; whether others are is a matter of noise."""


@dataclass(frozen=True)
class GammaDensity(WhitenedDensity):
    """Noise whose length in the kernel's own norm follows a gamma law: pure alpha."""

    most_bits = 16
    """Squares of noisy coordinates mostly fit in 64 bits."""

    @cached_property
    def basis(self) -> Basis:
        """More functions the more records and alpha there are: what is left out, in the worst case,
        is to be small beside the noise."""
        first, *others = (self._above(DAMPED / 4**k) for k in range(12))
        if not 1 <= first.size <= LARGEST_DIMENSION:
            raise ValueError(
                f"bandwidth: asks for {first.size} coefficients, and spectral-gamma takes from 1 to"
                f" {LARGEST_DIMENSION}; use another bandwidth, or binned-laplace"
            )
        return least_left_out([first, *others], LARGEST_DIMENSION, self._typical_noise)

    def _above(self, damped: float) -> Basis:
        """All functions that no axis damps below this."""
        limits = tuple(self.functions.limit_above(damped, h) for h in self.bandwidths)
        return self.functions(self.answered.shape, self.bandwidths, limits, self.counts_mass)

    @cached_property
    def mechanism(self) -> DiscreteKNorm:
        squared = self.lattice.l2_sensitivity_squared
        return DiscreteKNorm.within(self.share, self.basis.size, squared)


@dataclass(frozen=True)
class CoefficientDensity(WhitenedDensity):
    """Independent Laplace noise on the first ``terms`` coefficients of one column: pure alpha.

    ``terms``: None: as many as the noise makes worth while (``least_left_out``).
    """

    terms: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.bandwidths) != 1:
            raise ValueError("columns: coefficient-laplace is for one column; use binned-laplace")
        if self.terms is not None and not 1 <= self.terms <= LARGEST_DIMENSION:
            raise ValueError(f"terms: coefficient-laplace takes from 1 to {LARGEST_DIMENSION}")

    @cached_property
    def basis(self) -> Basis:
        if self.terms is not None:
            return self._first(self.terms)
        some = [self._first(terms) for terms in range(1, LARGEST_DIMENSION)]
        return least_left_out(some, LARGEST_DIMENSION, self._typical_noise)

    def _first(self, terms: int) -> Basis:
        limits = (self.functions.limit(terms),)
        return self.functions(self.answered.shape, self.bandwidths, limits, self.counts_mass)

    @cached_property
    def l1_sensitivity(self) -> float:
        """The largest distance between two places of a net, and what places in between may add.

        No place is farther than half a step from the net, and both records may move by so much.  One
        record has no more than all functions at their largest; the constant counts where its coefficient
        is noisy.
        """
        steps, first = 64 * max(8, self.basis.size), int(self.basis.mass)
        half_turns = self.functions.frequency(self.basis.frequencies[first:, 0])
        heights = np.sqrt(2 * self.basis.lambdas[first:])
        net = np.arange(steps + 1)[:, None] / steps
        waves = (self.basis.functions(net) * np.sqrt(self.basis.lambdas)).T[first:]
        farthest = max(
            float(np.abs(waves - waves[:, i : i + 1]).sum(axis=0).max()) for i in range(steps + 1)
        )
        between = float(heights @ (np.pi * half_turns)) / steps
        present = 1 + min(float(heights.sum()), float(np.abs(waves).sum(axis=0).max()) + between)
        apart: float = self.adjacency.sensitivity(
            moved=self.apart(farthest + between, present), present=present
        )
        return apart / self.rows * (1 + 1e-12)

    @cached_property
    def mechanism(self) -> DiscreteLaplace:
        return DiscreteLaplace.within(
            self.share, self.basis.size, self.lattice.l1_sensitivity(self.l1_sensitivity)
        )
