"""A histogram over a domain far larger than memory: noise, then a threshold, on every cell.

Claim.  Input: counts (cells,), given by the occupied cells of a public domain of up to 2^62.
Neighbours: as for discrete Laplace noise, with L1 sensitivity D.  Output: x + Z with independent
discrete Laplace Z on every cell of the domain; only values above the public ``threshold`` tau are kept,
in ascending order of cells.  It is (D/scale, 0, 0)-DP and (D/scale)^2/2-zCDP for every tau.

Preconditions.  Those of discrete Laplace noise; the cells of the statistic ascend and lie in the
domain (the privacy line checks it).

Proof.  Noise on every cell is private (discrete Laplace noise), and keeping values above a public
number is post-processing (Hall 2012, section 2.4.1).  The law is drawn without visiting empty cells:

    occupied cells   count + noise, kept where it is above tau
    empty cells      how many exceed tau: binomial; which: uniform without replacement; by how much:
                     geometric, since the tail of the noise is memoryless

in time proportional to the occupied cells and the false positives.

Ranges.  Those of discrete Laplace noise; numbers of cells stay below 2^62, and the binomial draw is
exact.

Source.  Hall 2012, section 2.4.1; Cormode, Procopiuc, Srivastava & Tran 2012.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dpcore.accounting.budget import Budget
from dpcore.arrays import Floats
from dpcore.line.mechanism import Outputs, WorstTable
from dpcore.line.statistic import Noisy, Statistic
from dpcore.mechanisms.laplace import LaplaceNoise, laplace_chances, laplace_scale, log_cdf
from dpcore.sampling import discrete_laplace as laplace
from dpcore.sampling.source import RandomSource
from dpcore.sampling.sparse import distinct_integers, threshold_exceedances


@dataclass(frozen=True)
class LaplaceAboveThreshold(LaplaceNoise):
    """Discrete Laplace noise on cells; only values above ``threshold`` are kept.

    ``stddev`` and ``half_width`` describe the noise before the threshold.
    """

    threshold: int

    sparse = True

    def log_chances(self, outputs: Outputs, exact: Statistic, factors: Floats) -> Floats:
        counts = exact.values
        values = outputs[:, : len(counts)]
        hidden = [self.hidden(counts, float(self.scale) * factor) for factor in factors]
        shown = laplace_chances(values - counts, float(self.scale), factors)
        return np.asarray(shown + np.isnan(values) @ np.transpose(hidden))

    def hidden(self, exact: Floats, scale: float) -> Floats:
        """Log chances (k,) that cells are not above the threshold."""
        return log_cdf(self.threshold - exact, scale)

    def worst_counts(self, rows: int) -> Iterator[WorstTable]:
        """A table where one record lifts a cell above the threshold; the other records are elsewhere."""
        if 0 < self.threshold < rows and self.size > 1:
            others = {0: self.threshold, 1: rows - 1 - self.threshold}
            yield "a cell at the threshold", others, 1, 0

    @property
    def audit_seconds(self) -> float:
        """Nearly none: noise is drawn for only a few of the cells."""
        return 0.0


@dataclass(frozen=True)
class ThresholdedLaplace(LaplaceAboveThreshold):
    """Noise on all ``size`` cells, including the empty ones."""

    @classmethod
    def within(
        cls,
        share: Budget,
        size: int,
        l1_sensitivity: Fraction,
        records: int = 0,
        occupied: int | None = None,
    ) -> ThresholdedLaplace:
        """Return the mechanism that spends all of the share's alpha, with tau = scale * ln(size).

        On average half an empty cell then passes the threshold.  If at most q = ``occupied`` cells have
        records, tau = scale * ln(size/q) lets q/2 empty cells pass; the threshold with the smaller
        ``table_error`` is used.  ``occupied`` and ``records`` must be public.
        """
        scale = laplace_scale(l1_sensitivity, share.pure_alpha)
        thresholds = [
            math.ceil(scale * Fraction(math.log(size / expected)))
            for expected in sorted({1, occupied or 1})
        ]
        made = [cls(size, l1_sensitivity, scale, threshold) for threshold in thresholds]
        return min(made, key=lambda each: each.table_error(records, occupied or 1))

    @property
    def passing(self) -> float:
        """The chance that an empty cell passes the threshold."""
        ratio = math.exp(-1 / float(self.scale))
        return ratio ** (self.threshold + 1) / (1 + ratio)

    def table_error(self, records: int, occupied: int) -> float:
        """An upper bound of the expected L1 error of a table with q = ``occupied`` occupied cells.

        A cell of count c errs by at most min(c, tau) + |Z|, which is concave in c, so q cells err by at
        most min(records, q tau) + q E|Z|.
        """
        # An empty cell that passes errs by its value: the threshold plus 1 plus a geometric number.
        beyond = self.threshold - 1 / math.expm1(-1 / float(self.scale))
        dropped = min(records, occupied * self.threshold)
        passing = (self.size - occupied) * self.passing * beyond
        return dropped + occupied * self.mean_absolute + passing

    def draw(self, statistic: Statistic, source: RandomSource) -> Noisy:
        values, cells = statistic
        assert cells is not None  # the privacy line checks the layout
        noisy = values + laplace.discrete_laplace(self.scale, len(values), source)
        kept = noisy > self.threshold
        passed = threshold_exceedances(self.size - len(cells), self.scale, self.threshold, source)
        false_cells = distinct_integers(self.size, passed, cells, source)
        false_values = self.threshold + 1 + laplace.geometric(self.scale, passed, source)
        all_cells = np.concatenate([cells[kept], false_cells])
        all_values = np.concatenate([noisy[kept], false_values])
        # Without sorting, the order would show which cells have records.
        order = np.argsort(all_cells)
        return Noisy(all_values[order], all_cells[order], source.reproducible)
