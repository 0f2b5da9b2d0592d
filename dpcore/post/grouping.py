"""Cells of one column merged into few groups by noisy counts, and records taken back out of them.

A column of two thousand trades has pairs of millions of cells, nearly all of them noise.  Noisy counts
of the column alone say which cells hold few records; two of these are merged, the two that hold least
together, until so many groups are left as were asked for:

    noisy counts   90  4  7  55  3 -2        ordered, 4 groups   [90] [4 7] [55] [3 -2]
                                             else                [90] [7] [55] [4 3 -2]

Of a number only neighbouring bins are merged; of categories, those of about the same count.  Cells of
different kinds stay apart, so that what a rule says of cells it says of whole groups.

>>> noisy = np.array([90, 4, 7, 55, 3, -2])
>>> merge_cells(noisy, np.zeros(6), 4, ordered=True).tolist()
[0, 1, 1, 2, 3, 3]
>>> merge_cells(noisy, np.zeros(6), 4, ordered=False).tolist()
[0, 1, 2, 3, 1, 1]
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable

import numpy as np
from numpy.typing import NDArray

from dpcore.post.denoise import shrunken
from dpcore.post.margins import Floats, Integers
from dpcore.post.simplex import project_to_simplex, round_to_total


def kinds_of(size: int, nullable: bool, conditions: Iterable[Collection[int]]) -> Integers:
    """(size,) numbers that are equal for cells which no condition tells apart; null is by itself."""
    marks = [np.isin(np.arange(size), list(cells)) for cells in conditions]
    marks.append(np.arange(size) == (size - 1 if nullable else -1))
    _, kinds = np.unique(np.stack(marks), axis=1, return_inverse=True)
    return kinds.reshape(-1)


def least_groups(kinds: NDArray[np.generic], ordered: bool) -> int:
    """The fewest groups into which cells of kinds (size,) can be merged."""
    if ordered:
        return 1 + int(np.count_nonzero(kinds[1:] != kinds[:-1]))
    return len(np.unique(kinds))


def merge_cells(
    noisy: Integers, kinds: NDArray[np.generic], keep: int, *, ordered: bool
) -> Integers:
    """(size,) the group of each cell, numbered 0, 1, ..., ``keep`` - 1 by their first cells.

    ``noisy`` (size,): counts, where negative ones are taken for zero; ``kinds`` (size,): cells of
    different kinds are not merged; ``ordered``: nor cells that are not neighbours.  There are
    ``least_groups`` at least, and ``size`` at most.
    """
    size = len(noisy)
    order = np.arange(size) if ordered else np.lexsort((noisy, kinds))
    mass, kind = np.maximum(noisy, 0)[order], kinds[order]
    # Neighbours without any mass are merged before all others: in one go.
    joined = (mass[1:] + mass[:-1] == 0) & (kind[1:] == kind[:-1])
    runs = np.flatnonzero(np.concatenate([[True], ~joined]))
    if len(runs) < keep:
        runs = np.arange(size)
    starts = runs[_starts(mass[runs].tolist(), kind[runs].tolist(), keep)]
    groups = np.empty(size, dtype=np.int64)
    groups[order] = np.repeat(np.arange(len(starts)), np.diff([*starts, size]))
    _, first = np.unique(groups, return_index=True)
    return np.argsort(np.argsort(first))[groups]


def _starts(mass: list[int], kind: list[int], keep: int) -> list[int]:
    """Where runs of cells begin when the two neighbours of least mass are merged, again and again."""
    size = left = len(mass)
    following, before = list(range(1, size + 1)), list(range(-1, size - 1))
    waiting = [
        (mass[one] + mass[one + 1], one, one + 1)
        for one in range(size - 1)
        if kind[one] == kind[one + 1]
    ]
    heapq.heapify(waiting)
    while left > keep and waiting:
        joint, one, other = heapq.heappop(waiting)
        if following[one] != other or mass[one] + mass[other] != joint:
            continue  # one of them has been merged since
        last, after = before[one], following[other]
        mass[one], following[one], following[other] = joint, after, -1
        left -= 1
        if after < size:
            before[after] = one
            if kind[one] == kind[after]:
                heapq.heappush(waiting, (joint + mass[after], one, after))
        if last >= 0 and kind[last] == kind[one]:
            heapq.heappush(waiting, (mass[last] + joint, last, one))
    return [one for one in range(size) if following[one] != -1]


def split_groups(
    column: Integers,
    groups: Integers,
    noisy: Floats,
    variance: float,
    generator: np.random.Generator,
) -> Integers:
    """(rows,) cells of records whose groups are ``column`` (rows,).

    ``noisy`` (size,): counts of the cells in a table of so many rows, with noise of a ``variance``.
    Within a group cells follow them, drawn towards equal counts by what is noise; which record has
    which is drawn at random, as if within a group nothing depended on other columns.
    """
    result = np.empty_like(column)
    for group in range(groups.max(initial=-1) + 1):
        cells, rows = np.flatnonzero(groups == group), np.flatnonzero(column == group)
        counts = round_to_total(_shares(noisy[cells], len(rows), variance), len(rows))
        result[generator.permutation(rows)] = np.repeat(cells, counts)
    return result


def _shares(noisy: Floats, rows: int, variance: float) -> Floats:
    """(k,) counts of the k cells of one group that add up to its rows."""
    even = np.full(len(noisy), max(rows, 1) / len(noisy))
    agreed = noisy + (rows - noisy.sum()) / len(noisy)
    return project_to_simplex(shrunken(even, agreed, variance), float(rows))
