"""Numbers of cells: one 64-bit integer each, or a row of several *words* if one does not suffice.

cells (k,)    or (k, words), in lexicographic order
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from dpcore.arrays import Booleans, Integers

LARGEST_WORD = 2**62
"""The largest number of a cell: signed 64-bit integers, with room to add."""

LARGEST_EXACT = 2.0**52
"""Floats add whole numbers exactly if no sum is larger than this."""


def blocks(shape: Sequence[int]) -> tuple[range, ...]:
    """The positions of axes of these sizes in each word; each word has as many axes as fit."""
    starts, size = [0], 1
    for i, cells in enumerate(shape):
        size *= cells
        if size > LARGEST_WORD:
            starts.append(i)
            size = cells
    return tuple(range(*both) for both in pairwise([*starts, len(shape)]))


def by_word(cells: Integers) -> Sequence[Integers]:
    """The words of cells (k,) or (k, words), each (k,)."""
    return [cells] if cells.ndim == 1 else list(cells.T)


def in_words(words: Integers) -> Integers:
    """Cells from their words (words, k): (k,) if there is one word, otherwise (k, words)."""
    return words[0] if len(words) == 1 else np.ascontiguousarray(words.T)


def differ(cells: Integers) -> Booleans:
    """Whether (k - 1,) each of cells (k,), or (k, words), differs from the one before."""
    other = cells[1:] != cells[:-1]
    return other if cells.ndim == 1 else np.asarray(other.any(axis=1))


def ascending(cells: Integers) -> bool:
    """Whether cells (k,), or (k, words), ascend without repetition."""
    if cells.ndim == 1:
        return not np.any(np.diff(cells) <= 0)
    # Rows are compared by the first word in which they differ, equal rows by any word.
    first = (cells[1:] != cells[:-1]).argmax(axis=1)[:, None]
    return not np.any(
        np.take_along_axis(cells[1:], first, 1) <= np.take_along_axis(cells[:-1], first, 1)
    )


def summed(cells: Integers, counts: Integers, size: int) -> Integers:
    """The sum of the counts of each cell (size,), exact below 2^63.

    ``cells``, ``counts``: (k,); a cell may occur several times.
    """
    if np.abs(counts).sum(dtype=np.float64) < LARGEST_EXACT:
        return np.bincount(cells, counts, size).astype(np.int64)
    result = np.zeros(size, dtype=np.int64)
    np.add.at(result, cells, counts)  # in integers only
    return result
