"""The variance or Gini's mean difference of a column: means of a kernel over all pairs of records.

Replacing a record moves the sum T of the kernel over all pairs by at most (n - 1) B, through its n - 1
pairs.  Under random differential privacy the noise follows the bulk of the data (``mechanism``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from dpcore.advice.usable import error_of_numbers, supposed_deviation
from dpcore.domain.tally import Tally
from dpcore.line.statistic import Noisy
from dpcore.mechanisms import DiscreteLaplace, SmoothLaplace
from dpcore.post.tables.bounded import bounded_interval
from dpcore.releases.base import ErrorStatement
from dpcore.releases.numbers.mean import SumOverRecords
from dpcore.releases.table import (
    ENDS,
    LEVEL,
    Published,
    Table,
    Uncertainty,
    error_column,
    interval_columns,
    one_row,
)
from dpcore.sampling.discrete_laplace import laplace_stddev
from papers.u_statistic.kernels import KernelName, largest, of_pairs
from papers.u_statistic.mechanism import PairLaplace


@dataclass(frozen=True)
class UStatistic(SumOverRecords):
    """``kernel``: the function that is averaged over pairs.

    For a variance, its root and the root's interval are published too, in the unit of the column.
    """

    kernel: KernelName = "variance"

    finer = "narrower bounds"

    def __post_init__(self) -> None:
        if self.rows < 2:
            raise ValueError("rows: a mean over pairs needs at least 2 records")
        if self.grid.size < 2:
            raise ValueError(f"column: {self.grid.name} has one possible value")
        super().__post_init__()

    @cached_property
    def mechanism(self) -> DiscreteLaplace | SmoothLaplace:
        if self.smooth:
            return PairLaplace.within(self.share, self.grid.size, self.rows, self.kernel)
        return self._plain

    @property
    def _plain(self) -> DiscreteLaplace:
        """The mechanism with noise that hides any record."""
        moved = (self.rows - 1) * largest(self.kernel, self.grid.size)
        return DiscreteLaplace.within(self.share, 1, Fraction(moved))

    @property
    def largest_statistic(self) -> int:
        return self.most_rows**2 * largest(self.kernel, self.grid.size)

    def total(self, tally: Tally) -> int:
        return of_pairs(self.kernel, tally.counts, tally.cells)

    @property
    def _unit(self) -> float:
        """The change of the mean over pairs per unit of the sum."""
        step = self._step**2 / 2 if self.kernel == "variance" else self._step
        return 2 * step / (self.rows * (self.rows - 1))

    @property
    def _most(self) -> float:
        """The largest mean over pairs, attained if half of the records are at either bound."""
        halves = (self.rows // 2) * (self.rows - self.rows // 2)
        return self._unit * halves * largest(self.kernel, self.grid.size)

    @property
    def measured(self) -> str:
        """Words for the mean over pairs."""
        return self.kernel.replace("-", " ")

    def publish(self, noisy: Noisy) -> Published:
        estimate, of = self._unit * float(noisy.values[0]), self.grid.name
        deviation, both, one = (self._unit * error for error in self._error(noisy))
        nearest = min(max(estimate, 0.0), self._most)
        ends = bounded_interval(np.array([estimate]), both, one, self._most)
        shown = self.measured
        if self.kernel == "variance":
            shown, nearest = "standard deviation", math.sqrt(nearest)
            ends = np.sqrt(ends[0]), np.sqrt(ends[1])
        noisy_name, name = (f"noisy {self.measured}".replace(" ", "_"), shown.replace(" ", "_"))
        about = f"{self.measured.capitalize()} of {of} plus noise of mean zero"
        at_most = ", at most (with 95% confidence)" if self.smooth else ""
        columns = [
            one_row(noisy_name, estimate, about),
            error_column(np.array([deviation]), noisy_name, at_most),
            one_row(name, nearest, f"{shown.capitalize()} of {of}", of),
            *interval_columns(*ends, f"the {shown}"),
        ]
        by = f"From the distribution of the noise{at_most}. {self._not_included}"
        uncertainty = (
            Uncertainty(name, None, ENDS, "exact", by),
            Uncertainty(noisy_name, "standard_error", None, "exact", by),
        )
        table = Table("tables", self.name, columns, uncertainty)
        return Published((table,), {"column": of, "grid_step": self._step})

    @property
    def _not_included(self) -> str:
        """Words on what the stated errors do not include, from public values alone."""
        found = (
            "Not included: the bias from moving values beyond a bound to it (if the plan clamps)"
        )
        if not self.grid.integer:
            found += (
                ", and from moving values to the middle of their grid cells, by at most"
                f" {self._step / 2:.3g}"
            )
        return f"{found}."

    def expected_error(self) -> tuple[ErrorStatement, ...]:
        plain = self._plain
        what, any_data = f"standard error of the {self.measured}", plain.stddev * self._unit
        if not isinstance(self.mechanism, SmoothLaplace):
            width = plain.half_width(LEVEL) * self._unit
            return (
                ErrorStatement(what, any_data),
                ErrorStatement(f"90% interval of the {self.measured}: plus or minus", width),
            )
        least, most = (
            laplace_stddev(scale) * self._unit
            for scale in (self.mechanism.scale(0), self.mechanism.largest_scale)
        )
        return (
            ErrorStatement(f"{what}, at most", most, "if the records spread over the whole range"),
            ErrorStatement(f"{what}, at least", least, "if nearly all records are equal"),
            ErrorStatement(f"{what} with discrete-laplace", any_data, "whatever the records are"),
            ErrorStatement(
                "expected number of unusual records that may be unprotected, at most",
                float(self.mechanism.event.exposure) * self.rows,
                "gamma times the number of records",
            ),
        )


@error_of_numbers.register
def _(release: UStatistic) -> float:
    """The typical standard deviation, or the mean difference, which is nearly as large."""
    error, deviation = release.expected_error()[0].value, supposed_deviation(release.grid)
    return error / (2 * deviation**2 if release.kernel == "variance" else deviation)
