"""The exponential mechanism with orthogonal series: a few records with nearly the same mean features.

Claim.  A cell c, scaled to x in [0, 1], has the features psi_j(x) = sqrt2 cos(pi j x), j = 1, ..., m, in
whole steps of 2^-BITS.  Input: the sum S of the features over n = ``rows`` records.  Neighbours: one
record is replaced, n being public.  Output: the counts of k = ``draws`` synthetic records z, where an
ordered sequence is drawn with P(z) proportional to exp(-|S/n - S(z)/k|^2/scale).  With D the diameter of
the features it is (4 D^2/(n scale), 0, 0)-DP, and an eighth of its square zCDP.

Preconditions.  4 D^2 <= alpha n scale (the privacy line checks it); fewer terms than cells, 1,024
cells at most, and work of at most minutes (``within`` checks them); only releases with public rows
make this mechanism.

Proof.  Both means lie in the convex hull of the features, so within D of each other.  Replacing a record
moves S/n by at most D/n, and a squared distance by at most 2 D^2/n, since ||u||^2 - ||v||^2 = <u - v, u
+ v> <= (D/n) 2 D.  The exponential mechanism costs twice this over the scale.  (The paper's bound is 8
c0^2 m/n.)

Ranges.  Features are below 2^17, so sums of up to 2^44 records fit; sequences are kept or dropped by
exact arithmetic wherever floating point could be wrong (``tilted``).

Source.  Wasserman & Zhou 2010, section 6.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations_with_replacement

import numpy as np
from scipy.special import gammaln, logsumexp

from dpcore.accounting.budget import Budget
from dpcore.arrays import Floats, Integers
from dpcore.line.mechanism import Event, Mechanism, Outputs
from dpcore.line.statistic import Noisy, Statistic
from dpcore.mechanisms.exponential import exponential_rho, exponential_scale
from dpcore.sampling.source import RandomSource
from papers.near_records.tilted import NearMeanLaw

BITS = 16
"""Features are rounded to whole multiples of 2**-BITS."""

LARGEST_CELLS = 1024
AUDITED = 2**16
"""An audit lists up to this many results; if there are more, it cannot bound the width."""

LARGEST_WORK = 2**34
"""The most cells that are drawn for one result: minutes."""


@dataclass(frozen=True)
class NearMeansEvent(Event):
    """``draws`` synthetic records z, P(z) proportional to exp(-|S/rows - S(z)/draws|^2/scale), S the sum
    of integer features of the records.  Between neighbours, S moves by at most the root of
    ``l2_sensitivity_squared``, and the squared distance by 2 l2_sensitivity_squared/rows."""

    kind = "series-exponential"

    draws: int
    rows: int
    l2_sensitivity_squared: Fraction
    scale: Fraction

    @property
    def pure_alpha(self) -> Fraction:
        return 4 * self.l2_sensitivity_squared / (self.rows * self.scale)

    @property
    def concentrated(self) -> tuple[Fraction, Fraction]:
        return exponential_rho(self.pure_alpha), Fraction(0)

    def covered_by(self, share: Budget) -> bool:
        bought = share.alpha * self.rows * self.scale
        return self.scale > 0 and 0 < 4 * self.l2_sensitivity_squared <= bought


@dataclass(frozen=True)
class NearMeansMechanism(Mechanism):
    """P(records) proportional to exp(-score/scale), where the score is the squared distance of their
    series from the exact one: exactly (4 D^2/(n scale))-DP.

    ``draws`` records over ``cells`` cells by ``terms`` coefficients; ``scale``: in squared steps.
    """

    cells: int
    terms: int
    rows: int
    draws: int
    scale: Fraction

    side_by_side = True

    @classmethod
    def within(
        cls, share: Budget, cells: int, terms: int, rows: int, draws: int
    ) -> NearMeansMechanism:
        """The mechanism that spends all of the share's alpha."""
        if rows < 1 or draws < 1:
            raise ValueError("draws: must be at least 1, from a table of at least 1 record")
        if cells > LARGEST_CELLS:
            raise ValueError(f"columns: {cells} cells are more than {LARGEST_CELLS}")
        if not 1 <= terms < cells:
            raise ValueError(f"terms: must be at least 1 and below {cells}, the cells, not {terms}")
        unscaled = cls(terms, cells, terms, rows, draws, Fraction(1))
        scale = exponential_scale(2 * unscaled.l2_sensitivity_squared / rows, 1, share)
        variance = 2 * 4.0**BITS / float(scale) / draws
        work = math.log(draws) + terms / 2 * math.log(1 + 2 * variance)
        # All results of few draws may be far from the records.  Some mean of k features is within half a
        # step of the cells' path over k, as rounding moves cumulative counts by at most half a record.
        work += (unscaled.path / (2 * draws)) ** 2 / float(scale)
        if work > math.log(LARGEST_WORK):
            raise ValueError(f"terms: too many for {rows} rows; use fewer terms or more draws")
        return cls(terms, cells, terms, rows, draws, scale)

    @cached_property
    def features(self) -> Integers:
        """The features U(c), (cells, terms)."""
        places = (np.arange(self.cells) + 0.5) / self.cells
        waves = np.cos(np.pi * np.outer(places, np.arange(1, self.terms + 1)))
        return np.rint(np.ldexp(math.sqrt(2) * waves, BITS)).astype(np.int64)

    @cached_property
    def path(self) -> float:
        """The total length of the path through the features of all cells in order, in steps."""
        return float(np.linalg.norm(np.diff(self.features, axis=0), axis=1).sum())

    @cached_property
    def l2_sensitivity_squared(self) -> Fraction:
        """D^2 in squared steps, exactly."""
        lengths = (self.features**2).sum(axis=1)
        apart = lengths[:, None] + lengths[None, :] - 2 * self.features @ self.features.T
        return Fraction(int(apart.max()))

    @property
    def event(self) -> NearMeansEvent:
        return NearMeansEvent(self.draws, self.rows, self.l2_sensitivity_squared, self.scale)

    def draw(self, statistic: Statistic, source: RandomSource) -> Noisy:
        sums = statistic.values.reshape(-1, self.terms)
        totals, which = np.unique(sums, axis=0, return_inverse=True)
        result = np.empty((len(which.ravel()), self.cells), dtype=np.int64)
        for i, total in enumerate(totals):
            law = NearMeanLaw(total, self.rows, self.features, self.draws, self.scale)
            alike = np.flatnonzero(which.ravel() == i)
            result[alike] = law.sequences(len(alike), source)
        return Noisy(result.ravel(), reproducible=source.reproducible)

    def moved_by(self, near: Statistic, far: Statistic) -> float:
        squared = sum(int(moved) ** 2 for moved in (near.values - far.values).tolist())
        return math.sqrt(Fraction(squared) / self.l2_sensitivity_squared)

    def log_chances(self, outputs: Outputs, exact: Statistic, factors: Floats) -> Floats | None:
        if math.comb(self.cells + self.draws - 1, self.draws) > AUDITED:
            return None
        every = np.array(list(combinations_with_replacement(range(self.cells), self.draws)))
        counts = (every[:, :, None] == np.arange(self.cells)).sum(axis=1)
        ways = -gammaln(counts + 1).sum(axis=1)  # the number of their orders, up to a constant
        found, all_costs = (self._costs(z.astype(float), exact.values) for z in (outputs, counts))
        sums = [logsumexp(ways - all_costs / factor) for factor in factors]
        return np.asarray(-np.outer(found, 1 / factors) - sums)

    def _costs(self, counts: Floats, exact: Floats) -> Floats:
        """The scores (k,), divided by the scale, of synthetic records (k, cells)."""
        apart = exact / self.rows - counts @ self.features / self.draws
        return np.asarray((apart**2).sum(axis=1) / float(self.scale))
