"""Synthetic records drawn from the private histogram itself, protected by public balls in the urn.

Claim.  Input: the counts of n records over ``cells`` public cells.  Neighbours: one record is replaced,
n being public.  Output: how often each cell is drawn in ``draws`` = k draws from an urn of the records
and, for each cell, public balls that count as a = ``prior`` records.  It is (alpha, 0, 0)-DP, and
alpha^2/2-zCDP, with

    alpha = k ln((1 + a)/a)    smoothed-histogram: independent draws
    alpha = ln((k + a)/a)      dirichlet-multinomial: draws of a Polya urn

Preconditions.  a > 0, k > 0, and alpha, computed with 50 digits and rounded up, is at most the
share's (the privacy line checks them); only releases with public rows make this mechanism.

Proof.  With replacement a draw falls in a cell of c records with chance (c + a)/(n + cells a); a
replacement changes c by at most one and keeps the size of the urn, so the probability of one draw
changes by a factor of at most (1 + a)/a and k draws by its k-th power.  In a Polya urn the chance of
counts z is a product of rising factorials of c + a; the ratio for c + 1 against c is (c + a + z)/(c + a)
<= (k + a)/a, and the factor of the cell that the record left is at most 1.  Both bounds are attained if
all draws fall in a cell that the record alone occupied.

Ranges.  (n + k) weight + cells prior < 2^62 (``within`` checks it), so every ball has a 64-bit number;
draws are uniform whole numbers.

Source.  Wasserman & Zhou 2010, section 4; Machanavajjhala, Kifer, Abowd, Gehrke & Vilhuber 2008.
"""

from __future__ import annotations

import decimal
import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Literal

import numpy as np
from scipy.special import gammaln

from dpcore.accounting.budget import Budget
from dpcore.accounting.digits import DIGITS, MARGIN, decimal_of
from dpcore.arrays import Floats
from dpcore.line.mechanism import Event, Mechanism, Outputs, affordable, one_record_moved
from dpcore.line.statistic import Noisy, Statistic
from dpcore.sampling.source import RandomSource
from dpcore.sampling.sparse import LARGEST_DOMAIN
from papers.sampled_histogram.urn import urn_draws

Urn = Literal["smoothed-histogram", "dirichlet-multinomial"]

_LARGEST_WEIGHT = 2**16


@dataclass(frozen=True)
class SampledEvent(Event):
    """``draws`` records drawn from an urn of the histogram with ``prior`` balls for each cell."""

    kind = "urn"

    urn: str
    draws: int
    prior: Fraction

    @property
    def pure_alpha(self) -> Fraction:
        return Fraction(self._loss)

    def covered_by(self, share: Budget) -> bool:
        return self.prior > 0 and self.draws > 0 and self._loss <= decimal_of(share.alpha)

    @property
    def _loss(self) -> Decimal:
        """alpha, rounded up."""
        with decimal.localcontext(DIGITS):
            polya = self.urn == "dirichlet-multinomial"
            loss = (1 + decimal_of((self.draws if polya else 1) / self.prior)).ln()
            return loss * (1 if polya else self.draws) * MARGIN


@dataclass(frozen=True)
class Sampled(Mechanism):
    """k records from an urn of the ``rows`` exact ones and a public balls for each cell:
    (k ln(1 + 1/a))-DP with replacement, (ln(1 + k/a))-DP as a Polya urn.

    ``draws``: k, counted over ``cells`` cells; ``prior`` / ``weight`` is a, in units of a record.
    """

    cells: int
    rows: int
    draws: int
    weight: int
    prior: int
    urn: Urn

    side_by_side = True
    comparable = True

    @classmethod
    def within(cls, share: Budget, size: int, rows: int, draws: int, urn: Urn) -> Sampled:
        """The mechanism with approximately the smallest prior that the share's alpha pays for."""
        alpha, polya = float(share.pure_alpha), urn == "dirichlet-multinomial"
        try:
            a = draws / math.expm1(alpha) if polya else 1 / math.expm1(alpha / draws)
        except OverflowError:
            raise ValueError(f"alpha of {alpha:.3g} is more than this mechanism can use") from None
        weight = _LARGEST_WEIGHT
        while weight > 1 and (rows + draws + size * (a + 1)) * weight >= LARGEST_DOMAIN:
            weight //= 2
        prior = math.ceil(a * weight * (1 + 1e-12))
        if (rows + draws) * weight + size * prior >= LARGEST_DOMAIN:
            raise ValueError("too many cells for so small an alpha; use fewer cells or draws")
        mechanism = cls(size, size, rows, draws, weight, prior, urn)
        if not affordable(mechanism.event, share):
            raise ValueError(f"no prior could be certified for {share}")
        return mechanism

    @property
    def concentration(self) -> Fraction:
        """a."""
        return Fraction(self.prior, self.weight)

    @property
    def event(self) -> SampledEvent:
        return SampledEvent(self.urn, self.draws, self.concentration)

    @property
    def balls(self) -> float:
        """The size of the urn, in units of a record."""
        return self.rows + self.cells * float(self.concentration)

    def deviation(self, share: Floats | float) -> Floats:
        """The standard deviation of the number of draws of a cell with this share of the urn."""
        chance = np.asarray(share, dtype=float)
        variance = self.draws * chance * (1 - chance)
        if self.urn == "dirichlet-multinomial":
            variance = variance * (self.balls + self.draws) / (self.balls + 1)
        return np.asarray(np.sqrt(variance))

    @property
    def unit(self) -> float:
        """The number of records that a draw represents, including those of the prior."""
        return self.balls / self.draws

    def draw(self, statistic: Statistic, source: RandomSource) -> Noisy:
        urns = statistic.values.reshape(-1, self.cells)
        polya = self.urn == "dirichlet-multinomial"
        drawn = urn_draws(urns, self.weight, self.prior, self.draws, source, polya=polya)
        return Noisy(drawn.ravel(), reproducible=source.reproducible)

    def log_chances(self, outputs: Outputs, exact: Statistic, factors: Floats) -> Floats | None:
        """Log probabilities with a prior factor times as large, because the prior acts as the noise."""
        drawn, found = outputs.astype(np.float64), []
        for factor in factors:
            urn = exact.values + float(self.concentration) * factor
            if self.urn == "dirichlet-multinomial":
                rising = (gammaln(urn + drawn) - gammaln(urn)).sum(axis=1)
                found.append(rising + gammaln(urn.sum()) - gammaln(urn.sum() + self.draws))
            else:
                found.append(drawn @ np.log(urn) - self.draws * np.log(urn.sum()))
        return np.stack(found, axis=1)

    def moved_by(self, near: Statistic, far: Statistic) -> float:
        return one_record_moved(near, far)
