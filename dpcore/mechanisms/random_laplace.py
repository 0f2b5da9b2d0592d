"""Noise on all counts but low ones: random differential privacy (Hall, Rinaldo & Wasserman 2011).

Counts below a public number u are told as they are, all others get discrete Laplace noise.  Two
tables that differ in one record are then as hard to tell apart as with noise everywhere, unless the
record stands in a cell with at most u records.  For n + 1 independent draws of one population, of
which the last replaces the last but one, at most k u draws stand in such cells of k, and

    P(one of the two does) <= L (2n + 1 - L) / (n (n + 1)),    L = min(k u, n + 1).

That is gamma (METHODS j): u = 1 tells empty cells, a larger u low counts as well.  gamma is a chance
per record: about gamma * n people may stand in cells that are told exactly.

>>> chance_of_exposure(cells=25, rows=500, exact_below=1)
Fraction(244, 2505)
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpcore.accounting import laplace_scale
from dpcore.budget import Budget
from dpcore.events import RandomLaplaceEvent
from dpcore.mechanisms.additive import LaplaceNoise
from dpcore.sampling import discrete_laplace as laplace
from dpcore.sampling.source import RandomSource
from dpcore.statistic import Noisy


@dataclass(frozen=True)
class RandomLaplace(LaplaceNoise):
    """Discrete Laplace noise on every count from ``exact_below`` on; lower ones stay as they are.

    ``exposure``: what that costs in gamma.  ``stddev`` and ``half_width`` are those of the noise; a
    count that is told exactly is nearer.
    """

    exact_below: int
    exposure: Fraction

    sparse = False

    @classmethod
    def within(
        cls, share: Budget, size: int, l1_sensitivity: Fraction, rows: int, exact_below: int | None
    ) -> RandomLaplace:
        """The mechanism that spends all of the share's alpha; ``None``: the highest u for gamma.

        Raises ``ValueError`` where the share's gamma does not allow it.
        """
        least = chance_of_exposure(size, rows, exact_below or 1)
        if least > share.gamma:
            raise ValueError(
                f"random differential privacy of {size} cells and {rows} records costs gamma ="
                f" {float(least):.3g} at least; the release has {float(share.gamma):.3g}. Use fewer"
                " cells, more gamma, or the mechanism discrete-laplace"
            )
        if exact_below is None:
            exact_below = _highest(size, rows, share.gamma)
        exposure = chance_of_exposure(size, rows, exact_below)
        scale = laplace_scale(l1_sensitivity, share.alpha)
        return cls(size, l1_sensitivity, scale, exact_below, exposure)

    @property
    def event(self) -> RandomLaplaceEvent:
        return RandomLaplaceEvent(self.l1_sensitivity, self.scale, self.exposure)

    def draw(
        self, values: NDArray[np.int64], cells: NDArray[np.int64] | None, source: RandomSource
    ) -> Noisy:
        noise = laplace.discrete_laplace(self.scale, self.size, source)
        noise[values < self.exact_below] = 0
        return Noisy(values + noise, reproducible=source.reproducible)


def chance_of_exposure(cells: int, rows: int, exact_below: int) -> Fraction:
    """The bound above: gamma, for counts below ``exact_below`` told exactly."""
    low = min(cells * exact_below, rows + 1)
    return Fraction(low * (2 * rows + 1 - low), rows * (rows + 1))


def _highest(cells: int, rows: int, gamma: Fraction) -> int:
    """The largest ``exact_below`` that gamma covers; 1 is covered."""
    covered, too_much = 1, rows + 2
    while too_much - covered > 1:
        middle = (covered + too_much) // 2
        if chance_of_exposure(cells, rows, middle) <= gamma:
            covered = middle
        else:
            too_much = middle
    return covered
