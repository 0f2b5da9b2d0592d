"""The mean of a numeric column if the number of records is private: a noisy sum over a noisy count.

With codes c = 0, ..., R of the public grid, one draw makes both private:

    S = sum of (2 c - R)        N = number of records        mean code = R/2 + S / (2 N)

N is counted in units of u, a public number.  Adding or removing a record changes (S, u N) by at most
(R, u), replacing it by at most (2 R, 0).  Centring the codes at the middle of the grid makes the change
of S smallest, and then noise in N has no effect on a mean in the middle.  S and N are cut at what
``most_rows`` records can reach (``dpcore.domain.adjacency``).

A mean has a value if its noisy number of records exceeds ``FEWEST_ERRORS`` standard errors.  With fewer
records it has only an interval, which contains the mean if there are any records.

A record without a value is left out of both.  Where there is a mean for each group of other columns,
the pairs (S, u N) of all groups are one vector, and a record lies in one of them.  Adding or removing a
record then still changes the vector by at most R + u, whatever the number of groups.  Replacing it
changes the vector by R + u if the other one has no value, and by 2 (R + u) if it is of another group.

In the Euclidean norm, which counts for Gaussian noise, the squares of these changes are

    a record is added, removed, or replaced by one without a value     R^2 + u^2
    replaced by one of its group, or of another group                  4 R^2, or 2 (R^2 + u^2)

so u = R costs nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from dpcore.arrays import Floats, wide
from dpcore.domain.axes import Axis, Grid
from dpcore.domain.cell_values import ends_of
from dpcore.domain.tally import Tally
from dpcore.line.statistic import Exact, Noisy
from dpcore.mechanisms import DiscreteGaussian, DiscreteLaplace
from dpcore.post.combined_noise import half_widths_of_two
from dpcore.releases.base import ErrorStatement, Release
from dpcore.releases.counts.cells import describe_cells
from dpcore.releases.numbers.by_group import require_groups
from dpcore.releases.numbers.mean import (
    TOO_LARGE,
    mean_columns,
    mean_uncertainty,
    of_the_grid,
)
from dpcore.releases.table import (
    ENDS,
    FEWEST_ERRORS,
    LEVEL,
    REASON,
    Published,
    Table,
    TableColumn,
    Uncertainty,
    error_column,
    reason_column,
)
from dpcore.releases.tables.measured import TableNoise

PIECES = 32
"""The number of pieces between the middle of a mean's range and a bound."""


