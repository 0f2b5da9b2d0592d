"""Tables of wide columns alone, and then tables over groups of cells that the first noisy ones suggest.

Claim.  Input: the tally of ``domain``.  Neighbours: any relation under which the tables of either round
move by at most their stated sensitivities, whichever the groups are.  Output:

    round 1   one table for each wide column, with noise ``first``                      Y1
    groups    the cells of each wide column merged into ``keep``, by Y1 alone
    round 2   tables over several columns, of groups instead of cells, with noise ``again``

Prices as for two rounds of ``adaptive_margins``.

Preconditions.  Those of ``adaptive_margins``.

Proof.  The groups are post-processing of Y1.  Given Y1 the second round is noise on tables over public
groups; merging acts on each record alone, so a record moves a table of groups by no more than a
table of cells, whichever the groups are.  The whole is an adaptive composition of two mechanisms.

Ranges.  Those of the noise.  How many groups there are is public, and so is the length of the result:
Y1, then the second round.

Source.  Bun & Steinke 2016, Lemma 2.3; METHODS q.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpcore.arrays import Floats, Integers
from dpcore.domain.domain import Domain
from dpcore.domain.tally import Tally
from dpcore.domain.words import summed
from dpcore.line.mechanism import Event, LogRatio, Mechanism, Outputs, Round
from dpcore.line.statistic import Noisy
from dpcore.mechanisms.adaptive_margins import Noise, TwoRoundsEvent, rounds_drawn, with_noise
from dpcore.mechanisms.grouping import merge_cells
from dpcore.sampling.source import RandomSource

REGROUPED = 2**11
"""Outputs of more numbers are not grouped again for their log-ratio: it would take minutes."""


@dataclass(frozen=True)
class CompressedMarginsEvent(TwoRoundsEvent):
    """Two rounds on count tables; the first noisy ones chose the groups that the second counts."""

    kind = "compressed-margins"


@dataclass(frozen=True)
class Merged:
    """A column whose cells are merged: its place in the domain, and how (``grouping``)."""

    position: int
    kinds: tuple[int, ...]
    ordered: bool


@dataclass(frozen=True)
class CompressedMargins(Mechanism):
    """Noise on one-way tables, and on tables over the groups they suggest: DP at the sum of both rounds.

    On the tally of ``domain``.  ``sets``: positions of the columns of each table of round 2; ``merged``:
    the wide columns, whose cells become ``keep`` groups each; ``first``, ``again``: the noise of either
    round, on all its cells, with the sensitivity of all its tables.
    """

    domain: Domain
    sets: tuple[tuple[int, ...], ...]
    merged: tuple[Merged, ...]
    keep: int
    first: Noise
    again: Noise

    sparse = True

    @property
    def words(self) -> tuple[int, ...]:
        return self.domain.words

    @property
    def numbers(self) -> int:
        """The length of the result."""
        return self.first.size + self.again.size

    @property
    def event(self) -> CompressedMarginsEvent:
        return CompressedMarginsEvent(*rounds_drawn(self.first, self.again))

    def draw(self, values: Integers, cells: Integers | None, source: RandomSource) -> Noisy:
        return self.repeat(values, cells, 1, source)

    def repeat(
        self, values: Integers, cells: Integers | None, times: int, source: RandomSource
    ) -> Noisy:
        assert cells is not None  # the privacy line checks the layout
        tally = Tally(self.domain, cells, values)
        alone = np.tile(self.alone(tally), times)
        once = with_noise(self.first, alone, source).reshape(times, -1)
        exact = np.empty((times, self.again.size), dtype=np.int64)
        for groups, rows in self.by_groups(once):
            exact[rows] = self.together(tally, groups)
        twice = with_noise(self.again, exact.ravel(), source).reshape(times, -1)
        drawn = np.concatenate([once, twice], axis=1).ravel()
        return Noisy(drawn, reproducible=source.reproducible)

    def log_ratio(self, cells: Integers, near: Floats, far: Floats) -> LogRatio | None:
        """Given the groups, which the output itself determines, both rounds are noise of known law."""
        if self.numbers > REGROUPED:
            return None
        tables = [Tally(self.domain, cells, side.astype(np.int64)) for side in (near, far)]

        def ratio(outputs: Integers) -> Floats:
            once, twice = np.split(outputs.astype(np.int64), [self.first.size], axis=1)
            result = _ratio(self.first, [self.alone(table) for table in tables], once)
            for groups, rows in self.by_groups(once):
                grouped = [self.together(table, groups) for table in tables]
                result[rows] += _ratio(self.again, grouped, twice[rows])
            return np.round(result, 9)

        return ratio

    def rounds_of(self, outputs: Outputs, cells: Integers, exact: Floats) -> list[Round]:
        table = Tally(self.domain, cells, exact.astype(np.int64))
        once, twice = np.split(outputs.astype(np.int64), [self.first.size], axis=1)
        together = np.empty(twice.shape)
        for groups, rows in self.by_groups(once):
            together[rows] = self.together(table, groups)
        alone = self.alone(table).astype(np.float64)
        return [
            *self.first.rounds_of(once, cells, alone),
            *self.again.rounds_of(twice, cells, together),
        ]

    @property
    def one_by_one(self) -> list[Event]:
        return [self.first.event, self.again.event]

    def moved_by(self, cells: Integers, near: Integers, far: Integers) -> float:
        """Of the second round by the groups that the first table itself suggests."""
        tables = [Tally(self.domain, cells, side.astype(np.int64)) for side in (near, far)]
        once = [self.alone(table) for table in tables]
        groups = self.groups(once[0])
        twice = [self.together(table, groups) for table in tables]
        return max(
            self.first.moved_by(cells, *once),
            self.again.moved_by(cells, *twice),
        )

    def output_width(self, watched: int) -> int:
        return self.numbers

    def alone(self, tally: Tally) -> Integers:
        """The exact tables of the first round, one after the other: private."""
        names = self.domain.names
        return np.concatenate([tally.margin((names[merged.position],)) for merged in self.merged])

    def together(self, tally: Tally, groups: Sequence[Integers]) -> Integers:
        """The exact tables of the second round, one after the other: private."""
        tables = []
        for columns in self.sets:
            packed = np.zeros(len(tally.cells), dtype=np.int64)
            for column in columns:
                packed = packed * self.shape[column] + groups[column][tally.codes(column)]
            size = math.prod(self.shape[column] for column in columns)
            tables.append(summed(packed, tally.counts, size))
        return np.concatenate(tables)

    def groups(self, once: Integers) -> list[Integers]:
        """For each column the group of each of its cells, by the noisy first round alone."""
        return suggested_groups(self.domain.shape, self.merged, self.keep, once)

    def by_groups(self, once: Integers) -> list[tuple[list[Integers], Integers]]:
        """All groups that noisy first rounds (times, cells) suggest, with the rows (k,) that do."""
        rows: dict[bytes, list[int]] = {}
        for row, noisy in enumerate(once):
            rows.setdefault(noisy.tobytes(), []).append(row)
        found: dict[bytes, tuple[list[Integers], list[int]]] = {}
        for alike in rows.values():
            groups = self.groups(once[alike[0]])
            found.setdefault(np.concatenate(groups).tobytes(), (groups, []))[1].extend(alike)
        return [(groups, np.array(alike)) for groups, alike in found.values()]

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """The groups of each column; of one that is not merged, its cells."""
        wide = {merged.position for merged in self.merged}
        return tuple(self.keep if i in wide else n for i, n in enumerate(self.domain.shape))


def suggested_groups(
    shape: Sequence[int], merged: Sequence[Merged], keep: int, once: Integers
) -> list[Integers]:
    """For each column of cells ``shape`` the group of each of its cells.

    ``once``: noisy counts of the cells of all merged columns, one after the other.
    """
    found = [np.arange(size) for size in shape]
    start = 0
    for each in merged:
        stop = start + shape[each.position]
        found[each.position] = merge_cells(
            once[start:stop], np.asarray(each.kinds), keep, ordered=each.ordered
        )
        start = stop
    return found


def _ratio(noise: Noise, sides: Sequence[Integers], outputs: Integers) -> Floats:
    near, far = (side.astype(np.float64) for side in sides)
    ratio = noise.log_ratio(np.arange(len(near)), near, far)
    assert ratio is not None
    return ratio(outputs)
