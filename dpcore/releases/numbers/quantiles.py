"""Quantiles of numeric columns, each chosen by the exponential mechanism from the public grid.

A cell c of the grid is a q-quantile of n records where

    records below c  <=  q n  <=  records below c or in it;        otherwise its score is how many
                                                                   records that misses by

(METHODS m on a grid).  Some cell always scores 0.  Replacing a record moves each of the two counts
by at most one, so a score moves by at most one, and in whole numbers, for q = a/b, by at most b.

Where n is private the table's own number of records stands for it.  A cell misses by the larger of

    records below - q n  =  (1 - q) records below  -  q records elsewhere
    q n - records up to  =  q records above  -  (1 - q) records elsewhere

or by 0.  A record that is added or removed is in one of the two places of either line, so both move
by q or by 1 - q, and the score by max(q, 1 - q) at most.  Scores are cut at a public maximum, which
moves no two of them apart.

Of several columns each has its choices, from as many candidates: a candidate of a column with a coarser
grid is a part of one of its cells, and has the score of that cell.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from dpcore.arrays import Integers, wide
from dpcore.domain import Grid, Tally
from dpcore.mechanism import WorstTable
from dpcore.mechanisms import ExponentialMechanism
from dpcore.releases.base import ErrorStatement, Release
from dpcore.releases.counts.cells import describe_cells
from dpcore.releases.table import LEVEL, Published, Table, TableColumn, Uncertainty
from dpcore.statistic import Exact, Noisy

LARGEST_SCORES = 2**24


@dataclass(frozen=True)
class Quantiles(Release):
    """Quantiles of each column at public ``levels``, ascending, each strictly between 0 and 1."""

    finer = "narrower bounds or fewer quantiles"

    levels: tuple[Fraction, ...] = ()

    chart = "levels"
    too_large = ("levels", "use levels with fewer digits")
    statistics = ("level", "rank_error_90", "rank_error_records_90")

    def __post_init__(self) -> None:
        for axis in self.domain.axes:
            if not isinstance(axis, Grid) or axis.nullable:
                raise ValueError(
                    f"column: {axis.name} must be an integer or continuous column without nulls"
                )
        if not self.levels or any(not 0 < level < 1 for level in self.levels):
            raise ValueError("levels: one at least, each strictly between 0 and 1")
        if list(self.levels) != sorted(set(self.levels)):
            raise ValueError("levels: must ascend")
        if self.candidates * self.choices > LARGEST_SCORES:
            raise ValueError(
                f"column: {axis.name} has too many values to choose from; use narrower bounds"
            )
        super().__post_init__()

    @cached_property
    def _unit(self) -> int:
        """Scores are counted in parts of a record, so that they are whole numbers."""
        return math.lcm(*(level.denominator for level in self.levels))

    @property
    def choices(self) -> int:
        """Quantiles of all columns."""
        return len(self.levels) * len(self.domain.axes)

    @property
    def candidates(self) -> int:
        """How many each choice has."""
        return max(self.domain.shape)

    @cached_property
    def mechanism(self) -> ExponentialMechanism:
        farthest = max(max(level, 1 - level) for level in self.levels)
        sensitivity = self.adjacency.sensitivity(moved=Fraction(1), present=farthest)
        return ExponentialMechanism.within(
            self.share, self.choices, self.candidates, sensitivity * self._unit
        )

    @property
    def largest_statistic(self) -> int:
        return self._unit * self.most_rows

    def statistic(self, tally: Tally) -> Exact:
        all_counts, missed = wide(tally.counts, self.most_rows), []
        for codes, size in zip(tally.domain.unpack(tally.cells).T, self.domain.shape, strict=True):
            counts = np.zeros(size, all_counts.dtype)
            np.add.at(counts, codes, all_counts)
            up_to, candidate = np.cumsum(counts), self._places(np.arange(self.candidates), size)
            for level in self.levels:
                rank = int(level * self._unit) * int(counts.sum())
                misses = np.maximum(self._unit * (up_to - counts) - rank, rank - self._unit * up_to)
                missed.append(misses[candidate])
        scores = np.clip(np.concatenate(missed), 0, self.largest_statistic)
        return Exact(scores.astype(np.int64))

    def _places(self, candidates: Integers, size: int) -> Integers:
        """The cells of a column of so many for which the candidates stand."""
        return candidates * size // self.candidates

    def sorted_cells(self, noisy: Noisy) -> Integers:
        """(levels, columns) the chosen cells of each column, ascending."""
        chosen = noisy.values.reshape(len(self.domain.axes), -1)
        cells = [
            self._places(row, size) for row, size in zip(chosen, self.domain.shape, strict=True)
        ]
        return np.sort(np.stack(cells, axis=1), axis=0)

    def worst_tables(self) -> Iterator[WorstTable]:
        """Ranks at a gap, where one record decides between one cell and all others; and on a slope,
        where cells miss the rank by multiples of the scale, so that all of them are chosen."""
        last, others = self.domain.size - 1, self.rows - 1
        if last < 3:
            return
        for level in self.levels[:3]:
            rank = max(1, math.floor(level * self.rows))
            if rank + 2 <= others:
                counts = {0: rank - 1, last - 1: 2, last: others - rank - 1}
                yield f"the rank of {float(level):g} at a gap", counts, 0, last
            steps = min(last - 1, 16)
            each = math.ceil(self.mechanism.scale / self._unit / 2)
            each = min(each, (others - rank) // steps, 2 * rank // steps)
            if each > 0:
                below = rank - steps // 2 * each
                slope = dict.fromkeys(range(1, steps + 1), each)
                counts = {**slope, 0: below, last: others - below - steps * each}
                yield f"the rank of {float(level):g} on a slope", counts, 0, last

    @cached_property
    def rank_error(self) -> float:
        """The most records by which any quantile misses its rank, with probability LEVEL.

        Of each choice a candidate that scores 0 has weight 1, and those beyond the error together
        (candidates - 1) exp(-error/scale) at most.
        """
        others = self.choices * max(self.candidates - 1, 1)
        scale = float(self.mechanism.scale) / self._unit
        return min(scale * math.log(others / (1 - LEVEL)), float(self.most_rows))

    def publish(self, noisy: Noisy) -> Published:
        # Cells within the error of each level: ends ascend, so that sorted cells are within it too.
        cells = self.domain.pack(self.sorted_cells(noisy))
        columns = describe_cells(self.domain, cells)
        name, error, unit = (
            "rank_error_90",
            self.rank_error / self.rows,
            "as a share of all records",
        )
        if not self.adjacency.public_rows:
            name, error, unit = "rank_error_records_90", self.rank_error, "in records"
        levels = np.array([float(level) for level in self.levels])
        within = (
            "With probability 90% every cell holds a quantile whose rank differs from that of its level"
            f" by at most this much, {unit}"
        )
        statement = (
            f"The error is one of rank: the cell holds a quantile within {name} of the stated level, for"
            " all levels together with probability 90% at least."
        )
        table = Table(
            "tables",
            self.name,
            [
                TableColumn(
                    "level", levels, "The share of the records that lie below the quantile"
                ),
                *columns,
                TableColumn(name, np.full(len(cells), error), within),
            ],
            tuple(Uncertainty(c.name, None, None, "exact", statement) for c in columns),
        )
        return Published((table,), {"candidates": self.candidates})

    def expected_error(self) -> tuple[ErrorStatement, ...]:
        return (
            ErrorStatement(
                "90% bound of the largest rank error, in records",
                self.rank_error,
                f"{self.rank_error / self.rows:.1%} of all records; from noise, whatever the data",
            ),
        )
