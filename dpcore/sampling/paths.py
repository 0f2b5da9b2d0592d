"""Sequences near a distribution in Kolmogorov-Smirnov distance, drawn exactly (METHODS k).

Of all sequences of ``draws`` cells out of m, ordered, each is drawn with a chance proportional to

    exp(-T/scale),   T = floor(n max_j |F_x(j) - F_z(j)|),   F the share of records up to cell j

T of the sequence z against the n records x.  Write N(t) for how many sequences have T <= t: those
whose counts up to each cell stay in a band, and whose number is a sum over paths, in whole numbers:

    f_j(c) = sum over c' of f_(j-1)(c') binomial(c, c')     for c in the band at j;   N = f_m(draws)

Then exp(-T/scale) is a mixture of bands.  A level t is drawn with weight (w_t - w_(t+1)) N(t) for
w_t = exp(-t/scale), and a sequence evenly from its band, backwards along f.  Levels are compared
with a lazy uniform number, and so only as many of them are counted as its digits ask for.
"""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from math import comb

import numpy as np
from numpy.typing import NDArray

from dpcore.sampling.enclosures import Bounds, LazyUniform, divide_up, exp_bounds
from dpcore.sampling.source import RandomSource

Row = dict[int, int]


class NearSequences:
    """The law of sequences near the records ``counts`` (m,), private."""

    def __init__(self, counts: NDArray[np.int64], draws: int, scale: Fraction) -> None:
        self._up_to = np.cumsum(counts).tolist()
        self._draws, self._scale = draws, scale
        self._all = len(self._up_to) ** draws
        self._tables: list[list[Row]] = []
        self._cumulated: dict[int, list[Bounds]] = {}

    def sequence(self, source: RandomSource) -> NDArray[np.int64]:
        """(m,) how often each cell is in the sequence."""
        uniform, level = LazyUniform(0, 0, source), 0
        while self.number(level) < self._all and not uniform.below(partial(self._chance, level)):
            level += 1
        ends = [self._draws]
        for row in reversed(self._tables[level][:-1]):
            ways = {c: number * comb(ends[-1], c) for c, number in row.items()}
            target = below(sum(ways.values()), source)
            for c, number in ways.items():
                target -= number
                if target < 0:
                    ends.append(c)
                    break
        return np.diff(ends[::-1], prepend=0)

    def number(self, level: int) -> int:
        """N(level)."""
        while len(self._tables) <= level:
            self._tables.append(self._table(len(self._tables)))
        return self._tables[level][-1][self._draws]

    def _table(self, level: int) -> list[Row]:
        """f_j(c) for every cell j and every c of its band."""
        k, n = self._draws, self._up_to[-1]
        reach, before, table = (level + 1) * k, {0: 1}, []
        for up_to in self._up_to:
            low, high = (k * up_to - reach) // n + 1, divide_up(k * up_to + reach, n) - 1
            before = {
                c: sum(ways * comb(c, earlier) for earlier, ways in before.items())
                for c in range(max(low, 0), min(high, k) + 1)
            }
            table.append(before)
        return table

    def _chance(self, level: int, bits: int) -> Bounds:
        """Enclosure of the chance of levels up to ``level``, in parts of 2**bits."""
        if bits not in self._cumulated:
            self._cumulated[bits] = self._cumulate(bits)
        *sums, (least, most) = self._cumulated[bits]
        low, high = sums[level] if level < len(sums) else (least, most)
        return (low << bits) // most, divide_up(high << bits, least)

    def _cumulate(self, bits: int) -> list[Bounds]:
        """Enclosures of the weights of levels up to 0, 1, ... and of all, to ``bits`` digits.

        A sum of levels is that of w_t (N(t) - N(t-1)) less w_(t+1) N(t).  It ends where the others
        weigh less than 2**-bits of all: they number ``_all`` at most.
        """
        working, level, before = 2 * bits + 64, 0, 0
        low, high, sums = 0, 0, []
        weight = (1 << working, 1 << working)
        while True:
            number = self.number(level)
            low, high = low + (number - before) * weight[0], high + (number - before) * weight[1]
            weight = exp_bounds((level + 1) / self._scale, working)
            sums.append((max(low - number * weight[1], 0), high - number * weight[0]))
            whole = low, high + (self._all - number) * weight[1]
            if (whole[1] - whole[0]) << bits <= whole[0]:
                return [*sums, whole]
            if weight[0] == 0 or number == self._all:  # too few digits
                working, level, low, high, sums = 2 * working, -1, 0, 0, []
                weight, number = (1 << working, 1 << working), 0
            level, before = level + 1, number


def below(bound: int, source: RandomSource) -> int:
    """A uniform integer from {0, ..., bound - 1}, of any size."""
    bits = (bound - 1).bit_length()
    words = -(-bits // 64)
    while True:
        value = 0
        for word in source.words(words).tolist():
            value = value << 64 | word
        value >>= 64 * words - bits
        if value < bound:
            return value
