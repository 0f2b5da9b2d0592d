"""Densities and counts of several parts of the records, where each record is in one part.

**Lemma.**  Let a record that comes or goes move the numbers of its part by ``present`` at most, and one
that is replaced within a part by ``moved``.  Then a step to a neighbour moves all numbers by

    L1    moved, or 2 present where a record leaves one part for another
    L2    the root of moved^2, or of 2 present^2: the numbers of two parts have no coordinate in common

*Proof.*  A record is in one part, or in none.  A step adds or removes a record, which is ``present``, or
replaces one: within its part, or as one that goes from a part and one that comes to another.  All other
parts stay as they are.  QED

Of ``binned-laplace`` moved is 2 present already, so that the parts cost nothing; of
``spectral-gaussian`` moved^2 is 2 (largest - smallest) and present^2 is ``largest``, so that they cost
little where the bandwidth is small.  Rounding to a lattice counts in each part that a step may touch.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property

from dpcore.mechanisms import DiscreteGaussian, DiscreteLaplace
from dpcore.releases.abilities import EstimatesDensity
from dpcore.releases.densities.binned_density import BinnedDensity
from dpcore.releases.densities.density import Density
from dpcore.releases.densities.spectral_density import SpectralDensity


@dataclass(frozen=True)
class DensityParts(EstimatesDensity):
    """``density``: its columns and form are those of the density of each part."""

    density: Density | None = None

    finer = "a larger bandwidth, fewer groups or fewer columns"
    statistics = Density.statistics

    def __post_init__(self) -> None:
        if not isinstance(self.each, BinnedDensity | SpectralDensity):
            raise ValueError("by: only with the mechanisms binned-laplace and spectral-gaussian")
        super().__post_init__()

    @cached_property
    def each(self) -> Density:
        """The density of one part, of this share and for these neighbours."""
        assert self.density is not None
        return replace(
            self.density,
            rows=self.rows,
            share=self.share,
            adjacency=self.adjacency,
            grouped=True,
        )

    @property
    @abstractmethod
    def error_parts(self) -> dict[str, float]:
        """The typical noise in a density, and bounds of what is left out, relative to a uniform one."""

    @property
    @abstractmethod
    def numbers(self) -> int:
        """How many numbers all parts have together."""

    @cached_property
    def mechanism(self) -> DiscreteLaplace | DiscreteGaussian:
        alone = self.each.mechanism
        assert isinstance(alone, DiscreteLaplace | DiscreteGaussian)
        return replace(alone, size=self.numbers)

    @property
    def largest_statistic(self) -> int:
        return self.each.largest_statistic
