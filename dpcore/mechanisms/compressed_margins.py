"""One-way tables of wide columns, then tables over groups of cells that follow from the first.

With Gaussian noise the second round may also have sums of products for pairs of ordered columns
(``quadrants``).

Claim.  Input: the tally of ``domain``.  Neighbours: any relation under which the tables of either round
move by at most their stated sensitivities, whichever the groups are.  Output:

    round 1   one table for each wide column, with noise ``first``                      Y1
    groups    the cells of each wide column merged into few, and scores of groups, by Y1 alone
    round 2   tables over several columns, of groups instead of cells, and sums of products of scores,
              with noise ``again``

It is DP at either price of ``rounds``: the sum of both rounds, or a single draw.

Preconditions.  Those of the noise of either round; the price is covered by the share (the privacy line
checks it).

Proof.  The groups are post-processing of Y1.  Given Y1 the second round is noise on tables over public
groups; merging acts on each record alone, so a record changes a table of groups by no more than a table
of cells, whichever the groups are.  Multiplying a table by a public whole number multiplies its
sensitivity by that number.  The sums move by at most the bound of ``quadrants``, whatever the scores
are.  ``again`` has the joint sensitivity of the multiplied tables and the sums.  ``rounds`` proves both
prices.

Ranges.  Those of the noise.  The number of groups is public, and so is the length of the result: Y1,
then the second round.

Source.  Bun & Steinke 2016, Lemma 2.3.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from dpcore.arrays import Integers
from dpcore.domain.tally import Tally
from dpcore.domain.words import summed
from dpcore.line.mechanism import LogRatio
from dpcore.line.statistic import Statistic
from dpcore.mechanisms.grouping import merge_cells
from dpcore.mechanisms.quadrants import Pair, even_scores, half_scores, sums_of_products
from dpcore.mechanisms.rounds import CHOSEN, AdaptiveRounds, Noise, RoundsEvent


class Grouping(NamedTuple):
    """Groups and scores that follow from the first round: public.

    ``groups``: for each column the group of each cell; ``scores``: for each column the score of each
    group, None if no sum of products uses it.
    """

    groups: list[Integers]
    scores: list[Integers | None]

    def to_bytes(self) -> bytes:
        return np.concatenate([*self.groups, *(s for s in self.scores if s is not None)]).tobytes()


Groupings = list[tuple[Grouping, Integers]]
"""Groupings, each with the row numbers (k,) of the noisy first rounds from which it follows."""

REGROUPED = 2**11
"""The longest output for which an audit computes log-ratios; longer ones would take minutes."""


@dataclass(frozen=True)
class Merged:
    """A column with merged cells: its position in the domain, and the rule of merging (``grouping``)."""

    position: int
    kinds: tuple[int, ...]
    ordered: bool
    keep: int


@dataclass(frozen=True)
class CompressedMargins(AdaptiveRounds):
    """Noise on one-way tables, then on tables over groups that follow from these: DP at the sum
    of both rounds.

    The statistic is the tally of ``domain``.  ``sets``: positions of the columns of each table of round
    2; ``merged``: the wide columns, whose cells are merged into ``keep`` groups each; ``first``,
    ``again``: the noise of each round on all its cells, with the sensitivity of all its tables
    together; ``times``: for each table of round 2, the factor that multiplies its counts before noise
    is added, so a larger factor means less noise; ``products``: pairs of ordered columns; round 2 also
    sums the products of their scores.
    """

    sets: tuple[tuple[int, ...], ...]
    merged: tuple[Merged, ...]
    first: Noise
    again: Noise
    times: tuple[int, ...]
    products: tuple[Pair, ...] = ()

    audit_number = CHOSEN

    @property
    def laws(self) -> tuple[Noise, Noise]:
        return self.first, self.again

    @property
    def widths(self) -> tuple[int, int]:
        return self.first.size, self.again.size

    @property
    def event(self) -> RoundsEvent:
        return RoundsEvent.of(self.first, self.again, None)

    def next_point(self, number: int, point: int, noisy: Integers) -> Groupings:
        """The groupings that follow from noisy first rounds (times, cells)."""
        # An audit repeats the draw many times, and merging cells is slow: equal tables are merged once.
        rows: dict[bytes, list[int]] = {}
        for row, once in enumerate(noisy):
            rows.setdefault(once.tobytes(), []).append(row)
        # The same groups often follow from different tables; their records are counted only once.
        found: dict[bytes, tuple[Grouping, list[int]]] = {}
        for alike in rows.values():
            grouping = self.grouping(noisy[alike[0]])
            found.setdefault(grouping.to_bytes(), (grouping, []))[1].extend(alike)
        return [(grouping, np.array(alike)) for grouping, alike in found.values()]

    def exact(self, number: int, records: Tally, point: Any) -> Integers:
        if number == 0:
            return np.tile(self.alone(records), (point, 1))
        found = np.empty((sum(len(rows) for _, rows in point), self.again.size), dtype=np.int64)
        for grouping, rows in point:
            found[rows] = self.together(records, grouping)
        return found

    def log_ratio(self, near: Statistic, far: Statistic) -> LogRatio | None:
        return None if self.numbers > REGROUPED else super().log_ratio(near, far)

    def moved_by(self, near: Statistic, far: Statistic) -> float:
        """The change of the second round between neighbours, with groups from the exact first table."""
        tables = [self.records(side) for side in (near, far)]
        once = [self.alone(table) for table in tables]
        grouping = self.grouping(once[0])
        twice = [Statistic(self.together(table, grouping)) for table in tables]
        return max(self.first.moved_by(*map(Statistic, once)), self.again.moved_by(*twice))

    def alone(self, tally: Tally) -> Integers:
        """The exact tables of the first round, concatenated: private."""
        names = self.domain.names
        return np.concatenate([tally.margin((names[merged.position],)) for merged in self.merged])

    def together(self, tally: Tally, grouping: Grouping) -> Integers:
        """The exact tables and sums of the second round, concatenated: private."""
        tables, (groups, scores) = [], grouping
        for columns, times in zip(self.sets, self.times, strict=True):
            packed = np.zeros(len(tally.cells), dtype=np.int64)
            for column in columns:
                packed = packed * self.shape[column] + groups[column][tally.codes(column)]
            size = math.prod(self.shape[column] for column in columns)
            tables.append(times * summed(packed, tally.counts, size))
        of_cells = [
            None if score is None else score[groups[column][tally.codes(column)]]
            for column, score in enumerate(scores)
        ]
        return np.concatenate([*tables, sums_of_products(self.products, of_cells, tally.counts)])

    def grouping(self, once: Integers) -> Grouping:
        """The groups and scores, computed from the noisy first round only."""
        groups = suggested_groups(self.domain.shape, self.merged, once)
        scores: list[Integers | None] = [None] * len(groups)
        alone = counts_alone(self.domain.shape, self.merged, once)
        for column in sorted(set(chain.from_iterable(self.products))):
            axis, of_cell = self.domain.axes[column], groups[column]
            values = axis.size - axis.nullable
            if column in alone:
                counts = summed(of_cell, alone[column], int(of_cell.max()) + 1)
                scores[column] = half_scores(counts, int(of_cell[values - 1]) + 1)
            else:
                scores[column] = even_scores(axis.size, values)
        return Grouping(groups, scores)

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """The number of groups of each column, or of cells if the column is not merged."""
        wide = {merged.position: merged.keep for merged in self.merged}
        return tuple(wide.get(i, n) for i, n in enumerate(self.domain.shape))


def counts_alone(
    shape: Sequence[int], merged: Sequence[Merged], once: Integers
) -> dict[int, Integers]:
    """Split the concatenated tables ``once`` into the table of each merged column, by its position."""
    places = [each.position for each in merged]
    ends = np.cumsum([shape[place] for place in places])
    return dict(zip(places, np.split(once, ends[:-1]), strict=True))


def suggested_groups(
    shape: Sequence[int], merged: Sequence[Merged], once: Integers
) -> list[Integers]:
    """For each column (sizes: ``shape``), the group of each of its cells.

    ``once``: noisy counts of the cells of all merged columns, concatenated.
    """
    found, alone = [np.arange(size) for size in shape], counts_alone(shape, merged, once)
    for each in merged:
        counts, kinds = alone[each.position], np.asarray(each.kinds)
        found[each.position] = merge_cells(counts, kinds, each.keep, ordered=each.ordered)
    return found
