"""A histogram over a domain far larger than memory: noise, then a threshold, on every cell.

The mechanism is discrete Laplace noise on every cell of the domain, of which only the noisy counts
above the threshold tau are kept; keeping is post-processing, so the guarantee is that of the noise
for every tau (Hall 2012, section 2.4.1).  The law is drawn without visiting the empty cells:

    occupied cells   count + noise, kept where it is above tau
    empty cells      how many exceed tau: binomial; which: uniform; by how much: geometric

in time proportional to the occupied cells and the false positives (METHODS i).  The result is
sorted by cell, so the order tells nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpcore.accounting import laplace_scale
from dpcore.budget import Budget
from dpcore.mechanisms.additive import LaplaceNoise
from dpcore.sampling import discrete_laplace as laplace
from dpcore.sampling.source import RandomSource
from dpcore.sampling.sparse import distinct_integers, threshold_exceedances
from dpcore.statistic import Noisy


@dataclass(frozen=True)
class ThresholdedLaplace(LaplaceNoise):
    """Discrete Laplace noise on ``size`` cells, of which those above ``threshold`` are kept.

    ``stddev`` and ``half_width`` are those of the noise before the threshold.
    """

    threshold: int

    sparse = True

    @classmethod
    def within(cls, share: Budget, size: int, l1_sensitivity: Fraction) -> ThresholdedLaplace:
        """The mechanism that spends all of the share's alpha, with tau = scale * ln(size).

        Of the empty cells half a one is expected to pass that threshold.
        """
        scale = laplace_scale(l1_sensitivity, share.alpha)
        return cls(size, l1_sensitivity, scale, math.ceil(scale * Fraction(math.log(size))))

    def draw(
        self, values: NDArray[np.int64], cells: NDArray[np.int64] | None, source: RandomSource
    ) -> Noisy:
        assert cells is not None  # the privacy line checks the layout
        noisy = values + laplace.discrete_laplace(self.scale, len(values), source)
        kept = noisy > self.threshold
        passed = threshold_exceedances(self.size - len(cells), self.scale, self.threshold, source)
        false_cells = distinct_integers(self.size, passed, cells, source)
        false_values = self.threshold + 1 + laplace.geometric(self.scale, passed, source)
        all_cells = np.concatenate([cells[kept], false_cells])
        all_values = np.concatenate([noisy[kept], false_values])
        order = np.argsort(all_cells)
        return Noisy(all_values[order], all_cells[order], source.reproducible)
