"""The nearest of some public functions to a distribution (Hall, Rinaldo & Wasserman 2013, section 3.2).

f_D is the distribution function of one column at the ends of its cells, and the functions g_1, ..., g_m
are public.  One is chosen by the exponential mechanism (``dpcore.mechanisms.exponential``) by the score

    max over cells j of | records up to j - n g_i(j) |,    n g_i(j) rounded to a whole number.

Replacing a record moves each number of records up to a cell by at most 1, and so the score.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from dpcore.arrays import Floats, Integers
from dpcore.domain.axes import Bins, Grid
from dpcore.domain.tally import Tally
from dpcore.line.statistic import Exact, Noisy
from dpcore.mechanisms import ExponentialMechanism
from dpcore.releases.base import ErrorStatement, Release
from dpcore.releases.counts.cells import describe_cells
from dpcore.releases.table import LEVEL, Published, Table, TableColumn, Uncertainty


@dataclass(frozen=True)
class ListedFunction(Release):
    """``names`` of the functions; ``shares``: for each, numbers proportional to shares of the cells."""

    names: tuple[str, ...]
    shares: tuple[tuple[float, ...], ...]

    chart = "cumulative"
    statistics = ("share",)
    finer = "fewer functions"

    def __post_init__(self) -> None:
        (axis,) = self.domain.axes
        if not isinstance(axis, Bins | Grid) or axis.nullable:
            raise ValueError(f"column: {axis.name} must be numeric and without nulls")
        self.adjacency.require_public_rows("nearest-function")
        if len(self.shares) < 2:
            raise ValueError("functions: state at least two")
        for name, shares in zip(self.names, self.shares, strict=True):
            if len(shares) != self.domain.size or min(shares) < 0 or not 0 < sum(shares) < math.inf:
                raise ValueError(
                    f"functions.{name}: state a number for each of the {self.domain.size} cells of"
                    f" {axis.name}, none negative and not all zero"
                )
        super().__post_init__()

    @cached_property
    def _normalised(self) -> Floats:
        """Shares that add up to 1, (functions, cells)."""
        shares = np.array(self.shares)
        return np.asarray(shares / shares.sum(axis=1, keepdims=True))

    @cached_property
    def _up_to(self) -> Integers:
        """The rounded numbers n g, (functions, cells)."""
        return np.rint(self.rows * np.cumsum(self._normalised, axis=1)).astype(np.int64)

    @cached_property
    def mechanism(self) -> ExponentialMechanism:
        return ExponentialMechanism.within(self.share, 1, len(self.names), Fraction(1))

    @property
    def largest_statistic(self) -> int:
        return self.most_rows

    def statistic(self, tally: Tally) -> Exact:
        away = np.abs(np.cumsum(tally.dense()) - self._up_to).max(axis=1)
        return Exact(np.minimum(away, self.largest_statistic))

    @cached_property
    def excess(self) -> float:
        """A bound, with probability LEVEL, on the chosen function's distance minus the least distance.
        It includes the exponential mechanism and the rounding of n g."""
        score = float(self.mechanism.scale) * math.log(len(self.names) / (1 - LEVEL)) + 1
        return min(score / self.rows, 1.0)

    def publish(self, noisy: Noisy) -> Published:
        chosen = int(noisy.values[0])
        shares = TableColumn(
            "share",
            self._normalised[chosen],
            "Share of the records according to the chosen function",
        )
        statement = (
            "The function is public; its choice is private. With probability 90%, no other function of"
            f" the list is nearer to the exact distribution function by more than {self.excess:.3g}, at"
            " any end of a cell. The distances themselves are not published."
        )
        table = Table(
            "tables",
            self.name,
            [*describe_cells(self.domain), shares],
            (Uncertainty("share", None, None, "exact", statement),),
        )
        facts = {
            "chosen": self.names[chosen],
            "functions": list(self.names),
            "excess_90": self.excess,
        }
        return Published((table,), facts)

    def expected_error(self) -> tuple[ErrorStatement, ...]:
        return (
            ErrorStatement(
                "90% bound on the excess distance of the chosen function",
                self.excess,
                "largest difference of distribution functions, above the smallest in the list",
            ),
        )