@dataclass(frozen=True)
class RatioMean(Release):
    """The mean of the last axis of the domain, a grid that may have nulls, and the number of records.

    The axes before it define the groups: categories, or whole numbers; null is a separate group.
    """

    noise: TableNoise = "discrete-laplace"

    finer = "narrower bounds or fewer groups"

    chart = "number"
    too_large = TOO_LARGE
    statistics = ("standard_error", *ENDS, "noisy_rows", "rows_standard_error", REASON)

    def __post_init__(self) -> None:
        require_groups(self.domain.axes[:-1])
        super().__post_init__()

    def published_names(self, axis: Axis) -> tuple[str, ...]:
        of_numbers = ("noisy_mean", "mean")
        return of_numbers if axis.name == self.grid.name else super().published_names(axis)

    @property
    def grid(self) -> Grid:
        axis = self.domain.axes[-1]
        if not isinstance(axis, Grid):
            raise ValueError(f"column: {axis.name!r} is not numeric; choose a numeric column")
        return axis

    @property
    def groups(self) -> int:
        """The number of means."""
        return math.prod(self.domain.shape[:-1])

    @property
    def reach(self) -> int:
        """The last code, R."""
        return self.grid.cells - 1

    @property
    def _stays(self) -> bool:
        """Whether a replaced record always stays in its group, for example if there is only one."""
        return self.adjacency.relation == "replace-one" and self.groups == 1

    @property
    def record(self) -> int:
        """The weight u of a record's count: u = R costs nothing if replacing a record changes sums by 2
        R."""
        costs_nothing = self._stays or self.noise == "discrete-gaussian"
        return max(self.reach if costs_nothing else self.reach // 2, 1)

    @cached_property
    def mechanism(self) -> DiscreteLaplace | DiscreteGaussian:
        if self.noise == "discrete-gaussian":
            one = Fraction(self.reach**2 + self.record**2)
            largest = max(Fraction(4 * self.reach**2), one if self._stays else 2 * one)
            squared = self.adjacency.squared(moved=largest, present=one)
            return DiscreteGaussian.within(self.share, 2 * self.groups, squared)
        present = self.reach + self.record
        # A record that is replaced by one without a value counts in only one of the tables.
        moved = max(2 * self.reach, present) if self._stays else 2 * present
        sensitivity = self.adjacency.sensitivity(moved=Fraction(moved), present=Fraction(present))
        return DiscreteLaplace.within(self.share, 2 * self.groups, sensitivity)

    @property
    def largest_statistic(self) -> int:
        return self.most_rows * max(self.reach, self.record)

    def statistic(self, tally: Tally) -> Exact:
        counts, most = wide(tally.counts, self.most_rows), self.most_rows
        group, code = np.divmod(tally.cells, self.grid.size)
        known = code < self.grid.cells
        totals, rows = np.zeros((2, self.groups), dtype=counts.dtype)
        np.add.at(totals, group[known], (counts * (2 * code - self.reach))[known])
        np.add.at(rows, group[known], counts[known])
        totals = np.clip(totals, -self.reach * most, self.reach * most)
        return Exact(np.r_[totals, self.record * np.minimum(rows, most)].astype(np.int64))

    def publish(self, noisy: Noisy) -> Published:
        middle, half = self._scale
        totals, counts = self._sums(noisy)
        lower, upper = self.intervals(noisy, LEVEL)
        positive = np.maximum(counts, 1.0)
        errors = half * self._error(totals / positive, positive)
        of_rows = np.full(self.groups, self.mechanism.stddev / self.record)
        hidden = counts <= FEWEST_ERRORS * of_rows
        known = " with a value" if self.grid.nullable else ""
        inside = f"{known} in the group" if self.domain.axes[:-1] else known
        columns = [
            *describe_cells(self.domain.select(self.domain.names[:-1])),
            *mean_columns(
                self.grid,
                middle + half * totals / positive,
                f"Noisy sum of {self.grid.name} divided by noisy_rows; null if there may be no records",
                error_column(errors, "noisy_mean", ", to first order"),
                (lower, upper),
                hidden,
            ),
            TableColumn("noisy_rows", counts, f"Number of records{inside} plus noise of mean zero"),
            error_column(of_rows, "noisy_rows", name="rows_standard_error"),
            reason_column(hidden),
        ]
        law = "From the distribution of the noise"
        holds = f"{law} in sum and count; the interval covers the mean in at least 90% of releases."
        table = Table(
            "tables",
            self.name,
            columns,
            (
                *mean_uncertainty(holds + of_the_grid(self.grid)),
                Uncertainty("noisy_rows", "rows_standard_error", None, "exact", f"{law}."),
            ),
        )
        return Published((table,), {"column": self.grid.name, "grid_step": 2 * half})

    @property
    def _scale(self) -> tuple[float, float]:
        """The middle of the bounds, and half the width of a cell."""
        first, last = ends_of(self.grid)
        return (first + last) / 2, (last - first) / 2 / max(self.reach, 1)

    def _sums(self, noisy: Noisy) -> tuple[Floats, Floats]:
        """The sums S and the numbers N of records, (groups,) each."""
        totals, counts = noisy.values.astype(np.float64).reshape(2, self.groups)
        return totals, counts / self.record

    def intervals(self, noisy: Noisy, level: float) -> tuple[Floats, Floats]:
        """The ends (groups,) of an interval that contains each mean in this fraction of releases."""
        middle, half = self._scale
        lower, upper = self._intervals(*self._sums(noisy), level)
        return middle + half * lower, middle + half * upper

    def _intervals(self, totals: Floats, counts: Floats, level: float) -> tuple[Floats, Floats]:
        """The ends (groups,) of an interval for S / N within -R and R: all m for which |S - m N| is not
        too large at this level, whatever the exact ratio is (Fieller 1954).

        The noise of S - m N grows with |m|; each piece of the range uses the noise at its larger end.
        """
        ends = self.reach * np.linspace(0.0, 1.0, PIECES + 1)
        wide = half_widths_of_two(self.mechanism, ends[1:] / self.record, level)
        firsts, lasts = np.r_[-ends[:0:-1], ends[:-1]], np.r_[-ends[-2::-1], ends[1:]]
        # Dividing by almost zero puts both ends beyond every bound.
        width, rows = np.r_[wide[::-1], wide], np.where(counts == 0, 1e-9, counts)[:, None]
        sides = (totals[:, None] - width) / rows, (totals[:, None] + width) / rows
        lower = np.maximum(np.minimum(*sides), firsts)
        upper = np.minimum(np.maximum(*sides), lasts)
        some = lower <= upper
        reached = some.any(axis=1)
        lower = np.where(some, lower, self.reach).min(axis=1)
        upper = np.where(some, upper, -self.reach).max(axis=1)
        # If no ratio fits the noisy numbers, the mean may have any value.
        return np.where(reached, lower, -self.reach), np.where(reached, upper, self.reach)

    def _error(self, ratios: Floats, counts: Floats | float) -> Floats:
        """The standard deviations of S / N, to first order."""
        ratios = np.minimum(np.abs(ratios), self.reach)
        return np.asarray(self.mechanism.stddev * np.hypot(1.0, ratios / self.record) / counts)

    def expected_error(self) -> tuple[ErrorStatement, ...]:
        _, half = self._scale
        each = self.rows / self.groups
        if self.groups > 1:
            note = (
                f"in a group of average size, {each:.3g} records; ten times larger for a tenth of the"
                " records"
            )
            note += ", if all of them have a value" * self.grid.nullable
        elif self.grid.nullable:
            note = "if as many records as the plan states have a value"
        else:
            note = "if there are as many records as the plan guesses"
        middle, bound = (half * self._error(np.array([0.0, self.reach]), each)).tolist()
        of = " in a group" if self.groups > 1 else ""
        return (
            ErrorStatement("standard error of a mean in the middle of its bounds", middle, note),
            ErrorStatement("standard error of a mean at a bound", bound, note),
            ErrorStatement(
                f"standard error of the number of records{of}",
                self.mechanism.stddev / self.record,
            ),
        )
