"""The mean of a numeric column.

Values are clamped to the public bounds and rounded to the public grid; the statistic is the sum of
their codes, and n is public.  Under differential privacy the sensitivity is the width of the bounds;
under random differential privacy the noise follows the bulk of the data.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np

from dpcore.arrays import Booleans, Floats
from dpcore.domain.axes import Grid
from dpcore.domain.cell_values import ends_of
from dpcore.domain.domain import Domain
from dpcore.domain.tally import Tally
from dpcore.line.statistic import Exact, Noisy
from dpcore.mechanisms import DiscreteGaussian, DiscreteLaplace, SmoothLaplace
from dpcore.post.tables.bounded import bounded_interval
from dpcore.releases.base import ErrorStatement, Release
from dpcore.releases.table import (
    ENDS,
    LEVEL,
    Published,
    Table,
    TableColumn,
    Uncertainty,
    error_column,
    interval_columns,
    unless,
)
from dpcore.releases.tables.measured import TableNoise
from dpcore.sampling.discrete_laplace import laplace_quantile, laplace_stddev

TOO_LARGE = ("column", "use narrower bounds, or a continuous column with a coarser grid")


def numeric_axis(domain: Domain) -> Grid:
    """The only axis of a domain, which must be numeric and without nulls."""
    (axis,) = domain.axes
    if not isinstance(axis, Grid):
        raise ValueError(f"columns: {axis.name!r} is not numeric; choose a numeric column")
    if axis.nullable:
        raise ValueError(f"columns: {axis.name!r} may be null; choose a column without nulls")
    return axis


def of_the_grid(grid: Grid) -> str:
    """A sentence on errors of a mean that are not included, from public values only."""
    width = grid.upper - grid.lower
    clamped = (
        " Not included: if the plan clamps, a value beyond a bound counts as the bound. If one per"
        " cent of records lie beyond a bound, by a tenth of the range on average, the mean moves by"
        f" {width / 1000:.3g}."
    )
    if grid.integer:
        return clamped
    half = width / grid.cells / 2
    return f"{clamped} Rounding to the middle of grid cells (at most {half:.3g}) is also left out."


def mean_columns(
    grid: Grid,
    estimates: Floats,
    noisy: str,
    error: TableColumn,
    ends: tuple[Floats, Floats],
    hidden: Booleans | bool = False,
) -> list[TableColumn]:
    """The columns of a table of means (k,) with the ends of intervals.

    ``noisy``: the meaning of ``noisy_mean``; ``hidden``: (k,) which means have no value.
    """
    nearest = f"Mean of {grid.name}: noisy_mean, or the nearest bound if it is outside"
    return [
        TableColumn("noisy_mean", unless(hidden, estimates), noisy, grid.name),
        replace(error, values=unless(hidden, error.values)),
        *interval_columns(*ends, "the mean"),
        TableColumn("mean", unless(hidden, np.clip(estimates, *ends_of(grid))), nearest, grid.name),
    ]


def mean_uncertainty(statement: str) -> tuple[Uncertainty, ...]:
    """The error statements of both columns; a report draws the first."""
    return tuple(
        Uncertainty(name, "standard_error", ENDS, "exact", statement)
        for name in ("mean", "noisy_mean")
    )


@dataclass(frozen=True)
class SumOverRecords(Release):
    """A noisy sum of one numeric column, the domain's only axis, over a public number of records.

    ``smooth``: the noise is for the bulk of the records, under random differential privacy.
    """

    smooth: bool = False

    chart = "number"
    too_large = TOO_LARGE

    def __post_init__(self) -> None:
        self.adjacency.require_public_rows(
            "random-smooth-laplace" if self.smooth else "a sum over public rows"
        )
        super().__post_init__()

    @property
    def grid(self) -> Grid:
        return numeric_axis(self.domain)

    @property
    @abstractmethod
    def mechanism(self) -> DiscreteLaplace | DiscreteGaussian | SmoothLaplace: ...

    @abstractmethod
    def total(self, tally: Tally) -> int:
        """The sum: private."""

    def statistic(self, tally: Tally) -> Exact:
        if self.smooth:
            return Exact(tally.counts, tally.cells)
        return Exact(np.array([self.total(tally)], dtype=np.int64))

    def promises(self, near: Tally, far: Tally) -> bool:
        """Whether the sum changes by at most the width that determines the noise of both tables."""
        if not isinstance(self.mechanism, SmoothLaplace):
            return True
        moved = abs(self.total(near) - self.total(far))
        levels = [self.mechanism.level(table.counts, table.cells) for table in (near, far)]
        return bool(moved <= self.mechanism.table[min(levels)])

    @property
    def _step(self) -> float:
        """The width of a cell of the grid."""
        return (self.grid.upper - self.grid.lower) / self.grid.cells

    def _error(self, noisy: Noisy) -> tuple[float, float, float]:
        """Errors of the sum: the standard deviation, and the sizes that noise exceeds in 10% of releases
        in either direction, and in one direction."""
        if not isinstance(self.mechanism, SmoothLaplace):
            both, one = (self.mechanism.half_width(level) for level in (LEVEL, 2 * LEVEL - 1))
            return self.mechanism.stddev, both, one
        # The scale is noisy: half of the 10% is for its bound, and half for noise of this scale.
        highest = self.mechanism.highest_level(int(noisy.values[1]), chance=0.05)
        scale = self.mechanism.scale(highest)
        both, one = (float(laplace_quantile(scale, level)) for level in ((1 + LEVEL) / 2, LEVEL))
        return laplace_stddev(scale), both, one


@dataclass(frozen=True)
class Mean(SumOverRecords):
    """The mean of the column."""

    noise: TableNoise = "discrete-laplace"

    finer = "narrower bounds"
    groups = 1

    @cached_property
    def mechanism(self) -> DiscreteLaplace | DiscreteGaussian | SmoothLaplace:
        if self.smooth:
            return SmoothLaplace.within(self.share, self.grid.size, self.rows)
        # With a single cell nothing moves, but noise needs a scale.
        moved = Fraction(max(self.grid.size - 1, 1))
        if self.noise == "discrete-gaussian":
            return DiscreteGaussian.within(self.share, 1, moved**2)
        return DiscreteLaplace.within(self.share, 1, moved)

    @property
    def largest_statistic(self) -> int:
        return self.most_rows * (self.grid.size - 1)

    def total(self, tally: Tally) -> int:
        return int(tally.counts @ tally.cells)

    @property
    def _unit(self) -> float:
        """The change of the mean when the sum of codes changes by one."""
        return self._step / self.rows

    def _estimate(self, noisy: Noisy) -> float:
        return ends_of(self.grid)[0] + self._unit * float(noisy.values[0])

    def intervals(self, noisy: Noisy, level: float) -> tuple[Floats, Floats]:
        """The ends (1,) of an interval that contains the mean in this fraction of releases.

        Not available for noise whose width is private.
        """
        assert not isinstance(self.mechanism, SmoothLaplace)
        wide, around = self._unit * self.mechanism.half_width(level), self._estimate(noisy)
        lower, upper = np.clip([[around - wide], [around + wide]], *ends_of(self.grid))
        return lower, upper

    def publish(self, noisy: Noisy) -> Published:
        first, last = ends_of(self.grid)
        estimate = self._estimate(noisy)
        deviation, both, one = (self._unit * error for error in self._error(noisy))
        ends = bounded_interval(np.array([estimate - first]), both, one, last - first)
        lower, upper = (first + end[0] for end in ends)
        at_most = ", at most (with 95% confidence)" if self.smooth else ""
        columns = mean_columns(
            self.grid,
            np.array([estimate]),
            f"Mean of {self.grid.name} plus noise of mean zero",
            error_column(np.array([deviation]), "noisy_mean", at_most),
            (np.atleast_1d(lower), np.atleast_1d(upper)),
        )
        by = f"From the distribution of the noise{at_most}; moving a mean to a bound adds no error."
        table = Table("tables", self.name, columns, mean_uncertainty(by + of_the_grid(self.grid)))
        return Published((table,), {"column": self.grid.name, "grid_step": self._step})

    def expected_error(self) -> tuple[ErrorStatement, ...]:
        if not isinstance(self.mechanism, SmoothLaplace):
            width = self.mechanism.half_width(LEVEL) * self._unit
            return (
                ErrorStatement("standard error of the mean", self.mechanism.stddev * self._unit),
                ErrorStatement(
                    "90% interval of the mean: plus or minus", width, of_the_grid(self.grid).strip()
                ),
            )
        most = laplace_stddev(self.mechanism.largest_scale) * self._unit
        inside = 1 - 2 * self.mechanism.trimmed / self.rows
        return (
            ErrorStatement(
                "standard error of the mean, at most",
                most,
                "if the records spread over the whole range",
            ),
            ErrorStatement(
                "standard error, at least, divided by the length of the interval of most records",
                math.sqrt(2) * 2 / float(self.mechanism.alpha) / self.rows,
                f"that interval contains the middle {inside:.2%} of the records",
            ),
            ErrorStatement(
                "expected number of records outside that interval, at most",
                float(self.mechanism.event.exposure) * self.rows,
                "gamma times the number of records; these records may be unprotected",
            ),
        )
