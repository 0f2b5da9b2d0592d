"""Sequences near a distribution in Kolmogorov-Smirnov distance, drawn exactly.

Every ordered sequence z of ``draws`` out of m cells is drawn with a probability proportional to

    exp(-T/scale),   T = floor(n max_j |F_x(j) - F_z(j)|),   F the share of records up to cell j,

where x are the n records.  N(t) is the number of sequences with T <= t.  Their cumulative counts stay
in a band around those of the records, so N(t) is a sum over paths, in whole numbers:

    f_j(c) = sum over c' of f_(j-1)(c') binomial(c, c')     for c in the band at j;   N = f_m(draws)

Then exp(-T/scale) is a mixture over bands.  A level t is drawn with weight (w_t - w_(t+1)) N(t) for w_t
= exp(-(t - s)/scale), where s is the first level with a sequence, and then a sequence uniformly from its
band, backwards along f.  Levels are compared with a uniform number whose digits are drawn on demand, so
only the bands that the comparison needs are counted.  Levels begin at s because few draws are always far
from the records: weights from level 0 on would be as small as exp(-n/scale), and need as many digits.
"""

from __future__ import annotations

from bisect import bisect_left
from fractions import Fraction
from functools import partial
from math import comb

import numpy as np

from dpcore.arrays import Integers
from dpcore.sampling.enclosures import Bounds, LazyUniform, divide_up, exp_bounds
from dpcore.sampling.source import RandomSource

Row = dict[int, int]


class NearSequences:
    """The law of sequences near the records ``counts`` (m,): private."""

    def __init__(self, counts: Integers, draws: int, scale: Fraction) -> None:
        self._up_to = np.cumsum(counts).tolist()
        self._draws, self._scale = draws, scale
        self._all = len(self._up_to) ** draws
        self._numbers: dict[int, int] = {}
        self._weights: dict[int, _Weights] = {}
        self.first = bisect_left(range(self._up_to[-1] + 1), True, key=lambda t: self.number(t) > 0)
        self._known = self.first  # sequences drawn so far have levels below this

    def sequence(self, source: RandomSource) -> Integers:
        """The number of times that each cell occurs in one sequence, (m,)."""
        uniform = LazyUniform(int(source.words(1)[0]), 64, source)

        def reaches(level: int) -> bool:
            return self.number(level) == self._all or uniform.below(partial(self._chance, level))

        known = range(self.first, self._known)
        level = self.first + bisect_left(known, True, key=reaches)
        while not reaches(level):
            level += 1
        self._known = max(self._known, level + 1)
        ends = [self._draws]
        for row in reversed(self._table(level)[:-1]):
            ways = {c: number * comb(ends[-1], c) for c, number in row.items()}
            target = uniform_integer(sum(ways.values()), source)
            for c, number in ways.items():
                target -= number
                if target < 0:
                    ends.append(c)
                    break
        return np.diff(ends[::-1], prepend=0)

    def number(self, level: int) -> int:
        """N(level)."""
        if level not in self._numbers:
            self._numbers[level] = self._table(level)[-1].get(self._draws, 0)
        return self._numbers[level]

    def _table(self, level: int) -> list[Row]:
        """The numbers f_j(c) for every cell j and every c in its band."""
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
        """Enclosure of 2**bits times the probability of levels up to ``level``; valid for any bits."""
        if level < self.first:
            return 0, 0
        found, place = self._weights.setdefault(bits, _Weights(2 * bits + 64)), level - self.first
        while place >= len(found.sums) or not found.is_tight(bits):
            if not found.is_tight(bits) and found.is_exhausted(self._all):
                found = self._weights[bits] = _Weights(2 * found.digits)
            self._extend(found)
        (low, high), (least, most) = found.sums[place], found.whole
        return (low << bits) // most, divide_up(high << bits, least)

    def _extend(self, weights: _Weights) -> None:
        """Add the weight of the next level.

        The weight of levels up to t is the sum over s <= t of w_s (N(s) - N(s-1)), minus w_(t+1) N(t).
        The weight of all levels is this sum alone, plus at most w_(t+1) for each remaining sequence.
        """
        above, weight = len(weights.sums), weights.next_weight
        number = self.number(self.first + above)
        weights.low += (number - weights.number) * weight[0]
        weights.high += (number - weights.number) * weight[1]
        following = exp_bounds((above + 1) / self._scale, weights.digits)
        up_to = max(weights.low - number * following[1], 0), weights.high - number * following[0]
        weights.sums.append(up_to)
        weights.whole = weights.low, weights.high + (self._all - number) * following[1]
        weights.number, weights.next_weight = number, following


class _Weights:
    """Enclosures in units of 2**-digits: ``sums`` of levels from the first, ``whole`` of all levels."""

    def __init__(self, digits: int) -> None:
        self.digits, self.number, self.low, self.high = digits, 0, 0, 0
        self.next_weight: Bounds = (1 << digits, 1 << digits)
        self.sums: list[Bounds] = []
        self.whole: Bounds = (0, 1)

    def is_tight(self, bits: int) -> bool:
        """Whether the bounds determine the weight of all levels to ``bits`` digits."""
        return (self.whole[1] - self.whole[0]) << bits <= self.whole[0]

    def is_exhausted(self, all_sequences: int) -> bool:
        """Whether only more digits, not further levels, can make it tighter."""
        return self.next_weight[0] == 0 or self.number == all_sequences


def uniform_integer(bound: int, source: RandomSource) -> int:
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
