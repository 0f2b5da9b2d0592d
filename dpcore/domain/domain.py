"""The public coding of the records of a survey into cells.

A domain is a list of axes; its cells are numbered in row-major order:

    axes      sex: F, M        age: [0, 40), [40, 90]
    cell      0 = F, [0, 40)   1 = F, [40, 90]   2 = M, [0, 40)   3 = M, [40, 90]

Nothing here depends on survey data.

If there are at most 2^62 cells, the number of a cell is one 64-bit integer.  A wider domain divides its
axes into as few consecutive blocks as possible, each small enough, and a cell is a row of such *words*:

    200 axes of 8 cells    words of 20 axes each    cells (k, 10), in lexicographic order

>>> from dpcore.domain.axes import Bins, Categories
>>> domain = Domain((Categories("sex", ("F", "M")), Bins("age", (0.0, 40.0, 90.0))))
>>> domain.size, domain.unpack(np.array([2])).tolist()
(4, [[1, 0]])
>>> wide = Domain(tuple(Categories(f"q{i}", ("no", "yes")) for i in range(70)))
>>> wide.words, wide.pack(np.ones((1, 70), dtype=np.int64)).tolist() == [[2**62 - 1, 2**8 - 1]]
((4611686018427387904, 256), True)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpcore.arrays import Integers
from dpcore.domain.axes import Axis
from dpcore.domain.words import LARGEST_WORD, blocks, by_word, in_words


@dataclass(frozen=True)
class Domain:
    """The joint cells of several axes: public."""

    axes: tuple[Axis, ...]

    def __post_init__(self) -> None:
        names = [axis.name for axis in self.axes]
        if len(set(names)) != len(names):
            raise ValueError(f"a column appears twice in {names}")
        for axis in self.axes:
            if axis.size > LARGEST_WORD:
                raise ValueError(f"{axis.name} has more cells than the 2^62 that can be numbered")

    @cached_property
    def shape(self) -> tuple[int, ...]:
        return tuple(axis.size for axis in self.axes)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(axis.name for axis in self.axes)

    @cached_property
    def blocks(self) -> tuple[range, ...]:
        """The positions of the axes in each word."""
        return blocks(self.shape)

    @cached_property
    def words(self) -> tuple[int, ...]:
        """The size of each word; there is one word if there are at most ``LARGEST_WORD`` cells."""
        return tuple(math.prod(self.shape[i] for i in block) for block in self.blocks)

    def require_one_word(self, what: str) -> None:
        """Raise ``ValueError`` if there are more cells than ``what`` can number."""
        if len(self.words) > 1:
            raise ValueError(
                f"columns: {size_text(self.size)} cells are more than the 2^62 (4.61e+18) that {what}"
                " can number; use fewer columns or wider bins, or a release of kind margins or"
                " microdata-margins, which have no limit"
            )

    def unpack(self, cells: Integers) -> Integers:
        """Convert cells (k,), or (k, words), into codes (k, axes)."""
        codes = np.empty((len(cells), len(self.axes)), dtype=np.int64)
        for block, word in zip(self.blocks, by_word(cells), strict=True):
            rest = word.astype(np.int64, copy=False)
            for i in reversed(block):
                rest, codes[:, i] = np.divmod(rest, self.shape[i])
        return codes

    def pack(self, codes: Integers) -> Integers:
        """Convert codes (k, axes) into cells (k,), or (k, words)."""
        words = np.zeros((len(self.words), len(codes)), dtype=np.int64)
        for block, word in zip(self.blocks, words, strict=True):
            for i in block:
                word *= self.shape[i]
                word += codes[:, i]
        return in_words(words)

    def numbers(self, cells: Integers) -> list[int]:
        """The row-major numbers, of any size, of cells (k,), or (k, words)."""
        numbers = [0] * len(cells)
        for size, word in zip(self.words, by_word(cells), strict=True):
            numbers = [n * size + part for n, part in zip(numbers, word.tolist(), strict=True)]
        return numbers

    def at(self, numbers: Sequence[int]) -> Integers:
        """The cells (k,), or (k, words), with these row-major numbers."""
        words = np.empty((len(self.words), len(numbers)), dtype=np.int64)
        rest = list(numbers)
        for i in reversed(range(len(self.words))):
            words[i] = [number % self.words[i] for number in rest]
            rest = [number // self.words[i] for number in rest]
        return in_words(words)

    def select(self, names: tuple[str, ...]) -> Domain:
        """The domain of some of the columns, in the order given."""
        return Domain(tuple(self.axes[self.positions[name]] for name in names))

    @cached_property
    def positions(self) -> dict[str, int]:
        """The position of each column."""
        return {axis.name: i for i, axis in enumerate(self.axes)}


def size_text(size: int) -> str:
    """The number of cells to three digits, however large; a float ends at about 1e308."""
    return f"{size:.3g}" if size < 10**300 else f"1e+{math.log10(size):.0f}"
