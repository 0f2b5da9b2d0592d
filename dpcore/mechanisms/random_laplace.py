"""Noise on all counts except low ones, which stay exact: random differential privacy.

Claim.  Input: counts of n records over k cells.  Neighbours: n + 1 independent draws of one
population, the last of which replaces the last but one.  Output: counts below the public number u =
``exact_below`` unchanged, and all others with discrete Laplace noise.  It is (alpha, 0, gamma)-random
DP with alpha = l1_sensitivity/scale and

    gamma = L (2n + 1 - L) / (n (n + 1)),    L = min(k u, n + 1).

Preconditions.  Noise as for discrete Laplace noise; 0 < gamma <= the share's gamma < 1 (the privacy line
checks them); only releases of one record per person, n being public, make this mechanism.

Proof.  Two tables that differ in one record are as hard to distinguish as with noise everywhere, unless
the record lies in a cell with at most u records.  At most k u of the n + 1 draws lie in such cells;
gamma is the chance that one of the two exchangeable draws does.

Ranges.  Those of discrete Laplace noise; gamma is an exact fraction.

Source.  Hall, Rinaldo & Wasserman 2011.

u = 1 publishes empty cells exactly, a larger u low counts as well.  gamma is a chance per record:
about gamma n people may be in cells that are published exactly.

>>> chance_of_exposure(cells=25, rows=500, exact_below=1)
Fraction(244, 2505)
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dpcore.accounting.budget import Budget
from dpcore.arrays import Booleans, Floats, Integers
from dpcore.line.mechanism import Outputs, WorstTable
from dpcore.line.statistic import Noisy, Statistic
from dpcore.mechanisms.laplace import LaplaceEvent, LaplaceNoise, laplace_chances, laplace_scale
from dpcore.sampling import discrete_laplace as laplace
from dpcore.sampling.source import RandomSource


@dataclass(frozen=True)
class RandomLaplaceEvent(LaplaceEvent):
    """Discrete Laplace noise on counts, except low counts, which are published exactly.

    ``exposure``: the chance that noise does not protect a random record or its random replacement; this
    is the event's price in gamma.
    """

    kind = "random-discrete-laplace"

    exposure: Fraction

    @property
    def spent_gamma(self) -> Fraction:
        return self.exposure

    def covered_by(self, share: Budget) -> bool:
        return 0 < self.exposure <= share.gamma < 1 and super().covered_by(share)


@dataclass(frozen=True)
class RandomLaplace(LaplaceNoise):
    """Discrete Laplace noise on every count of at least ``exact_below``; lower counts stay exact.

    ``exposure``: the price in gamma.  ``stddev`` and ``half_width`` describe the noise; a count that is
    published exactly has no error.
    """

    exact_below: int
    exposure: Fraction

    @classmethod
    def within(
        cls, share: Budget, size: int, l1_sensitivity: Fraction, rows: int, exact_below: int | None
    ) -> RandomLaplace:
        """Return the mechanism that spends all of the share's alpha.

        ``exact_below``: u; if None, the largest u that gamma allows.  Raises ``ValueError`` if gamma is
        too small.
        """
        least = chance_of_exposure(size, rows, exact_below or 1)
        if least > share.gamma:
            raise ValueError(
                f"random differential privacy of {size} cells and {rows} records costs a"
                f" gamma of at least {float(least):.3g}; the release has {float(share.gamma):.3g}. Use"
                " fewer cells, more gamma, or the mechanism discrete-laplace"
            )
        if exact_below is None:
            # The price never falls as u rises.
            above = bisect_right(
                range(rows + 2), share.gamma, key=lambda u: chance_of_exposure(size, rows, u)
            )
            exact_below = above - 1
        exposure = chance_of_exposure(size, rows, exact_below)
        scale = laplace_scale(l1_sensitivity, share.pure_alpha)
        return cls(size, l1_sensitivity, scale, exact_below, exposure)

    @property
    def event(self) -> RandomLaplaceEvent:
        return RandomLaplaceEvent(self.l1_sensitivity, self.scale, self.exposure)

    def exact(self, counts: Integers | Floats) -> Booleans:
        """Which counts are published unchanged."""
        return np.asarray(counts < self.exact_below)

    def draw(self, statistic: Statistic, source: RandomSource) -> Noisy:
        noise = laplace.discrete_laplace(self.scale, self.size, source)
        noise[self.exact(statistic.values)] = 0
        return Noisy(statistic.values + noise, reproducible=source.reproducible)

    def log_chances(self, outputs: Outputs, exact: Statistic, factors: Floats) -> Floats:
        noisy = ~self.exact(exact.values)
        noise = outputs[:, noisy] - exact.values[noisy]
        return laplace_chances(noise, float(self.scale), factors)

    def worst_counts(self, rows: int) -> Iterator[WorstTable]:
        """A table with a cell at the lowest noisy count; removing one record makes the cell exact."""
        low = self.exact_below
        if self.size > 1 and rows > 2 * low + 1:
            yield "a count at its limit", {0: rows - 1 - low, self.size - 1: low}, 0, self.size - 1


def chance_of_exposure(cells: int, rows: int, exact_below: int) -> Fraction:
    """gamma of the module's theorem, if counts below ``exact_below`` are published exactly."""
    low = min(cells * exact_below, rows + 1)
    return Fraction(low * (2 * rows + 1 - low), rows * (rows + 1))
