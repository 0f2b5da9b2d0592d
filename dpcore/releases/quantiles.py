"""Quantiles of a numeric column, each chosen by the exponential mechanism from the public grid.

A cell c of the grid is a q-quantile of n records where

    records below c  <=  q n  <=  records below c or in it;        otherwise its score is how many
                                                                   records that misses by

(METHODS m on a grid).  Some cell always scores 0.  Replacing a record moves each of the two counts
by at most one, so a score moves by at most one, and in whole numbers, for q = a/b, by at most b.

Where n is private the table's own number of records stands for it.  A cell misses by the larger of

    records below - q n  =  (1 - q) records below  -  q records elsewhere
    q n - records up to  =  q records above  -  (1 - q) records elsewhere

or by 0.  A record that is added or removed is in one of the two places of either line, so both move
by q or by 1 - q, and the score by max(q, 1 - q) at most.
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
        if self._unit * self.most_rows > LARGEST_SCORE:
            raise ValueError("levels: have too many digits for so many rows; shorten them")

    @cached_property
    def _unit(self) -> int:
        """Scores are counted in parts of a record, so that they are whole numbers."""
        return math.lcm(*(level.denominator for level in self.levels))

    @cached_property
    def mechanism(self) -> ExponentialMechanism:
        farthest = max(max(level, 1 - level) for level in self.levels)
        sensitivity = self.adjacency.sensitivity(moved=Fraction(1), present=farthest)
        return ExponentialMechanism.within(
            self.share, len(self.levels), self.domain.size, sensitivity * self._unit
        )

    def statistic(self, tally: Tally) -> Exact:
        counts = tally.dense()
        up_to = np.cumsum(counts)
        ranks = [int(level * self._unit) * int(counts.sum()) for level in self.levels]
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
        return min(scale * math.log(others / (1 - LEVEL)), float(self.most_rows))

    def publish(self, noisy: Noisy) -> Published:
        # Cells within the error of each level: ends ascend, so that sorted cells are within it too.
        cells = np.sort(noisy.values)
        columns, descriptions = describe_cells(self.domain, cells)
        name, error, unit = "rank_error_90", self.rank_error / self.rows, "parts of all records"
        if not self.adjacency.public_rows:
            name, error, unit = "rank_error_records_90", self.rank_error, "records"
        table = Table(
            "tables",
            self.name,
            {"level": np.array([float(level) for level in self.levels])}
            | columns
            | {name: np.full(len(cells), error)},
            {"level": "The part of the records that lie below the quantile"}
            | descriptions
            | {
                name: "With probability 90% all cells hold a quantile whose rank differs from that of"
                f" the level by at most this much, in {unit}"
            },
            described_as(self.domain),
            tuple(
                Uncertainty(
                    column,
                    None,
                    None,
                    "exact",
                    f"Wrong by its rank: the cell holds a quantile within {name} of the stated level,"
                    " for all levels together with probability 90% at least.",
                )
                for column in columns
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
