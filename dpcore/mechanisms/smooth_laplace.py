"""A sum under random differential privacy, with noise as wide as the bulk of the data (METHODS j).

The sum of n codes 0, ..., K - 1 moves by K - 1 at most, but by far less for most records.  Let
a = gamma n / 4 - 1 and, with x_(j) the ordered codes (0 below, K - 1 above),

    U_k = x_(n - a + k) - x_(a + 1 - k)            widths around the bulk, k = 0, 1, ...
    L   = max_k (level(U_k) - k)                   level(U): the first j with S_j >= U

over a public table 1 = S_0 < S_1 < ... whose steps grow by ``growth`` at most.  Replacing a record
moves every x_(j) by one place at most, so U_k(X) <= U_(k+1)(X') and L moves by one at most.  A record
and its random replacement both lie within the a + 1 outermost of the n - 1 others, on either side,
but for a chance of 4 (a + 1) / n; then the sum moves by at most U_0 <= S_L of either table.

The sum gets discrete Laplace noise of scale 2 S_L / alpha.  Changing the scale by one level costs
alpha / 2, but for a tail beyond t = scale (alpha / 2) / (growth - 1) of chance at most

    beta = exp(alpha / 4 - (alpha / 2) / (growth - 1))

(P(|Z| > t) <= exp(-(t - 1/2) / scale), and scale >= 2 / alpha); changing the sum costs alpha / 2.
The level itself is private: it is told with discrete Laplace noise, for a part of alpha, so that
the reader knows how wide the noise may be.  This is the finite-sample form of the smooth sensitivity
of Hall, Rinaldo & Wasserman (2011, section 4), on order statistics of the records in place of pairs:
pairs would depend on the order of the table, which a tally does not have.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from dpcore.budget import Budget
from dpcore.events import SmoothLaplaceEvent
from dpcore.sampling import discrete_laplace as laplace
from dpcore.sampling.source import RandomSource
from dpcore.statistic import Noisy

LEVEL_PART = Fraction(1, 10)
"""The part of alpha that tells how wide the noise is."""

LARGEST_SUM = 2**61
_STEPS = 2**20


@dataclass(frozen=True)
class SmoothLaplace:
    """The sum of codes with discrete Laplace noise of scale 2 S_L/alpha, and L with noise of its own:
    (alpha + level_alpha, beta, 4 trimmed/rows)-random DP.

    From the counts of ``codes`` codes.

    ``rows``: the public number of records; ``trimmed``: a + 1, the outermost records on either side
    that the width may miss.
    """

    size: int
    codes: int
    rows: int
    trimmed: int
    alpha: Fraction
    level_alpha: Fraction
    growth: Fraction

    sparse = True

    @classmethod
    def within(cls, share: Budget, size: int, rows: int) -> SmoothLaplace:
        """The mechanism that spends the share; raises ``ValueError`` where it cannot."""
        trimmed = math.floor(share.gamma * rows / 4)
        if trimmed < 1:
            raise ValueError(
                f"smooth sensitivity of {rows} records needs gamma of {4 / rows:.3g} at least"
            )
        if size * rows >= LARGEST_SUM:
            raise ValueError(f"a sum of {rows} codes below {size} may not fit in 64 bits")
        if not 0 < share.beta < 1:
            raise ValueError("smooth sensitivity needs beta between 0 and 1")
        level_alpha = share.alpha * LEVEL_PART
        alpha = share.alpha - level_alpha
        return cls(size, size, rows, trimmed, alpha, level_alpha, _growth(alpha, share.beta))

    @property
    def event(self) -> SmoothLaplaceEvent:
        return SmoothLaplaceEvent(
            self.alpha, self.level_alpha, self.growth, Fraction(4 * self.trimmed, self.rows)
        )

    @cached_property
    def table(self) -> tuple[Fraction, ...]:
        """S_0, S_1, ..., up to the first that covers all codes: public."""
        steps = [Fraction(1)]
        while steps[-1] < self.codes - 1:
            grown = Fraction(math.floor(steps[-1] * self.growth * _STEPS), _STEPS)
            if grown <= steps[-1]:
                raise ValueError("alpha is too small for smooth sensitivity at this beta")
            steps.append(grown)
        return tuple(steps)

    @cached_property
    def _covered(self) -> NDArray[np.int64]:
        """The widest whole number that each step covers."""
        return np.array([math.floor(step) for step in self.table])

    def scale(self, level: int) -> Fraction:
        """The scale of the noise at a level; beyond the table it is that of the nearest end."""
        return 2 * self.table[min(max(level, 0), len(self.table) - 1)] / self.alpha

    @property
    def largest_scale(self) -> Fraction:
        """The scale where records spread over all codes."""
        return self.scale(len(self.table))

    def highest_level(self, noisy_level: int, chance: float) -> int:
        """A level that the exact one is not above, but for ``chance``."""
        return noisy_level + int(laplace.laplace_quantile(1 / self.level_alpha, 1 - 2 * chance))

    def draw(
        self, values: NDArray[np.int64], cells: NDArray[np.int64] | None, source: RandomSource
    ) -> Noisy:
        assert cells is not None  # the privacy line checks the layout
        ends = np.searchsorted(cells, self.codes * np.arange(self.size // self.codes + 1))
        tables = [(values[i:j], cells[i:j] % self.codes) for i, j in pairwise(ends.tolist())]
        levels = np.array(list(self._levels(tables)))
        sums = np.array([counts @ codes for counts, codes in tables])
        for level in np.unique(levels):
            same = levels == level
            sums[same] += laplace.discrete_laplace(self.scale(level), int(same.sum()), source)
        told = levels + laplace.discrete_laplace(1 / self.level_alpha, len(levels), source)
        noisy = np.stack([sums, told], axis=1).ravel()
        return Noisy(noisy, reproducible=source.reproducible)

    def _levels(self, tables: list[tuple[NDArray[np.int64], NDArray[np.int64]]]) -> Iterator[int]:
        """The level of each table; an audit lays out the same one many times."""
        known: dict[bytes, int] = {}
        for counts, codes in tables:
            key = counts.tobytes() + codes.tobytes()
            if key not in known:
                known[key] = self.level(counts, codes)
            yield known[key]

    def level(self, counts: NDArray[np.int64], codes: NDArray[np.int64]) -> int:
        """L: private."""
        total, k = int(counts.sum()), np.arange(self.trimmed + 1)
        ordered = np.append(codes, self.codes - 1)

        def at(rank: NDArray[np.int64]) -> NDArray[np.int64]:
            return np.where(rank < 1, 0, ordered[np.searchsorted(np.cumsum(counts), rank)])

        widths = at(total + 1 - self.trimmed + k) - at(self.trimmed - k)
        return int(np.max(np.searchsorted(self._covered, widths) - k))


def _growth(alpha: Fraction, beta: Fraction) -> Fraction:
    """The largest growth whose tail is at most beta, and that costs at most alpha / 2; rounded down.

    Rounded by more than floating point errs; the privacy line prices the event again.
    """
    by_tail = float(alpha) / 2 / (math.log(float(1 / beta)) + float(alpha) / 4)
    by_scale = math.expm1(float(alpha) / 2)
    return 1 + Fraction(math.floor(min(by_tail, by_scale) * (1 - 1e-9) * 2**40), 2**40)
