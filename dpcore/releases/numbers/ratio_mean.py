"""The mean of a numeric column where the number of records is private: a noisy sum over a noisy count.

With codes c = 0, ..., R of the public grid, one draw makes both private:

    S = sum of (2 c - R)        N = number of records        mean code = R/2 + S / (2 N)

N is counted in units of u, a public number.  A record moves (S, u N) by (R, u) in L1 at most where it is
added or removed, by (2 R, 0) where it is replaced by another.  Codes about the middle of the grid move S
least, and leave the noise in N without effect on a mean in the middle.  S and N are cut at what
``most_rows`` records can reach (``dpcore.adjacency``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from dpcore.arrays import wide
from dpcore.domain import Grid, Tally
from dpcore.mechanisms import DiscreteLaplace
from dpcore.releases.base import ErrorStatement, Release
from dpcore.releases.numbers.mean import (
    TOO_LARGE,
    ends_of,
    mean_columns,
    mean_uncertainty,
    numeric_axis,
    of_the_grid,
)
from dpcore.releases.table import LEVEL, Published, Table, Uncertainty, error_column, one_row
from dpcore.statistic import Exact, Noisy


@dataclass(frozen=True)
class RatioMean(Release):
    """The mean of the one axis of the domain, a grid, and the number of records."""

    chart = "number"
    too_large = TOO_LARGE

    @property
    def grid(self) -> Grid:
        return numeric_axis(self.domain)

    @property
    def reach(self) -> int:
        """R, the last code."""
        return self.grid.size - 1

    @property
    def record(self) -> int:
        """u: where a record that is replaced moves the sum by 2 R, R of it cost nothing more."""
        part = 1 if self.adjacency.relation == "replace-one" else 2
        return max(self.reach // part, 1)

    @cached_property
    def mechanism(self) -> DiscreteLaplace:
        sensitivity = self.adjacency.sensitivity(
            moved=Fraction(max(2 * self.reach, 1)), present=Fraction(self.reach + self.record)
        )
        return DiscreteLaplace.within(self.share, 2, sensitivity)

    @property
    def largest_statistic(self) -> int:
        return self.most_rows * max(self.reach, self.record)

    def statistic(self, tally: Tally) -> Exact:
        counts, most = wide(tally.counts, self.most_rows), self.most_rows
        total = np.clip(
            counts @ (2 * tally.cells - self.reach), -self.reach * most, self.reach * most
        )
        rows = min(int(counts.sum()), most)
        return Exact(np.array([total, self.record * rows], dtype=np.int64))

    def publish(self, noisy: Noisy) -> Published:
        first, last = ends_of(self.grid)
        half = (last - first) / 2 / max(self.reach, 1)
        total, count = float(noisy.values[0]), float(noisy.values[1]) / self.record
        lower, upper = self._interval(total, count)
        middle, positive = (first + last) / 2, max(count, 1.0)
        error = half * self._error(total / positive, positive)
        columns = mean_columns(
            self.grid,
            middle + half * total / positive,
            f"Noisy sum of {self.grid.name} over noisy_rows",
            error_column(np.array([error]), "noisy_mean", ", to first order"),
            (middle + half * lower, middle + half * upper),
        )
        of_rows = self.mechanism.stddev / self.record
        columns += [
            one_row("noisy_rows", count, "Number of records plus noise of mean zero"),
            error_column(np.array([of_rows]), "noisy_rows", name="rows_standard_error"),
        ]
        known = "From the distribution of the noise"
        holds = (
            f"{known} in sum and count; the interval holds the mean in at least 90% of releases."
        )
        table = Table(
            "tables",
            self.name,
            columns,
            (
                *mean_uncertainty(holds + of_the_grid(self.grid)),
                Uncertainty("noisy_rows", "rows_standard_error", None, "exact", f"{known}."),
            ),
        )
        return Published((table,), {"column": self.grid.name, "grid_step": 2 * half})

    def _interval(self, total: float, count: float) -> tuple[float, float]:
        """Ends of S / N, within -R and R: both are within their own intervals in 90% of releases."""
        width = self.mechanism.half_width((1 + LEVEL) / 2)
        counts = [count - width / self.record, count + width / self.record]
        if counts[0] <= 0:
            return -self.reach, self.reach
        ratios = [(total + sign * width) / n for sign in (-1, 1) for n in counts]
        return max(min(ratios), -self.reach), min(max(ratios), self.reach)

    def _error(self, ratio: float, count: float) -> float:
        """Standard deviation of S / N, to the first order."""
        ratio = min(abs(ratio), self.reach)
        return self.mechanism.stddev * math.hypot(1.0, ratio / self.record) / count

    def expected_error(self) -> tuple[ErrorStatement, ...]:
        first, last = ends_of(self.grid)
        half = (last - first) / 2 / max(self.reach, 1)
        note = "if there are as many records as the plan guesses"
        return (
            ErrorStatement(
                "standard error of a mean in the middle of its bounds",
                half * self._error(0.0, self.rows),
                note,
            ),
            ErrorStatement(
                "standard error of a mean at a bound",
                half * self._error(self.reach, self.rows),
                note,
            ),
            ErrorStatement(
                "standard error of the number of records", self.mechanism.stddev / self.record
            ),
        )
