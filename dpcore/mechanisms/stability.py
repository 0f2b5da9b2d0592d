"""A histogram over any number of cells that spends beta: noise on occupied cells, then a threshold.

An empty cell is never published, so nothing is spent on them; what is spent is beta, on a cell that
is published because one record is in it (Korolova et al. 2009; Bun, Nissim & Stemmer 2016, section 3).
Let a record move from cell x to cell y; s is the scale, tau the threshold, a = exp(-1/s), and

    p = P(1 + Z > tau) = a^tau / (1 + a)        the chance that a cell with one record is published

    x keeps a record, y had one    both counts move by one under Laplace noise: loss 2/s, beta 0
    x is left empty                D may show x with chance p, D' never: beta p.  If x is not shown,
                                   D has 1 - p of the chance of D' there: P' - e^(2/s) (1 - p) P is
                                   at most p, since P' <= e^(1/s) P for y
    y was empty                    the same, with D and D' exchanged
    both                           D shows x with chance p, D' shows y with chance p, and neither is
                                   shown with the same chance

    a record is removed            its cell keeps another: loss 1/s.  It is left empty: D shows it with
                                   chance p, D' never, and what is not shown differs in nothing else

so (2/s, p)-DP, (1/s, p) where records are added or removed, and one cell at most costs beta in
either direction (METHODS i).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpcore.accounting import laplace_scale, stability_threshold
from dpcore.budget import Budget
from dpcore.events import StabilityEvent
from dpcore.mechanisms.additive import LaplaceNoise
from dpcore.sampling import discrete_laplace as laplace
from dpcore.sampling.source import RandomSource
from dpcore.statistic import Noisy


@dataclass(frozen=True)
class StabilityLaplace(LaplaceNoise):
    """Discrete Laplace noise on occupied cells, of which those above ``threshold`` are kept.

    ``stddev`` and ``half_width`` are those of the noise before the threshold.
    """

    threshold: int

    sparse = True

    @classmethod
    def within(cls, share: Budget, size: int, l1_sensitivity: Fraction) -> StabilityLaplace:
        """The mechanism that spends all of the share's alpha and beta: the least threshold."""
        scale = laplace_scale(l1_sensitivity, share.alpha)
        return cls(size, l1_sensitivity, scale, stability_threshold(scale, share.beta))

    @property
    def event(self) -> StabilityEvent:
        return StabilityEvent(self.l1_sensitivity, self.scale, self.threshold)

    def draw(
        self, values: NDArray[np.int64], cells: NDArray[np.int64] | None, source: RandomSource
    ) -> Noisy:
        assert cells is not None  # the privacy line checks the layout
        noisy = values + laplace.discrete_laplace(self.scale, len(values), source)
        kept = (values > 0) & (noisy > self.threshold)
        return Noisy(noisy[kept], cells[kept], source.reproducible)
