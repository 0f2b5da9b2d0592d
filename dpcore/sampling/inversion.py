"""Inversion with refinement on demand: exact draws from any law on {0, 1, 2, ...}, in whole arrays.

The distribution function cuts [0, 1) into pieces, one per value:

    0        F_1          F_2      F_3   ...            F_k = P(X < k)
    |---------|------------|--------|--------> 1
       X = 0      X = 1       X = 2

and X is the piece that contains a uniform u.  The table stores 64 binary digits of each cut, and a
draw starts with 64 binary digits of u, which are one word.  If the word differs from every stored
cut, the piece of u is certain.  If it equals one (about once in 2**64 / length draws), more digits
of u are drawn and compared with more digits of F, until the piece is certain.  The table is finite
but the law is not: a word beyond the last stored cut is compared with further cuts, one after
another.  So nothing is rounded, and nothing is cut off.

A search takes most of a draw's time.  So the leading digits of a word are looked up first: for most of
their values no cut begins with them, so all words with these digits are in the same piece.  Only the
other words need a search.

>>> from fractions import Fraction
>>> from dpcore.sampling.source import SeededSource
>>> def fair_coin_runs(bits):  # P(X < k) = 1 - 2**-k
...     for k in count(1):
...         p = Fraction((1 << k) - 1, 1 << k) * 2**bits
...         yield p.__floor__(), p.__ceil__()
>>> table = InversionTable(fair_coin_runs, length=20)
>>> table.draw(8, SeededSource(3)).tolist()
[0, 0, 0, 4, 4, 1, 3, 0]
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count, islice

import numpy as np
from numpy.typing import NDArray

from dpcore.arrays import Integers
from dpcore.sampling.enclosures import Bounds, LazyUniform, shift_up
from dpcore.sampling.source import RandomSource

Cuts = Callable[[int], Iterator[Bounds]]
"""From a number of bits to an endless iterator of enclosures of 2**bits * P(X < k), k = 1, 2, ..."""

_LAST_WORD = (1 << 64) - 1

_LEADING = 13
"""How many leading binary digits are looked up: their table fits into the cache (measured)."""

_SEARCH = -1


class InversionTable:
    """The first ``length`` cuts of a law, and a function for all others.  Public and deterministic.

    ``cuts``: the law, as certified enclosures to any precision.
    ``length``: the number of stored cuts; it affects the speed, never the law.
    """

    def __init__(self, cuts: Cuts, length: int) -> None:
        self._cuts = cuts
        self._length = length
        # The last entry replaces all cuts that are not stored.
        self._words = np.array([*_leading_words(cuts, length), _LAST_WORD], dtype=np.uint64)
        cuts_inside = np.bincount(_leading(self._words[:-1]), minlength=1 << _LEADING)
        below = np.cumsum(cuts_inside) - cuts_inside
        certain = (cuts_inside == 0) & (below < length)
        self._looked_up = np.where(certain, below, _SEARCH).astype(np.int64)

    def draw(self, size: int, source: RandomSource) -> Integers:
        """Draw (size,) independent numbers, exactly from the law."""
        words = source.words(size)
        values = self._looked_up.take(_leading(words))
        if len(searched := np.flatnonzero(values == _SEARCH)):
            first = words[searched]
            found = np.searchsorted(self._words[:-1], first)
            values[searched] = found
            undecided = (self._words[found] == first) | (found == self._length)
            for i in searched[undecided]:
                values[i] = self._settle(int(values[i]), int(words[i]), source)
        return values

    def _settle(self, value: int, word: int, source: RandomSource) -> int:
        """The exact value of the draw that begins with ``word``; it is at least ``value``."""
        uniform = LazyUniform(word, 64, source)

        def next_cut(bits: int) -> Bounds:
            # Not stored, because hardly any draw needs it.
            return next(islice(self._cuts(bits), value, None))

        while not uniform.below(next_cut):
            value += 1
        return value


def _leading(words: NDArray[np.uint64]) -> NDArray[np.intp]:
    """The leading ``_LEADING`` digits of words."""
    return (words >> np.uint64(64 - _LEADING)).astype(np.intp)


def _leading_words(cuts: Cuts, length: int) -> list[int]:
    """Words w with  w <= 2**64 * F <= w + 1,  certified, for the first ``length`` cuts F.

    ``draw`` relies on that.  With u the uniform number and v its leading word,

        w < v    gives  F <= (w + 1) / 2**64 <= v / 2**64 <= u
        w > v    gives  F >= w / 2**64 >= (v + 1) / 2**64 > u

    and only w = v needs more digits.
    """
    # More digits are needed only if a cut is extremely close to a multiple of 2**-64.
    for bits in count(128, 64):
        spare = bits - 64
        enclosures = list(islice(cuts(bits), length))
        # A cut just below 1 has the last word, since  2**64 * F <= 2**64.
        words = [min(lower >> spare, _LAST_WORD) for lower, _ in enclosures]
        if all(
            shift_up(upper, spare) <= word + 1
            for word, (_, upper) in zip(words, enclosures, strict=True)
        ):
            return words
    raise AssertionError("unreachable")
