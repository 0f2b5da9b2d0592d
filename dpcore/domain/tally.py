"""The private counts of a survey's records by cell."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcore.arrays import Integers
from dpcore.domain.domain import Domain
from dpcore.domain.words import by_word, differ, summed


@dataclass(frozen=True, eq=False)
class Tally:
    """The number of records in each occupied cell: private.

    ``cells``: (k,) ascending cells, or (k, words); ``counts``: (k,) positive counts.
    """

    domain: Domain
    cells: Integers
    counts: Integers

    @classmethod
    def of(cls, domain: Domain, cells: Integers, counts: Integers | None = None) -> Tally:
        """Count cells (m,), or (m, words), which may be in any order and may repeat.

        ``counts``: (m,) records of each; by default one.
        """
        if counts is None:
            counts = np.ones(len(cells), dtype=np.int64)
        # The last key of lexsort is the primary one.
        order = np.argsort(cells) if cells.ndim == 1 else np.lexsort(cells.T[::-1])
        cells = cells[order]
        # The slice is for an empty tally, in which no cell is first.
        first = np.flatnonzero(np.r_[True, differ(cells)][: len(cells)])
        sums = np.add.reduceat(counts[order], first) if len(first) else counts
        return cls(domain, cells[first], sums)

    @property
    def total(self) -> int:
        """The number of records: private."""
        return int(self.counts.sum())

    def __repr__(self) -> str:
        return f"<tally over {' x '.join(self.domain.names)}: withheld>"

    def __reduce__(self) -> str:
        raise TypeError("a tally does not leave the process that computed it")

    def codes(self, position: int) -> NDArray[np.signedinteger[Any]]:
        """The codes (k,) of the occupied cells on one axis; computed once for each axis."""
        if position not in self._codes:
            self._codes[position] = self._unpacked(position)
        return self._codes[position]

    @cached_property
    def _codes(self) -> dict[int, NDArray[np.signedinteger[Any]]]:
        return {}

    def _unpacked(self, position: int) -> NDArray[np.signedinteger[Any]]:
        domain = self.domain
        for block, word in zip(domain.blocks, by_word(self.cells), strict=True):
            if position in block:
                size = domain.shape[position]
                upwards = word // math.prod(domain.shape[i] for i in block if i > position)
                # Twice as fast as a remainder.  The type is small, because the codes are kept.
                return (upwards - upwards // size * size).astype(np.min_scalar_type(-size))
        raise IndexError(position)

    def roll_up(self, names: tuple[str, ...]) -> Tally:
        """The tally over these columns only, in the order given."""
        if names == self.domain.names:
            return self
        target = self.domain.select(names)
        # A small table is counted directly, which is faster than sorting its cells.
        if target.size <= len(self.cells):
            counts = self.margin(names)
            cells = np.flatnonzero(counts)
            return Tally(target, cells, counts[cells])
        codes = (self.codes(self.domain.positions[name]) for name in names)
        return Tally.of(target, target.pack(np.stack([*codes], axis=1)), self.counts)

    def margin(self, names: tuple[str, ...]) -> Integers:
        """The counts (cells,) of every cell over these columns, in the order given."""
        if names == self.domain.names:
            return self.dense()
        positions = [self.domain.positions[name] for name in names]
        shape = [self.domain.shape[i] for i in positions]
        packed = np.zeros(len(self.cells), dtype=np.int64)
        for position, size in zip(positions, shape, strict=True):
            packed *= size
            packed += self.codes(position)
        return summed(packed, self.counts, math.prod(shape))

    def dense(self) -> Integers:
        """The counts (domain.size,) of every cell."""
        counts = np.zeros(self.domain.size, dtype=np.int64)
        counts[self.cells] = self.counts
        return counts
