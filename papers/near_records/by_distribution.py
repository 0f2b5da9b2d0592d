"""The exponential mechanism with Kolmogorov-Smirnov distance: a few records near the exact ones.

Claim.  Input: the counts of n records over ``cells`` cells along one axis.  Neighbours: one record is
replaced, n being public.  Output: the counts of ``draws`` synthetic records z, where an ordered sequence
z is drawn with P(z) proportional to exp(-T(z)/scale), T = floor(n sup |F_x - F_z|).  It is (2/scale, 0,
0)-DP and (2/scale)^2/8-zCDP.

Preconditions.  2 <= alpha scale (the privacy line checks it); only releases with public rows make
this mechanism; ``within`` refuses work of more than a few minutes.

Proof.  Replacing a record moves F_x by at most 1/n, so n sup |F_x - F_z| and its floor by at
most one; the exponential mechanism then costs twice this over the scale, and its concentrated price is
that of one choice (``exponential``).

Ranges.  Numbers of sequences are whole numbers of any size; levels are chosen by a lazy uniform
number against enclosures (``paths``).

Source.  Wasserman & Zhou 2010, section 5.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise

import numpy as np
from scipy.special import logsumexp

from dpcore.accounting.budget import Budget
from dpcore.arrays import Floats
from dpcore.line.mechanism import Event, Mechanism, Outputs, one_record_moved
from dpcore.line.statistic import Noisy, Statistic
from dpcore.mechanisms.exponential import exponential_rho, exponential_scale
from dpcore.sampling.source import RandomSource
from papers.near_records.paths import NearSequences

AUDITED_WORK = 2**26
"""The most products of integers for which an audit counts all sequences; they take a second."""

LARGEST_WORK = 2**30
"""The most products of integers: a minute or two for a release with its audit."""

CELL = 900
"""The rest of the work on a cell takes as long as this many products."""

PRODUCT = 1.3e-8
"""An upper bound for the seconds of one product."""


@dataclass(frozen=True)
class NearRecordsEvent(Event):
    """``draws`` synthetic records z, P(z) proportional to exp(-T(z)/scale), T as ``paths``
    defines it: the Kolmogorov-Smirnov distance in records, which changes by at most one between
    neighbours."""

    kind = "ks-exponential"

    draws: int
    scale: Fraction

    @property
    def pure_alpha(self) -> Fraction:
        return 2 / self.scale

    @property
    def concentrated(self) -> tuple[Fraction, Fraction]:
        return exponential_rho(self.pure_alpha), Fraction(0)

    def covered_by(self, share: Budget) -> bool:
        return self.scale > 0 and share.alpha * self.scale >= 2


@dataclass(frozen=True)
class NearRecordsMechanism(Mechanism):
    """P(records) proportional to exp(-score/scale), where the score is the Kolmogorov-Smirnov distance
    from the exact ones in records: exactly (2/scale)-DP.

    ``draws`` records over ``cells`` cells.
    """

    cells: int
    draws: int
    scale: Fraction

    side_by_side = True

    @classmethod
    def within(cls, share: Budget, cells: int, rows: int, draws: int) -> NearRecordsMechanism:
        """The mechanism that spends all of the share's alpha."""
        if rows < 1 or draws < 1:
            raise ValueError("draws: must be at least 1, from a table of at least 1 record")
        scale = exponential_scale(Fraction(1), 1, share)
        made = cls(cells, cells, draws, scale)
        if made.products(made.levels(rows)) > LARGEST_WORK:
            raise ValueError(f"draws: too many for {cells} cells; use fewer draws or fewer bins")
        return made

    def levels(self, rows: int) -> float:
        """An approximate upper bound for the levels that a draw counts."""
        return min(rows, float(self.scale) * (self.draws * math.log(self.cells) + 64))

    def products(self, levels: float) -> float:
        """The number of products needed to count the sequences with this number of levels."""
        return self.cells * (self.draws**2 + CELL) * levels

    @property
    def event(self) -> NearRecordsEvent:
        return NearRecordsEvent(self.draws, self.scale)

    def draw(self, statistic: Statistic, source: RandomSource) -> Noisy:
        counts = statistic.values.reshape(-1, self.cells)
        tables, which = np.unique(counts, axis=0, return_inverse=True)
        # Only laws of rehearsals are kept, so that nothing private stays in memory.
        law = _law if source.reproducible else _law.__wrapped__
        laws = [law(tuple(table.tolist()), self.draws, self.scale) for table in tables]
        drawn = [laws[i].sequence(source) for i in which]
        return Noisy(np.concatenate(drawn).astype(np.int64), reproducible=source.reproducible)

    def log_chances(self, outputs: Outputs, exact: Statistic, factors: Floats) -> Floats | None:
        """Very unlikely levels are left out, which makes the noise look wider."""
        counts, k = exact.values, self.draws
        rows = int(counts.sum())
        reach = min(rows, math.ceil(float(self.scale) * (k * math.log(self.cells) + 30)))
        if self.products(reach) > AUDITED_WORK:
            return None
        law = NearSequences(counts, k, self.scale)
        near = range(law.first, min(rows, law.first + reach) + 1)
        counted = [after - before for before, after in pairwise([0, *map(law.number, near)])]
        levels = np.array([level for level, number in zip(near, counted, strict=True) if number])
        logs = np.array([math.log(number) for number in counted if number])
        apart = np.cumsum(k * counts - rows * outputs.astype(np.float64), axis=1)
        found = np.abs(apart).max(axis=1).astype(np.int64) // k
        scales = float(self.scale) * factors
        sums = [logsumexp(logs - levels / scale) for scale in scales]
        return np.asarray(-np.outer(found, 1 / scales) - sums)

    def moved_by(self, near: Statistic, far: Statistic) -> float:
        return one_record_moved(near, far)


@lru_cache(maxsize=2)
def _law(counts: tuple[int, ...], draws: int, scale: Fraction) -> NearSequences:
    """The law of sequences, cached because an audit draws from the same two tables many times."""
    return NearSequences(np.array(counts), draws, scale)
