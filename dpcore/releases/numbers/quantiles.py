"""Quantiles of numeric columns, each chosen by the exponential mechanism from the public grid.

A cell c of the grid is a q-quantile of n records where

    records below c  <=  q n  <=  records below c or in it;        otherwise its score is the number of
                                                                   records by which this fails

Some cell always scores 0.  Replacing a record moves each of the two counts by at most one, so a score
moves by at most one, and by at most b in whole numbers (units of 1/b), for q = a/b.

If n is private, the table's own number of records replaces it.  A cell misses by the largest of

    records below - q n  =  (1 - q) records below  -  q records elsewhere
    q n - records up to  =  q records above  -  (1 - q) records elsewhere

and 0.  An added or removed record counts in one of the two terms of each line, so both lines change
by q or 1 - q, and the score by at most max(q, 1 - q).

Each of several columns has its own choices, all from equally many candidates: if a column has a coarser
grid, a candidate is a part of one of its cells, and has the score of that cell.

Where records have weights, each step of weight counts as a record, also in m below.

A record without a value is left out.  With ``by`` the first columns define groups, and each group has
quantiles of its own records.  The number of records that count is then private under every relation.

**Lemma.**  For C columns and levels q, let Q be the sum of all max(q, 1 - q), D = 1 under replace-one
and the largest max(q, 1 - q) under add-remove, m the most records of a unit.  Then no score moves by
more than m D, and the largest moves of all choices add up to at most m k D, where k is

    C x levels      for one group, or if a record is in one of the tables only (add-remove)
    C x 2 Q         for several groups under replace-one; at least C x levels, as max(q, 1 - q) >= 1/2

*Proof.*  From one table to its neighbour there are at most m steps, each of which adds or removes a
record, or replaces one by another (``domain.adjacency``).  A record in no table has no group, and a
record without a value moves nothing.  Adding or removing a record changes only the scores of its group,
by at most max(q, 1 - q) for each level of each column.  Replacing it within its group changes them by at
most 1.  Replacing it by a record of another group removes it from the first group and adds one to the
second: each score belongs to one group and changes by max(q, 1 - q) <= 1, all scores together by C 2 Q.
The scores of other groups stay as they are.  The moves of several steps add up, and so do their bounds.
QED

So any number of groups costs at most twice as much as one group (``mechanisms.exponential``).  In a
group without records every cell scores 0, so all are equally likely.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np

from dpcore.arrays import Integers, wide
from dpcore.domain.axes import Axis, Grid
from dpcore.domain.domain import Domain
from dpcore.domain.tally import Tally
from dpcore.line.mechanism import WorstTable
from dpcore.line.statistic import Exact, Noisy
from dpcore.mechanisms import ExponentialMechanism
from dpcore.releases.base import ErrorStatement, Release
from dpcore.releases.counts.cells import describe_cells
from dpcore.releases.numbers.by_group import require_groups
from dpcore.releases.table import LEVEL, Published, Table, TableColumn, Uncertainty

LARGEST_SCORES = 2**24


@dataclass(frozen=True)
class ColumnQuantiles(Release):
    """Quantiles of each column at public ``levels``, ascending, each strictly between 0 and 1.

    ``by``: how many of the first columns define the groups; null is a separate group.
    """

    finer = "narrower bounds, fewer quantiles or fewer groups"

    levels: tuple[Fraction, ...] = ()
    by: int = 0

    chart = "levels"
    too_large = ("levels", "use levels with fewer digits")
    statistics = ("level", "rank_error_90", "rank_error_records_90")

    def __post_init__(self) -> None:
        for axis in self.domain.axes[self.by :]:
            if not isinstance(axis, Grid):
                raise ValueError(f"column: {axis.name} must be an integer or continuous column")
        require_groups(self.group_axes)
        if not self.levels or any(not 0 < level < 1 for level in self.levels):
            raise ValueError("levels: at least one, each strictly between 0 and 1")
        if list(self.levels) != sorted(set(self.levels)):
            raise ValueError("levels: must ascend")
        if self.candidates * self.choices > LARGEST_SCORES:
            raise ValueError(
                f"column: {axis.name} has too many values to choose from; use narrower bounds"
                + " or fewer groups" * bool(self.by)
            )
        super().__post_init__()

    @cached_property
    def _unit(self) -> int:
        """The number of score units per record, so that scores are whole numbers."""
        return math.lcm(*(level.denominator for level in self.levels))

    @property
    def group_axes(self) -> tuple[Axis, ...]:
        """The columns that define the groups."""
        return self.domain.axes[: self.by]

    @property
    def measured(self) -> tuple[Grid, ...]:
        """The columns with quantiles."""
        return tuple(axis for axis in self.domain.axes[self.by :] if isinstance(axis, Grid))

    @cached_property
    def groups(self) -> int:
        """The number of groups; one without ``by``."""
        return math.prod(axis.size for axis in self.group_axes)

    @property
    def public_rows(self) -> bool:
        """Whether the number of records that count is public."""
        return not self.of_nullable and self.groups == 1 and self.adjacency.public_rows

    @property
    def choices(self) -> int:
        """The number of choices: quantiles of all columns and groups."""
        return self.groups * len(self.levels) * len(self.measured)

    @property
    def candidates(self) -> int:
        """The number of candidates of each choice."""
        return max(axis.cells for axis in self.measured)

    @cached_property
    def mechanism(self) -> ExponentialMechanism:
        alone = [max(level, 1 - level) for level in self.levels]
        sensitivity = self.adjacency.sensitivity(moved=Fraction(1), present=max(alone))
        selections = self.choices // self.groups
        if self.groups > 1 and self.adjacency.relation == "replace-one":
            # The mechanism counts choices in whole numbers.
            selections = math.ceil(len(self.measured) * 2 * sum(alone))
        return ExponentialMechanism.within(
            self.share, self.choices, self.candidates, sensitivity * self._unit, selections
        )

    @property
    def largest_statistic(self) -> int:
        return self._unit * self.most_rows

    def statistic(self, tally: Tally) -> Exact:
        return Exact(self.scores(tally))

    def scores(self, tally: Tally) -> Integers:
        """The exact scores of all candidates, concatenated over choices: private."""
        all_counts, missed = wide(tally.counts, self.most_rows), []
        all_codes = tally.domain.unpack(tally.cells)
        group = Domain(self.group_axes).pack(all_codes[:, : self.by])
        for codes, axis in zip(all_codes.T[self.by :], self.measured, strict=True):
            table = np.zeros((self.groups, axis.size), all_counts.dtype)
            np.add.at(table, (group, codes), all_counts)
            candidate = self._places(np.arange(self.candidates), axis.cells)
            for counts in table[:, : axis.cells]:
                up_to = np.cumsum(counts)
                for level in self.levels:
                    rank = int(level * self._unit) * int(counts.sum())
                    misses = np.maximum(
                        self._unit * (up_to - counts) - rank, rank - self._unit * up_to
                    )
                    missed.append(misses[candidate])
        # Cutting scores at public bounds increases no difference between them.
        scores = np.clip(np.concatenate(missed), 0, self.largest_statistic)
        return np.asarray(scores.astype(np.int64))

    def _places(self, candidates: Integers, size: int) -> Integers:
        """The cells that the candidates represent in a column of ``size`` cells."""
        return candidates * size // self.candidates

    def sorted_cells(self, noisy: Noisy) -> Integers:
        """The chosen cells (groups x levels, columns) of each column, ascending within each group."""
        chosen = noisy.values.reshape(len(self.measured), self.groups, len(self.levels))
        cells = [
            np.sort(self._places(each, axis.cells), axis=1).ravel()
            for each, axis in zip(chosen, self.measured, strict=True)
        ]
        return np.stack(cells, axis=1)

    def worst_tables(self) -> Iterator[WorstTable]:
        """Tables at a gap, where one record decides between one cell and all others; and tables on a
        slope, where cells miss the rank by multiples of the scale, so that all are chosen.  With
        groups, the first and the last group have such tables, and one record moves from one to the
        other."""
        (last, *start) = self.domain.pack(
            np.array(
                [
                    [0] * self.by + [axis.cells - 1 for axis in self.measured],
                    [axis.size - 1 for axis in self.group_axes] + [0] * len(self.measured),
                ][: 1 + (self.groups > 1)]
            )
        ).tolist()
        if not start:
            yield from self._tight(self.rows, last)
        for of_group in start:
            for label, counts, first, second in self._tight(self.rows // 2, last):
                others = {of_group + cell: count for cell, count in counts.items()}
                both = counts | others
                both[of_group] += self.rows - 1 - sum(both.values())
                yield f"{label}, within a group", both, first, second
                yield f"{label}, between groups", both, first, of_group + second

    def _tight(self, rows: int, last: int) -> Iterator[WorstTable]:
        """The ``worst_tables`` of ``rows`` records, all between the cells 0 and ``last``."""
        others = rows - 1
        if last < 3:
            return
        for level in self.levels[:3]:
            rank = max(1, math.floor(level * rows))
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

    @property
    def of_nullable(self) -> bool:
        """Whether only records with a value count, so that their number is unknown."""
        return any(axis.nullable for axis in self.measured)

    @cached_property
    def rank_error(self) -> float:
        """A bound, with probability LEVEL, on the number of ranks by which any quantile is off.

        In each choice a candidate that scores 0 has weight 1, and the candidates beyond the error
        together have at most (candidates - 1) exp(-error/scale).
        """
        others = self.choices * max(self.candidates - 1, 1)
        scale = float(self.mechanism.scale) / self._unit
        return min(scale * math.log(others / (1 - LEVEL)), float(self.most_rows))

    def publish(self, noisy: Noisy) -> Published:
        # Each cell is within the error of its level.  Ends ascend, so sorted cells are within it too.
        values = tuple(replace(axis, nullable=False) for axis in self.measured)
        domain, groups = Domain((*self.group_axes, *values)), Domain(self.group_axes)
        of_group = groups.unpack(np.repeat(np.arange(self.groups), len(self.levels)))
        cells = domain.pack(np.hstack([of_group, self.sorted_cells(noisy)]))
        columns = describe_cells(domain, cells)
        name, error, unit = (
            "rank_error_90",
            self.rank_error / self.rows,
            "as a share of all records",
        )
        weighted = self.adjacency.weighted
        if weighted:
            unit = "as a share of the sum of weights that the plan states"
        elif not self.public_rows:
            name, error, unit = "rank_error_records_90", self.rank_error, "in records"
        if self.by and not self.public_rows:
            unit += ", in all groups at once; in a group hardly larger, quantiles have no meaning"
        levels = np.tile([float(level) for level in self.levels], self.groups)
        within = (
            "With probability 90% every cell contains a quantile whose rank differs from the stated"
            f" rank by at most this much, {unit}"
        )
        things = "weights" if weighted else "records"
        counted = f"the group's {things}" if self.by else f"the {things}"
        counted += " with a value" * self.of_nullable
        statement = (
            "The error is an error of the rank. With probability at least 90%, every cell contains a"
            f" quantile within {name} of its stated level, for all levels at once. Sampling error is"
            " not included. To include it, measure the share below a value (kind model)."
        )
        table = Table(
            "tables",
            self.name,
            [
                TableColumn("level", levels, f"The share of {counted} below the quantile"),
                *columns,
                TableColumn(name, np.full(len(cells), error), within),
            ],
            tuple(
                Uncertainty(column.name, None, None, "exact", statement)
                for column in columns
                if column.about in {axis.name for axis in self.measured}
            ),
        )
        return Published((table,), {"candidates": self.candidates})

    def expected_error(self) -> tuple[ErrorStatement, ...]:
        each = self.rows / self.groups
        things = "steps of weight" if self.adjacency.weighted else "records"
        of = (
            f"the {things} in a group of average size ({each:.3g})"
            if self.groups > 1
            else f"all {things}"
        )
        if self.of_nullable:
            of += "; a larger share if some have no value"
        return (
            ErrorStatement(
                f"90% bound of the largest rank error, in {things}",
                self.rank_error,
                f"{self.rank_error / each:.1%} of {of}; from noise, for any data",
            ),
        )
