"""Cells of one column merged into few groups, by noisy counts.

If a column has two thousand occupations, tables of pairs have millions of cells, mostly pure noise.
Noisy counts of the column alone show which cells have few records.  The two groups with the fewest
records together are merged repeatedly, until the requested number of groups is left:

    noisy counts   90  4  7  55  3 -2        ordered, 4 groups   [90] [4 7] [55] [3 -2]
                                             unordered           [90] [7] [55] [4 3 -2]

Neighbouring cells that are not positive are merged first, all at once.  In a numeric column only
neighbouring bins are merged; in a categorical one, categories with about the same count.  Cells of
different kinds are never merged, so a rule about cells of one kind is also a rule about whole groups.

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

from dpcore.arrays import Integers


def kinds_of(size: int, nullable: bool, conditions: Iterable[Collection[int]]) -> Integers:
    """The kind (size,) of each cell: two cells have the same kind if no condition separates them.

    ``conditions``: sets of cells.  If ``nullable``, the last cell is null and has its own kind.
    """
    marks = [np.isin(np.arange(size), list(cells)) for cells in conditions]
    marks.append(np.arange(size) == (size - 1 if nullable else -1))
    _, kinds = np.unique(np.stack(marks), axis=1, return_inverse=True)
    return kinds.reshape(-1)


def least_groups(kinds: NDArray[np.generic], ordered: bool) -> int:
    """The fewest groups into which cells of these kinds (size,) can be merged."""
    if ordered:
        return 1 + int(np.count_nonzero(kinds[1:] != kinds[:-1]))
    return len(np.unique(kinds))


def merge_cells(
    noisy: Integers, kinds: NDArray[np.generic], keep: int, *, ordered: bool
) -> Integers:
    """The group (size,) of each cell; groups are numbered from 0 in the order of their first cells.

    ``noisy`` (size,): counts.  ``kinds`` (size,): cells of different kinds are not merged.
    ``ordered``: only neighbouring cells are merged.  ``keep``: the number of groups, between
    ``least_groups`` and ``size``.
    """
    size = len(noisy)
    order = np.arange(size) if ordered else np.lexsort((noisy, kinds))
    mass, kind = noisy[order], kinds[order]
    joined = (mass[1:] <= 0) & (mass[:-1] <= 0) & (kind[1:] == kind[:-1])
    runs = np.flatnonzero(np.concatenate([[True], ~joined]))
    # The number of groups is public and must not depend on the draw: too few runs are not used.
    if len(runs) < keep:
        runs = np.arange(size)
    # Counts keep their sign, so that the noise of many empty cells cancels.  With negative counts set
    # to zero, a hundred empty bins would seem to have thousands of records and use up the groups.
    sums = np.add.reduceat(mass, runs)
    starts = runs[_starts(sums.tolist(), kind[runs].tolist(), keep)]
    groups = np.empty(size, dtype=np.int64)
    groups[order] = np.repeat(np.arange(len(starts)), np.diff([*starts, size]))
    _, first = np.unique(groups, return_index=True)
    return np.argsort(np.argsort(first))[groups]


def _starts(mass: list[int], kind: list[int], keep: int) -> list[int]:
    """The starts of runs, after repeatedly merging the two neighbours with the smallest sum."""
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
