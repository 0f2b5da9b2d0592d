"""A pure-alpha density by Laplace noise on the first whitened coefficients of one column.

With a small bandwidth it is the perturbed orthogonal series of Wasserman & Zhou (2010, section 6), at
the sensitivity of the basis itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpcore.mechanisms import DiscreteLaplace
from dpcore.releases.densities.basis import Basis
from dpcore.releases.densities.spectral_density import WhitenedDensity

MOST_TERMS = 16
"""The L1 sensitivity grows with every term: if more terms reduced the error, binning would be better."""


@dataclass(frozen=True)
class CoefficientDensity(WhitenedDensity):
    """Independent Laplace noise on the first ``terms`` coefficients of one column: pure alpha.

    ``terms``: None means as many as allowed.  Terms that the bandwidth damps add hardly any noise: with
    fewer, the total error would be at most 1.7% smaller.
    """

    terms: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.bandwidths) != 1:
            raise ValueError("columns: coefficient-laplace is for one column; use binned-laplace")
        if self.terms is not None and not 1 <= self.terms <= MOST_TERMS:
            raise ValueError(f"terms: coefficient-laplace takes from 1 to {MOST_TERMS}")

    @cached_property
    def basis(self) -> Basis:
        limits = (self.functions.limit(self.terms or MOST_TERMS),)
        return self.functions(self.answered.shape, self.bandwidths, limits, self.counts_mass)

    @cached_property
    def l1_sensitivity(self) -> float:
        """A bound: the largest distance between points of a grid, plus a bound for points in between.

        Each of two records may be up to half a step from the nearest grid point.  The term of one record
        is also at most the sum of the largest values of all functions, plus 1 for the constant function
        if its coefficient gets noise.
        """
        from scipy.spatial.distance import pdist  # slow to import, and few plans need it

        steps, first = 64 * max(8, self.basis.size), int(self.basis.mass)
        half_turns = self.functions.frequency(self.basis.frequencies[first:, 0])
        heights = np.sqrt(2 * self.basis.lambdas[first:])
        net = np.arange(steps + 1)[:, None] / steps
        waves = (self.basis.functions(net) * np.sqrt(self.basis.lambdas)).T[first:]
        farthest = float(pdist(waves.T, "cityblock").max())
        between = float(heights @ (np.pi * half_turns)) / steps
        present = 1 + min(float(heights.sum()), float(np.abs(waves).sum(axis=0).max()) + between)
        apart: float = self.adjacency.sensitivity(
            moved=self.between_records(farthest + between, present), present=present
        )
        return apart / self.rows * (1 + 1e-12)

    @cached_property
    def mechanism(self) -> DiscreteLaplace:
        return DiscreteLaplace.within(
            self.share, self.basis.size, self.lattice.l1_sensitivity(self.l1_sensitivity)
        )
