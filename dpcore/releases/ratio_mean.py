"""The mean of a numeric column where the number of records is private: a noisy sum over a noisy count.

With codes c = 0, ..., R of the public grid, one draw makes both private:

    S = sum of (2 c - R)        N = number of records        mean code = R/2 + S / (2 N)

N is counted in units of u, a public number.  A record moves (S, u N) by (R, u) in L1 at most where it is
added or removed, by (2 R, 0) where it is replaced by another.  Codes about the middle of the grid move S
least, and leave the noise in N without effect on a mean in the middle.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from dpcore.domain import Grid, Tally
from dpcore.mechanisms import DiscreteLaplace
from dpcore.releases.base import LEVEL, ErrorStatement, Published, Release, Table, Uncertainty
from dpcore.releases.mean import ends_of, numeric_axis, of_the_grid
from dpcore.statistic import Exact, Noisy

LARGEST_SUM = 2**61

DESCRIPTIONS = {
    "noisy_mean": "Noisy sum of {column} over noisy_rows",
    "standard_error": "Standard deviation of the noise in noisy_mean, to the first order",
    "lower_90": "Lower end of a 90% interval for the mean",
    "upper_90": "Upper end of a 90% interval for the mean",
    "mean": "noisy_mean, moved to the nearest bound where it is outside",
    "noisy_rows": "Number of records plus noise of mean zero",
    "rows_standard_error": "Standard deviation of the noise in noisy_rows",
}


@dataclass(frozen=True)
class RatioMean(Release):
    """The mean of the one axis of the domain, a grid, and the number of records."""

    def __post_init__(self) -> None:
        if 2 * self.grid.size * self.most_rows >= LARGEST_SUM:
            raise ValueError(f"columns: {self.grid.name!r} has too many values for so many rows")

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

    def statistic(self, tally: Tally) -> Exact:
        total = tally.counts @ (2 * tally.cells - self.reach)
        return Exact(np.array([total, self.record * tally.counts.sum()], dtype=np.int64))

    def publish(self, noisy: Noisy) -> Published:
        first, last = ends_of(self.grid)
        half = (last - first) / 2 / max(self.reach, 1)
        total, count = float(noisy.values[0]), float(noisy.values[1]) / self.record
        lower, upper = self._interval(total, count)
        estimate = (first + last) / 2 + half * total / max(count, 1.0)
        columns = {
            "noisy_mean": estimate,
            "standard_error": half * self._error(total / max(count, 1.0), max(count, 1.0)),
            "lower_90": (first + last) / 2 + half * lower,
            "upper_90": (first + last) / 2 + half * upper,
            "mean": max(first, min(last, estimate)),
            "noisy_rows": count,
            "rows_standard_error": self.mechanism.stddev / self.record,
        }
        ends = ("lower_90", "upper_90")
        holds = "By the law of the noise in sum and count, in 90% of releases at least."
        holds += of_the_grid(self.grid)
        table = Table(
            "tables",
            self.name,
            {name: np.array([value]) for name, value in columns.items()},
            {name: text.format(column=self.grid.name) for name, text in DESCRIPTIONS.items()},
            uncertainty=(
                *(
                    Uncertainty(n, "standard_error", ends, "exact", holds)
                    for n in ("noisy_mean", "mean")
                ),
                Uncertainty("noisy_rows", "rows_standard_error", None, "exact", "A known law."),
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
        note = "of as many records as the plan guesses"
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
