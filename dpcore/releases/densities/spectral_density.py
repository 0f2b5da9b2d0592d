"""A density from noisy whitened coefficients, sqrt(lambda_k) mean phi_k.

Gaussian noise on them has the covariance of the kernel, which is optimal to within a few per cent.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np

from dpcore.arrays import Floats, Integers
from dpcore.domain.lattice import Lattice, transform_roundings
from dpcore.domain.tally import Tally
from dpcore.line.mechanism import AdditiveNoise
from dpcore.line.statistic import Noisy
from dpcore.mechanisms import DiscreteGaussian
from dpcore.releases.densities.basis import Basis
from dpcore.releases.densities.density import Density


@dataclass(frozen=True)
class WhitenedDensity(Density):
    """Noise on sqrt(lambda_k) mean phi_k, measured in steps of a lattice."""

    most_bits: ClassVar[int] = 24
    """The sensitivity is at most 2 to this power steps."""

    @property
    @abstractmethod
    def mechanism(self) -> AdditiveNoise: ...

    @cached_property
    def sensitivity(self) -> float:
        """The L2 sensitivity of the whitened coefficients.

        The squared distance of the whitened coefficients of two records is k(x,x) + k(y,y) -
        2 k(x,y) <= 2 (product of largest k - product of smallest k), attained at opposite corners, or
        half a turn away; leaving out frequencies only lowers it, and then a sum of bounds applies.  The
        squared length for one record is at most k(x,x), and is lowered likewise.
        """
        largest, smallest = self.basis.extremes
        # Without any function the bounds are 0, but noise needs a scale.
        moved = min(2 * (largest - smallest), self.basis.widest or math.inf)
        present = min(largest, self.basis.longest or math.inf)
        square = self.adjacency.squared(moved=self.between_records(moved, present), present=present)
        return math.sqrt(square) / self.rows * (1 + 1e-12)

    @cached_property
    def lattice(self) -> Lattice:
        return Lattice.for_sensitivity(
            self.sensitivity, self.basis.size, self.most_rows, self.most_bits, self._roundings
        )

    @property
    def one_record(self) -> int:
        # A record has at least 1/rows of the constant coefficient, in steps of the lattice.
        return math.floor(1 / (self.rows * self.lattice.step))

    @property
    def largest_statistic(self) -> int:
        # In any coordinate two records may have opposite values, and a missing record is zero in all: so
        # no coordinate of a record exceeds the sensitivity.
        return Lattice.largest(self.most_rows, self.most_bits, self._roundings)

    @property
    def _roundings(self) -> int:
        return transform_roundings(self.answered.shape)

    def numbers(self, tally: Tally) -> Integers:
        tally = self.with_values(tally)
        share = self.adjacency.taper(tally.total, self.most_rows) / self.rows
        weights = np.multiply(tally.dense().reshape(self.answered.shape), share, dtype=np.float64)
        whitened = np.sqrt(self.basis.lambdas) * self.basis.means(weights)
        return self.lattice.encode(whitened)

    def coefficients(self, noisy: Noisy) -> Floats:
        return np.asarray(np.sqrt(self.basis.lambdas) * self.lattice.decode(noisy.values))

    @cached_property
    def coefficient_variances(self) -> Floats:
        return np.asarray(self.basis.lambdas * (self.lattice.step * self.mechanism.stddev) ** 2)


@dataclass(frozen=True)
class SpectralDensity(WhitenedDensity):
    """Gaussian noise with the covariance of the kernel: (alpha, beta)-DP.

    ``terms``: frequencies kept along each axis, a truncated Mercer expansion of the kernel (None: all
    that are not negligible).
    """

    terms: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.terms is not None and self.terms < 1:
            raise ValueError("terms: must be positive")

    @cached_property
    def basis(self) -> Basis:
        shape = self.answered.shape
        if self.terms is not None:
            shape = tuple(min(size, self.functions.limit(self.terms)) for size in shape)
        return self.functions(self.answered.shape, self.bandwidths, shape, self.counts_mass)

    @property
    def _rounded(self) -> Lattice:
        """The lattice of all numbers that differ between neighbours, each of which is rounded."""
        return replace(self.lattice, size=self.touched * self.lattice.size)

    @cached_property
    def mechanism(self) -> DiscreteGaussian:
        return self.gaussian(self.basis.size, self._rounded.l2_sensitivity_squared)
