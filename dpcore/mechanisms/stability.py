"""A histogram of any size at a price in beta: noise on the occupied cells, then a threshold.

Claim.  Input: counts (cells,), given by the occupied cells of a public domain.  Neighbours: tables
that differ in one record, which is in one cell: it moves (L1 sensitivity 2), or is added or removed
(L1 sensitivity 1).  Output: for occupied cells, count + Z with discrete Laplace Z if that is above
``threshold`` tau; an empty cell is never published.  With s the scale, a = exp(-1/s) and

    p = P(1 + Z > tau) = a^tau / (1 + a)        the chance that a cell with one record is published

it is (D/s, p, 0)-DP for D = 2 or 1, and p-approximately (D/s)^2/2-zCDP.

Preconditions.  A unit has at most one record, and D is the sensitivity for the event's neighbours: 2 if
a record may be replaced, 1 if it is added or removed.  tau >= 0, D <= alpha s, and p <= beta by an
enclosure of the exponentials in whole numbers (the privacy line checks all).

Proof.  Let a record move from cell x to cell y.

    x keeps a record, y had one    both counts move by one under Laplace noise: loss 2/s, beta 0
    x is left empty                D may show x with chance p, D' never: beta p.  If x is not shown,
                                   D has 1 - p of the chance of D' there: P' - e^(2/s) (1 - p) P is
                                   at most p, since P' <= e^(1/s) P for y
    y was empty                    the same, with D and D' exchanged
    both                           D shows x with chance p, D' shows y with chance p, and neither is
                                   shown with the same chance

    a record is removed            its cell keeps another: loss 1/s.  It is left empty: D shows it with
                                   chance p, D' never; otherwise both outputs have the same law

At most one cell costs beta in either direction.  An (alpha, beta)-DP pair of laws is post-processing of
randomised response that reveals all with chance beta (Kairouz, Oh & Viswanath 2015), which gives the
concentrated price.

Ranges.  Those of discrete Laplace noise.

Source.  Korolova et al. 2009; Bun, Nissim & Stemmer 2016, section 3.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dpcore.accounting.budget import Budget
from dpcore.accounting.threshold import least_threshold, passing_chance
from dpcore.arrays import Floats
from dpcore.domain.adjacency import Adjacency
from dpcore.line.mechanism import Event, Outputs
from dpcore.line.statistic import Noisy, Statistic
from dpcore.mechanisms.laplace import laplace_scale
from dpcore.mechanisms.thresholded import LaplaceAboveThreshold
from dpcore.sampling import _validate
from dpcore.sampling import discrete_laplace as laplace
from dpcore.sampling.source import RandomSource

CERTAIN = 50.0
"""Each impossible number lowers the log chance of its output by this, not to minus infinity."""


@dataclass(frozen=True)
class StabilityEvent(Event):
    """Discrete Laplace noise on the occupied cells of a histogram, published above ``threshold`` only.

    ``l1_sensitivity``: the largest L1 distance between neighbours.  They differ in one record, which is
    in one cell, so at most one cell becomes empty and one becomes occupied.
    """

    kind = "stability-laplace"

    l1_sensitivity: Fraction
    scale: Fraction
    threshold: int

    def covered_by(self, share: Budget) -> bool:
        if not self._of_one_record or self.l1_sensitivity > share.alpha * self.scale:
            return False
        if self.scale <= 0 or self.threshold < 0 or share.beta <= 0:
            return False
        return passing_chance(self.scale, self.threshold, share.beta) <= share.beta

    @property
    def concentrated(self) -> tuple[Fraction, Fraction] | None:
        if not self._of_one_record or self.scale <= 0 or self.threshold < 0:
            return None
        alpha = self.l1_sensitivity / self.scale
        return alpha**2 / 2, passing_chance(self.scale, self.threshold)

    @property
    def _of_one_record(self) -> bool:
        """Whether the sensitivity is right for one record in one cell and the event's neighbours."""
        allowed = self.adjacency.sensitivity(moved=2, present=1)
        return self.adjacency.most == 1 and self.l1_sensitivity == allowed


@dataclass(frozen=True)
class StabilityLaplace(LaplaceAboveThreshold):
    """Discrete Laplace noise on occupied cells; only values above ``threshold`` are kept.

    ``stddev`` and ``half_width`` describe the noise before the threshold.
    """

    adjacency: Adjacency
    shape: tuple[int, ...] = ()
    """The number of values that each word of a cell may have; by default a cell is one word."""

    @classmethod
    def within(
        cls, share: Budget, size: int, adjacency: Adjacency, shape: tuple[int, ...] = ()
    ) -> StabilityLaplace:
        """Return the mechanism that spends the share's alpha and beta, with the smallest threshold."""
        l1_sensitivity = adjacency.sensitivity(moved=Fraction(2), present=Fraction(1))
        scale = laplace_scale(l1_sensitivity, share.pure_alpha)
        # Checked first: at a scale that cannot be drawn, the search for the threshold would hardly end.
        _validate.positive_rational("scale", scale, laplace.LARGEST_SCALE)
        tau = least_threshold(scale, share.beta)
        return cls(size, l1_sensitivity, scale, tau, adjacency, shape)

    @property
    def words(self) -> tuple[int, ...]:
        return self.shape or super().words

    @property
    def event(self) -> StabilityEvent:
        return StabilityEvent(
            self.l1_sensitivity, self.scale, self.threshold, adjacency=self.adjacency
        )

    def draw(self, statistic: Statistic, source: RandomSource) -> Noisy:
        values, cells = statistic
        assert cells is not None  # the privacy line checks the layout
        noisy = values + laplace.discrete_laplace(self.scale, len(values), source)
        # The price requires that no empty cell is published, even if it is passed with a count of 0.
        kept = (values > 0) & (noisy > self.threshold)
        return Noisy(noisy[kept], cells[kept], source.reproducible)

    def log_chances(self, outputs: Outputs, exact: Statistic, factors: Floats) -> Floats:
        found = super().log_chances(outputs, exact, factors)
        impossible = ~np.isnan(outputs[:, : len(exact.values)]) & (exact.values == 0)
        return np.asarray(found - CERTAIN * impossible.sum(axis=1, keepdims=True))

    def hidden(self, exact: Floats, scale: float) -> Floats:
        return np.where(exact == 0, 0.0, super().hidden(exact, scale))
