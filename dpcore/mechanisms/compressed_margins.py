"""Tables of wide columns alone, and then tables over groups of cells that the first noisy ones suggest.

    round 1   one table for each wide column, with noise ``first``                      Y1
    groups    the cells of each wide column merged into ``keep``, by Y1 alone
    round 2   tables over several columns, of groups instead of cells, with noise ``again``

The groups are post-processing of Y1, so they cost nothing beyond it.  Given Y1 the second round is
noise on tables over public groups; merging acts on each record alone, so a record moves a table of
groups by no more than a table of cells, whichever the groups are.  The whole is an adaptive composition
of two mechanisms, whose rho (Bun & Steinke 2016, Lemma 2.3) or alpha add up.

How many groups there are is public, and so is the length of the result: Y1, then the second round.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dpcore.domain import Domain, Tally
from dpcore.events import CompressedMarginsEvent
from dpcore.mechanisms.adaptive_margins import Noise, rounds_drawn, with_noise
from dpcore.post.grouping import merge_cells
from dpcore.sampling.source import RandomSource
from dpcore.statistic import Noisy

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Merged:
    """A column whose cells are merged: its place in the domain, and how (``dpcore.post.grouping``)."""

    position: int
    kinds: tuple[int, ...]
    ordered: bool


@dataclass(frozen=True)
class CompressedMargins:
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
    def size(self) -> int:
        return self.domain.size

    @property
    def numbers(self) -> int:
        """The length of the result."""
        return self.first.size + self.again.size

    @property
    def event(self) -> CompressedMarginsEvent:
        return CompressedMarginsEvent(*rounds_drawn(self.first, self.again))

    def draw(self, values: Integers, cells: Integers | None, source: RandomSource) -> Noisy:
        assert cells is not None  # the privacy line checks the layout
        return self.draws(Tally(self.domain, cells, values), 1, source)

    def draws(self, tally: Tally, times: int, source: RandomSource) -> Noisy:
        """So many independent draws, one after the other."""
        alone = np.tile(self.alone(tally), times)
        once = with_noise(self.first, alone, source).reshape(times, -1)
        exact = np.empty((times, self.again.size), dtype=np.int64)
        for groups, rows in self.by_groups(once):
            exact[rows] = self.together(tally, groups)
        twice = with_noise(self.again, exact.ravel(), source).reshape(times, -1)
        drawn = np.concatenate([once, twice], axis=1).ravel()
        return Noisy(drawn, reproducible=source.reproducible)

    def alone(self, tally: Tally) -> Integers:
        """The exact tables of the first round, one after the other: private."""
        names = self.domain.names
        tables = [tally.roll_up((names[merged.position],)).dense() for merged in self.merged]
        return np.concatenate(tables)

    def together(self, tally: Tally, groups: Sequence[Integers]) -> Integers:
        """The exact tables of the second round, one after the other: private."""
        tables = []
        for columns in self.sets:
            packed = np.zeros(len(tally.cells), dtype=np.int64)
            for column in columns:
                packed = packed * self.shape[column] + groups[column][tally.codes(column)]
            size = math.prod(self.shape[column] for column in columns)
            # Counts below 2**53 are exact as weights.
            tables.append(np.bincount(packed, tally.counts, minlength=size).astype(np.int64))
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
