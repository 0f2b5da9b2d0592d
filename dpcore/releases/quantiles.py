"""Quantiles of a numeric column, each chosen by the exponential mechanism from the public grid.

A cell c of the grid is a q-quantile of n records where

    records below c  <=  q n  <=  records below c or in it;        otherwise its score is how many
                                                                   records that misses by

(METHODS m on a grid).  Some cell always scores 0.  Replacing a record moves each of the two counts
by at most one, so a score moves by at most one, and in whole numbers, for q = a/b, by at most b.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from dpcore.domain import Grid, Tally
from dpcore.mechanisms import ExponentialMechanism
from dpcore.releases.base import LEVEL, ErrorStatement, Published, Release, Table, Uncertainty
from dpcore.releases.cells import describe_cells, described_as
from dpcore.statistic import Exact, Noisy

LARGEST_SCORES = 2**24
LARGEST_SCORE = 2**60


@dataclass(frozen=True)
class Quantiles(Release):
    """Quantiles of one column at public ``levels``, ascending, each strictly between 0 and 1."""

    levels: tuple[Fraction, ...] = ()

    def __post_init__(self) -> None:
        (axis,) = self.domain.axes
        if not isinstance(axis, Grid) or axis.nullable:
            raise ValueError(
                f"column: {axis.name} must be an integer or continuous column without nulls"
            )
        if not self.levels or any(not 0 < level < 1 for level in self.levels):
            raise ValueError("levels: one at least, each strictly between 0 and 1")
        if list(self.levels) != sorted(set(self.levels)):
            raise ValueError("levels: must ascend")
        if self.domain.size * len(self.levels) > LARGEST_SCORES:
            raise ValueError(
                f"column: {axis.name} has too many values to choose from; use narrower bounds"
            )
        if self._unit * self.rows > LARGEST_SCORE:
            raise ValueError("levels: have too many digits for so many rows; shorten them")

    @cached_property
    def _unit(self) -> int:
        """Scores are counted in parts of a record, so that they are whole numbers."""
        return math.lcm(*(level.denominator for level in self.levels))

    @cached_property
    def mechanism(self) -> ExponentialMechanism:
        return ExponentialMechanism.within(
            self.share, len(self.levels), self.domain.size, Fraction(self._unit)
        )

    def statistic(self, tally: Tally) -> Exact:
        counts = tally.dense()
        up_to = np.cumsum(counts)
        ranks = [int(level * self._unit) * self.rows for level in self.levels]
        missed = [
            np.maximum(self._unit * (up_to - counts) - rank, rank - self._unit * up_to)
            for rank in ranks
        ]
        return Exact(np.maximum(np.concatenate(missed), 0))

    @cached_property
    def rank_error(self) -> float:
        """Records by which any quantile misses its rank: at most so many, with probability LEVEL.

        Of each choice a candidate that scores 0 has weight 1, and those beyond the error together
        (candidates - 1) exp(-error/scale) at most.
        """
        others = len(self.levels) * max(self.domain.size - 1, 1)
        scale = float(self.mechanism.scale) / self._unit
        return min(scale * math.log(others / (1 - LEVEL)), float(self.rows))

    def publish(self, noisy: Noisy) -> Published:
        # Cells within the error of each level: ends ascend, so that sorted cells are within it too.
        cells = np.sort(noisy.values)
        columns, descriptions = describe_cells(self.domain, cells)
        share = self.rank_error / self.rows
        table = Table(
            "tables",
            self.name,
            {"level": np.array([float(level) for level in self.levels])}
            | columns
            | {"rank_error_90": np.full(len(cells), share)},
            {"level": "The part of the records that lie below the quantile"}
            | descriptions
            | {
                "rank_error_90": "With probability 90% all cells hold a quantile of a level that"
                " differs from the stated one by at most this much"
            },
            described_as(self.domain),
            tuple(
                Uncertainty(
                    name,
                    None,
                    None,
                    "exact",
                    "Wrong by its rank: the cell holds a quantile of a level within rank_error_90 of"
                    " the stated one, for all levels together with probability 90% at least.",
                )
                for name in columns
            ),
        )
        return Published((table,), {"candidates": self.domain.size})

    def expected_error(self) -> tuple[ErrorStatement, ...]:
        return (
            ErrorStatement(
                "90% bound of the largest rank error, in records",
                self.rank_error,
                f"{self.rank_error / self.rows:.1%} of rows; from noise, whatever the data",
            ),
        )
