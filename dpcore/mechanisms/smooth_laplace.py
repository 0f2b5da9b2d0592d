"""A sum under random differential privacy, with noise as wide as the bulk of the data.

Claim.  Input: the counts of n = ``rows`` records over codes 0, ..., K - 1.  Neighbours: n + 1
independent draws of one population, the last of which replaces the last but one.  Output: the sum
of the codes with discrete Laplace noise of scale 2 S_L/alpha, and the level L, also with discrete
Laplace noise.  It is (alpha + level_alpha, beta, gamma)-random DP with gamma = 4 (a + 1)/n, a + 1 being
``trimmed``, and beta below.  With x_(j) the ordered codes (0 below, K - 1 above),

    U_k = x_(n - a + k) - x_(a + 1 - k)            widths around the bulk, k = 0, 1, ...
    L   = max_k (level(U_k) - k)                   level(U): the first j with S_j >= U

over a public table 1 = S_0 < S_1 < ... whose steps grow by at most ``growth``.

Preconditions.  (K - 1) n < 2^61 (the release checks it: ``largest_statistic``); 0 < beta < 1 and gamma
>= 4/n (``within`` checks them); alphas, beta and gamma are covered by the share, beta with 50 digits
rounded up (the privacy line checks them).

Proof.  Replacing a record moves every x_(j) by at most one rank, so U_k(X) <= U_(k+1)(X') and L changes
by at most one.  Except with probability 4 (a + 1)/n, a record and its random replacement both lie
between the a + 1 lowest and the a + 1 highest of the n - 1 others; then the sum moves by at most U_0 <=
S_L of either table.  Changing the scale by one level costs alpha/2, except in a tail beyond t = scale
(alpha/2)/(growth - 1) of chance at most

    beta = exp(alpha/4 - (alpha/2)/(growth - 1))

(P(|Z| > t) <= exp(-(t - 1/2)/scale), and scale >= 2/alpha); changing the sum costs alpha/2.  The level
itself is private: it is published with noise, for a part of alpha, so that the reader knows how wide
the noise may be.

Ranges.  The sum stays below 2^61 and the noise below 2^62 except with a chance below exp(-2^17); the
table is of exact fractions.

Source.  The finite-sample form of the smooth sensitivity of Hall, Rinaldo & Wasserman 2011, section 4,
on order statistics, because pairs of records would depend on the order of the table.
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any, Self

import numpy as np

from dpcore.accounting.budget import Budget
from dpcore.accounting.digits import DIGITS, MARGIN, decimal_of
from dpcore.arrays import Floats, Integers
from dpcore.line.mechanism import AS_STATED, Event, Mechanism, Outputs, Round, one_record_moved
from dpcore.line.statistic import Noisy, Statistic
from dpcore.mechanisms.laplace import LaplaceEvent, laplace_chances
from dpcore.sampling import _validate
from dpcore.sampling import discrete_laplace as laplace
from dpcore.sampling.source import RandomSource

LEVEL_PART = Fraction(1, 10)
"""The fraction of alpha that is spent on publishing the scale of the noise."""

MOST_TRIMMED = 2**16
"""The largest number of trimmed records on either side; each smaller number is tried too."""

MOST_LEVELS = 2**16
"""The largest number of noise scales."""

_STEPS = 2**20


@dataclass(frozen=True)
class SmoothLaplaceEvent(Event):
    """A sum with discrete Laplace noise whose scale follows the data in steps of ``growth``.

    ``alpha`` protects the sum and ``level_alpha`` the scale; ``exposure`` is the price in gamma.
    """

    kind = "smooth-discrete-laplace"

    alpha: Fraction
    level_alpha: Fraction
    growth: Fraction
    exposure: Fraction

    @property
    def spent_gamma(self) -> Fraction:
        return self.exposure

    def covered_by(self, share: Budget) -> bool:
        return (
            0 < self.exposure <= share.gamma < 1
            and min(self.alpha, self.level_alpha) > 0
            and self.alpha + self.level_alpha <= share.alpha
            and 0 < share.beta < 1
            and self._tail <= share.beta
        )

    @property
    def concentrated(self) -> tuple[Fraction, Fraction] | None:
        if min(self.alpha, self.level_alpha, self.exposure) <= 0:
            return None
        return (self.alpha + self.level_alpha) ** 2 / 2, self._tail

    @property
    def _tail(self) -> Fraction:
        """The beta of a scale that may change by one step, rounded up; 1 if the change alone costs more
        than half of alpha."""
        with decimal.localcontext(DIGITS):
            half, step = decimal_of(self.alpha / 2), decimal_of(self.growth - 1)
            if step <= 0 or (1 + step).ln() > half:
                return Fraction(1)
            return Fraction((half / 2 - half / step).exp() * MARGIN)


@dataclass(frozen=True)
class SmoothLaplace(Mechanism):
    """The sum of codes with discrete Laplace noise of scale 2 S_L/alpha, and L with separate noise:
    (alpha + level_alpha, beta, 4 trimmed/rows)-random DP.

    The statistic is the number of records at each of ``codes`` codes.

    ``rows``: the public number of records; ``trimmed``: a + 1, the number of lowest, and of highest,
    records that the width ignores.
    """

    codes: int
    rows: int
    trimmed: int
    alpha: Fraction
    level_alpha: Fraction
    growth: Fraction

    sparse = True
    side_by_side = True

    @classmethod
    def within(cls, share: Budget, size: int, rows: int, *own: Any) -> Self:
        """Return the mechanism that spends the share; raises ``ValueError`` if the share is too small.

        ``own``: the fields that only a subclass has.
        """
        trimmed = min(math.floor(share.gamma * rows / 4), MOST_TRIMMED)
        if trimmed < 1:
            raise ValueError(
                f"smooth sensitivity of {rows} records needs a gamma of at least {4 / rows:.3g}"
            )
        if not 0 < share.beta < 1:
            raise ValueError("smooth sensitivity needs beta between 0 and 1")
        level_alpha = share.pure_alpha * LEVEL_PART
        alpha = share.pure_alpha - level_alpha
        growth = _growth(alpha, share.beta)
        found = cls(size, size, rows, trimmed, alpha, level_alpha, growth, *own)
        # The records determine the scale, so the noise of every scale must be one that can be drawn.
        for scale in (found.scale(0), found.largest_scale, 1 / level_alpha):
            _validate.positive_rational("scale", scale, laplace.LARGEST_SCALE)
        return found

    @property
    def event(self) -> SmoothLaplaceEvent:
        return SmoothLaplaceEvent(
            self.alpha, self.level_alpha, self.growth, Fraction(4 * self.trimmed, self.rows)
        )

    @property
    def width_range(self) -> tuple[int, int]:
        """S_0, and the largest possible change of the sum: public."""
        return 1, self.codes - 1

    def total(self, counts: Integers, codes: Integers) -> int:
        """The sum of the codes of a table, given the counts at ascending codes: private."""
        return int(counts @ codes)

    def widths(self, counts: Integers, codes: Integers) -> Integers:
        """The widths (trimmed + 1,) U_0, U_1, ...: private."""
        return self._between(counts, codes)

    def _between(self, counts: Integers, ascending: Integers) -> Integers:
        """The widths (trimmed + 1,) U_k of the module; beyond the records x is 0 or the largest code."""
        total, k = int(counts.sum()), np.arange(self.trimmed + 1)
        ordered, ranks = np.append(ascending, self.width_range[1]), np.cumsum(counts)

        def at(rank: Integers) -> Integers:
            return np.where(rank < 1, 0, ordered[np.searchsorted(ranks, rank)])

        return at(total + 1 - self.trimmed + k) - at(self.trimmed - k)

    @cached_property
    def table(self) -> tuple[Fraction, ...]:
        """The table S_0, S_1, ..., up to the first step that covers every width: public."""
        return tuple(Fraction(step, _STEPS) for step in self._numerators)

    @cached_property
    def _numerators(self) -> list[int]:
        """The table times ``_STEPS``: whole numbers, which are quick to multiply."""
        least, most = (width * _STEPS for width in self.width_range)
        steps = [least]
        while steps[-1] < most:
            if len(steps) == MOST_LEVELS:
                raise ValueError(
                    "alpha is too small for smooth sensitivity of this number of cells; use wider bins"
                )
            grown = steps[-1] * self.growth.numerator // self.growth.denominator
            if grown <= steps[-1]:
                raise ValueError("alpha is too small for smooth sensitivity at this beta")
            steps.append(grown)
        return steps

    @cached_property
    def _covered(self) -> Integers:
        """The largest whole number that each step covers."""
        return np.array([step // _STEPS for step in self._numerators])

    def scale(self, level: int) -> Fraction:
        """The scale of the noise at a level; beyond the table, the scale at the table's nearest end."""
        step = self._numerators[min(max(level, 0), len(self._numerators) - 1)]
        return 2 * Fraction(step, _STEPS) / self.alpha

    @property
    def largest_scale(self) -> Fraction:
        """The scale of the noise if the records are spread over all codes."""
        return self.scale(len(self._numerators))

    def highest_level(self, noisy_level: int, chance: float) -> int:
        """An upper confidence bound for the exact level; it fails with probability ``chance``."""
        return noisy_level + int(laplace.laplace_quantile(1 / self.level_alpha, 1 - 2 * chance))

    def draw(self, statistic: Statistic, source: RandomSource) -> Noisy:
        values, cells = statistic
        assert cells is not None  # the privacy line checks the layout
        ends = np.searchsorted(cells, self.codes * np.arange(self.size // self.codes + 1))
        tables = [(values[i:j], cells[i:j] % self.codes) for i, j in pairwise(ends.tolist())]
        levels = np.array(list(self._levels(tables)))
        sums = np.array([self.total(*table) for table in tables])
        for level in np.unique(levels):
            same = levels == level
            sums[same] += laplace.discrete_laplace(self.scale(level), int(same.sum()), source)
        published = levels + laplace.discrete_laplace(1 / self.level_alpha, len(levels), source)
        noisy = np.stack([sums, published], axis=1).ravel()
        return Noisy(noisy, reproducible=source.reproducible)

    def rounds_of(
        self, outputs: Outputs, exact: Statistic, factors: Floats = AS_STATED
    ) -> list[Round]:
        counts, codes = exact.at(exact.values > 0)
        assert codes is not None
        level = self.level(counts, codes)
        noise = outputs - [float(self.total(counts, codes)), float(level)]
        return [
            Round(laplace_chances(each, float(scale), factors), each)
            for each, scale in zip(
                np.split(noise, 2, axis=1), (self.scale(level), 1 / self.level_alpha), strict=True
            )
        ]

    @property
    def one_by_one(self) -> list[LaplaceEvent]:
        return [LaplaceEvent(alpha, Fraction(1)) for alpha in (self.alpha, self.level_alpha)]

    def moved_by(self, near: Statistic, far: Statistic) -> float:
        return one_record_moved(near, far)

    def _levels(self, tables: list[tuple[Integers, Integers]]) -> Iterator[int]:
        """The level of each table; computed once if an audit passes the same table many times."""
        known: dict[bytes, int] = {}
        for counts, codes in tables:
            key = counts.tobytes() + codes.tobytes()
            if key not in known:
                known[key] = self.level(counts, codes)
            yield known[key]

    def level(self, counts: Integers, codes: Integers) -> int:
        """The exact level L: private."""
        widths = self.widths(counts, codes)
        return int(np.max(np.searchsorted(self._covered, widths) - np.arange(len(widths))))


def _growth(alpha: Fraction, beta: Fraction) -> Fraction:
    """The largest growth whose tail is at most beta and that costs at most alpha / 2, rounded down."""
    by_tail = float(alpha) / 2 / (math.log(float(1 / beta)) + float(alpha) / 4)
    by_scale = math.expm1(float(alpha) / 2)
    # 1e-9 is more than the floating-point error, and the privacy line prices the event again.
    return 1 + Fraction(math.floor(min(by_tail, by_scale) * (1 - 1e-9) * 2**40), 2**40)
