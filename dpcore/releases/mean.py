"""The mean of a numeric column.

Values are clamped to the public bounds and rounded to the public grid; the statistic is the sum of
their codes, and n is public.  Under differential privacy the sum moves by as much as the bounds are
wide; under random differential privacy the noise follows the bulk of the data (METHODS j).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from dpcore.domain import Domain, Grid, Tally
from dpcore.mechanisms import DiscreteLaplace, SmoothLaplace
from dpcore.post.bounded import bounded_interval
from dpcore.releases.base import LEVEL, ErrorStatement, Published, Release, Table, Uncertainty
from dpcore.sampling.discrete_laplace import laplace_quantile, laplace_stddev
from dpcore.statistic import Exact, Noisy


def numeric_axis(domain: Domain) -> Grid:
    """The one axis of a domain, which must have numbers only."""
    (axis,) = domain.axes
    if not isinstance(axis, Grid):
        raise ValueError(f"columns: {axis.name!r} is not numeric and has no mean")
    if axis.nullable:
        raise ValueError(f"columns: {axis.name!r} may be null; its mean needs values only")
    return axis


def of_the_grid(grid: Grid) -> str:
    """What the errors of a mean leave out, as a sentence."""
    if grid.integer:
        return ""
    half = (grid.upper - grid.lower) / grid.cells / 2
    return (
        f" Values are moved to the middle of their grid cells, by {half:.3g} at most: not counted."
    )


def ends_of(grid: Grid) -> tuple[float, float]:
    """What the first and the last code stand for: the middle of a cell, or a whole number itself."""
    step = (grid.upper - grid.lower) / grid.cells
    first = grid.lower + (0.0 if grid.integer else step / 2)
    return first, grid.upper - step + (first - grid.lower)


@dataclass(frozen=True)
class Mean(Release):
    """The mean of the one axis of the domain, a grid."""

    smooth: bool = False

    def __post_init__(self) -> None:
        self.adjacency.require_public_rows(
            "random-smooth-laplace" if self.smooth else "a sum over public rows"
        )
        _ = self.grid

    @property
    def grid(self) -> Grid:
        return numeric_axis(self.domain)

    @cached_property
    def mechanism(self) -> DiscreteLaplace | SmoothLaplace:
        if self.smooth:
            return SmoothLaplace.within(self.share, self.grid.size, self.rows)
        return DiscreteLaplace.within(self.share, 1, Fraction(max(self.grid.size - 1, 1)))

    def statistic(self, tally: Tally) -> Exact:
        if self.smooth:
            return Exact(tally.counts, tally.cells)
        return Exact(np.array([tally.counts @ tally.cells], dtype=np.int64))

    def promises(self, near: Tally, far: Tally) -> bool:
        """Whether the sum moves by no more than the width that either table's noise is made for."""
        if not isinstance(self.mechanism, SmoothLaplace):
            return True
        moved = abs(int(near.counts @ near.cells) - int(far.counts @ far.cells))
        levels = [self.mechanism.level(table.counts, table.cells) for table in (near, far)]
        return bool(moved <= self.mechanism.table[min(levels)])

    @property
    def _step(self) -> float:
        """The width of a cell of the grid."""
        return (self.grid.upper - self.grid.lower) / self.grid.cells

    @property
    def _unit(self) -> float:
        """What one unit of the sum of codes is worth in the mean."""
        return self._step / self.rows

    def publish(self, noisy: Noisy) -> Published:
        first, last = ends_of(self.grid)
        estimate = first + self._unit * float(noisy.values[0])
        deviation, both, one = (self._unit * error for error in self._error(noisy))
        ends = bounded_interval(np.array([estimate - first]), both, one, last - first)
        lower, upper = (first + float(end[0]) for end in ends)
        columns = {
            "noisy_mean": estimate,
            "standard_error": deviation,
            "lower_90": lower,
            "upper_90": upper,
            "mean": max(first, min(last, estimate)),
        }
        at_most = ", at most (with 95% confidence)" if self.smooth else ""
        return Published(
            (
                Table(
                    "tables",
                    self.name,
                    {name: np.array([value]) for name, value in columns.items()},
                    {
                        "noisy_mean": f"Mean of {self.grid.name} plus noise of mean zero",
                        "standard_error": f"Standard deviation of the noise{at_most}",
                        "lower_90": "Lower end of a 90% interval for the mean",
                        "upper_90": "Upper end of a 90% interval for the mean",
                        "mean": "noisy_mean, moved to the nearest bound where it is outside",
                    },
                    uncertainty=tuple(
                        Uncertainty(
                            name,
                            "standard_error",
                            ("lower_90", "upper_90"),
                            "exact",
                            f"By the law of the noise{at_most}; a mean moved to a bound errs no more."
                            + of_the_grid(self.grid),
                        )
                        for name in ("noisy_mean", "mean")
                    ),
                ),
            ),
            {"column": self.grid.name, "grid_step": self._step},
        )

    def _error(self, noisy: Noisy) -> tuple[float, float, float]:
        """Of the sum: standard deviation, and what the noise exceeds in 10% of releases, in size and
        in one direction."""
        if not isinstance(self.mechanism, SmoothLaplace):
            both, one = (self.mechanism.half_width(level) for level in (LEVEL, 2 * LEVEL - 1))
            return self.mechanism.stddev, both, one
        level = self.mechanism.highest_level(int(noisy.values[1]), chance=0.05)
        scale = self.mechanism.scale(level)
        both, one = (float(laplace_quantile(scale, level)) for level in ((1 + LEVEL) / 2, LEVEL))
        return laplace_stddev(scale), both, one

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
                "where records spread over all of the bounds",
            ),
            ErrorStatement(
                "standard error, as a part of the width that holds most records, at least",
                math.sqrt(2) * 2 / float(self.mechanism.alpha) / self.rows,
                f"the middle {inside:.4g} of the records",
            ),
            ErrorStatement(
                "expected number of people outside that width, at most",
                float(self.mechanism.event.exposure) * self.rows,
                "gamma times rows; they may not be protected",
            ),
        )
