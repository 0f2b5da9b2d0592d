"""Bandwidths for a kernel density, from private interquartile ranges (METHODS m).

    Bandwidth          from two quartiles of each column by the exponential mechanism on the public
                       grid: pure alpha
    SteadyBandwidth    of one column from their difference by propose-test-release: (alpha, beta), or
                       no answer

Silverman's rule for d columns is h = (4/(d + 2))^(1/(d + 4)) n^(-1/(d + 4)) IQR/1.34, which begins with
1.06 for one column and with 1 for two (Silverman 1986, section 4.3.2); n is public.  All after the
choice is post-processing: a density at these bandwidths is a release of its own, which pays for itself
(``tuned``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

import numpy as np

from dpcore.domain.axes import Grid
from dpcore.domain.tally import Tally
from dpcore.line.statistic import Exact, Noisy
from dpcore.mechanisms import ProposeTestRelease
from dpcore.mechanisms.propose_test_release import STEPS
from dpcore.releases.base import ErrorStatement, Release
from dpcore.releases.numbers.quantiles import LARGEST_SCORES, Quantiles
from dpcore.releases.table import ENDS, LEVEL, Published, Table, TableColumn, Uncertainty
from dpcore.sampling.discrete_laplace import laplace_quantile


@dataclass(frozen=True)
class Bandwidth(Quantiles):
    """The quartiles of each column, and bandwidths as parts of their ranges.

    ``smallest``: the least bandwidth that is published, public; it is used where the quartiles meet,
    as they do where half of the records are in one cell.
    """

    levels: tuple[Fraction, ...] = field(default=(Fraction(1, 4), Fraction(3, 4)), init=False)
    smallest: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if any(axis.size > axis.cells for axis in self.measured):
            raise ValueError(
                "bandwidth: a private one is for columns without nulls and point masses"
            )
        _require_positive(self.smallest)

    def bandwidths(self, noisy: Noisy) -> tuple[float, ...]:
        """The standard deviations of the kernel, as parts of the columns' ranges."""
        cells = self.sorted_cells(noisy)
        spreads = np.diff(cells, axis=0)[0] / self.domain.shape
        found = (silverman(float(spread), self.rows, len(spreads)) for spread in spreads)
        return tuple(max(bandwidth, self.smallest) for bandwidth in found)


@dataclass(frozen=True)
class SteadyBandwidth(Release):
    """The interquartile range of one column where it is steady, and a bandwidth.

    ``smallest``: the least bandwidth that is published, public; it is used where no answer is given,
    as happens where few records can move a quartile by much.
    """

    smallest: float = 0.0

    def __post_init__(self) -> None:
        axis, *others = self.domain.axes
        if others:
            raise ValueError("interquartile-range is for a single column; use quantiles")
        if not isinstance(axis, Grid) or axis.size > axis.cells:
            raise ValueError(
                f"column: {axis.name} must be an integer or continuous column without nulls and"
                " point masses"
            )
        self.adjacency.require_public_rows("propose-test-release")
        if self.domain.size > LARGEST_SCORES:
            raise ValueError(f"column: {axis.name} has too many values; use narrower bounds")
        _require_positive(self.smallest)
        super().__post_init__()

    @property
    def largest_statistic(self) -> int:
        return self.most_rows

    @cached_property
    def mechanism(self) -> ProposeTestRelease:
        return ProposeTestRelease.within(self.share, self.domain.size, self.rows)

    def statistic(self, tally: Tally) -> Exact:
        return Exact(tally.counts, tally.cells)

    def bandwidths(self, noisy: Noisy) -> tuple[float, ...]:
        """The standard deviation of the kernel, as a part of the column's range."""
        grid, steps = noisy.values.tolist()
        spread = self.mechanism.width(steps) / self.domain.size if grid else 0.0
        return (max(silverman(spread, self.rows), self.smallest),)

    @property
    def _error(self) -> int:
        """The noise in steps that is not exceeded with probability LEVEL, and the rounding."""
        return int(laplace_quantile(self.mechanism.scale, LEVEL)) + 1

    def publish(self, noisy: Noisy) -> Published:
        grid, steps = noisy.values.tolist()
        (axis,), width = self.domain.axes, self.mechanism.width
        assert isinstance(axis, Grid)
        unit = axis.span / axis.cells
        of = "of a 90% interval for the interquartile range of the cells"
        described = {
            "interquartile_range": (
                steps,
                f"Noisy interquartile range of the grid cells of {axis.name}; no row if the mechanism"
                " gave no answer",
            ),
            ENDS[0]: (steps - self._error, f"Lower end {of}"),
            ENDS[1]: (steps + self._error, f"Upper end {of}"),
        }
        columns = [
            TableColumn(name, np.array([width(at) * unit] if grid else []), text)
            for name, (at, text) in described.items()
        ]
        statement = (
            "From the distribution of the noise, which is a factor, whichever test was passed."
        )
        known = Uncertainty("interquartile_range", None, ENDS, "exact", statement)
        table = Table("tables", self.name, columns, (known,))
        return Published((table,), {"answered": bool(grid)})

    def expected_error(self) -> tuple[ErrorStatement, ...]:
        factor = math.exp(min(self._error / STEPS * math.log(self.mechanism.base), 700.0))
        return (
            ErrorStatement("90% bound of the factor by which the interquartile range errs", factor),
            ErrorStatement(
                "records that must move before it leaves its cell, about",
                self.mechanism.threshold,
                "if fewer suffice, an answer is unlikely",
            ),
        )


def silverman(spread: float, rows: int, columns: int = 1) -> float:
    """The rule of thumb for the bandwidth of ``columns`` columns, from the interquartile range."""
    return float((4 / ((columns + 2) * rows)) ** (1 / (columns + 4)) * spread / 1.34)


def _require_positive(smallest: float) -> None:
    if not (math.isfinite(smallest) and smallest > 0):
        raise ValueError("smallest: must be positive, a part of the column's range")
