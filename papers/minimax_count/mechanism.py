"""A count by a table of probabilities: row j has the probability of each answer if the exact count is j.

Claim.  Input: counts.  Neighbours: any relation under which a count moves by at most 1.  Output: for
each count j, cut to the rows of the table, an answer i with probability table[j][i]/TOTAL.  It is
(alpha, beta, 0)-DP, and beta-approximately alpha^2/2-zCDP.

Preconditions.  Every row adds up to TOTAL, and the hockey-stick divergence of adjacent rows at alpha is
at most beta in both directions, in exact arithmetic; this is checked whenever a mechanism is made,
whatever the source of its table.  The privacy line compares alpha and beta with the share.

Proof.  Neighbours are in one row or in adjacent ones (cutting keeps that), so the check proves the
claim.  The concentrated price is that of any (alpha, beta)-DP mechanism (Kairouz, Oh & Viswanath 2015).

Ranges.  Entries are integer parts of TOTAL < 2^62; a draw is one uniform integer.

Source.  Hall 2012, section 2.3, whose program covers beta = 0 only; Ghosh, Roughgarden & Sundararajan
2012.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from scipy.special import logsumexp

from dpcore.accounting.budget import Budget
from dpcore.arrays import Floats, Integers
from dpcore.line.mechanism import Event, Mechanism, Outputs
from dpcore.line.statistic import Noisy, Statistic
from dpcore.sampling.source import RandomSource
from dpcore.sampling.sparse import uniform_integers
from papers.minimax_count.table import TOTAL, digest, is_private


@dataclass(frozen=True)
class TableEvent(Event):
    """An answer drawn from a table of probabilities, one row for each exact count.

    Neighbours are in the same row or in adjacent ones, and all adjacent rows were proved to be
    (alpha, beta)-indistinguishable in exact arithmetic; ``sha256`` names the table.
    """

    kind = "table"

    alpha: Fraction
    beta: Fraction
    sha256: str

    @property
    def pure_alpha(self) -> Fraction | None:
        return self.alpha if self.beta == 0 else None

    def covered_by(self, share: Budget) -> bool:
        return 0 <= self.alpha <= share.alpha and 0 <= self.beta <= share.beta

    @property
    def concentrated(self) -> tuple[Fraction, Fraction]:
        return self.alpha**2 / 2, self.beta


@dataclass(frozen=True)
class TabulatedMechanism(Mechanism):
    """Answers drawn from ``table``, whole parts of TOTAL: (alpha, beta)-DP where neighbours' counts
    differ by at most one.

    Raises ``ValueError`` for a table without a proof of this.
    """

    alpha: Fraction
    beta: Fraction
    table: tuple[tuple[int, ...], ...]

    cell_by_cell = True

    def __post_init__(self) -> None:
        if not is_private(np.array(self.table), self.alpha, self.beta):
            raise ValueError("the table is not private at its stated alpha and beta")

    @property
    def event(self) -> TableEvent:
        return TableEvent(self.alpha, self.beta, digest(np.array(self.table)))

    @cached_property
    def _ends(self) -> Integers:
        return np.cumsum(np.array(self.table), axis=1)

    def draw(self, statistic: Statistic, source: RandomSource) -> Noisy:
        values = statistic.values
        uniform = uniform_integers(TOTAL, len(values), source)
        answers = np.empty(len(values), dtype=np.int64)
        counts = np.clip(values, 0, len(self.table) - 1)
        for count in np.unique(counts):
            rows = counts == count
            answers[rows] = np.searchsorted(self._ends[count], uniform[rows], side="right")
        return Noisy(answers, reproducible=source.reproducible)

    def log_chances(self, outputs: Outputs, exact: Statistic, factors: Floats) -> Floats | None:
        """Log probabilities over the factor: for geometric noise, noise of factor times the scale."""
        counts = np.clip(exact.values, 0, len(self.table) - 1)
        with np.errstate(divide="ignore"):
            logs = np.log(np.array(self.table)[counts] / TOTAL)  # (k, answers)
        given = logs[np.arange(len(counts)), outputs.astype(np.int64)].sum(axis=1)
        sums = [logsumexp(logs / factor, axis=1).sum() for factor in factors]
        return np.asarray(np.outer(given, 1 / factors) - sums)

    def moved_by(self, near: Statistic, far: Statistic) -> float:
        return float(np.abs(near.values - far.values).max())
