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
"""The L1 sensitivity grows with every term: where more are worth their noise, binning is better."""


@dataclass(frozen=True)
class CoefficientDensity(WhitenedDensity):
    """Independent Laplace noise on the first ``terms`` coefficients of one column: pure alpha.

    ``terms``: None: as many as there may be.  Terms that the bandwidth damps cost hardly any noise:
    with fewer the whole error would be 1.7% smaller at best.
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
        """The largest distance between two places of a net, and what places in between may add.

        No place is farther than half a step from the net, and both records may move by so much.  One
        record has no more than all functions at their largest; the constant counts where its coefficient
        is noisy.
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
