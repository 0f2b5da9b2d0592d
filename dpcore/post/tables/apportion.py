"""Non-negative whole counts for a tree of regions, from the top down; each is the sum of its children.

Each node's counts are shared among its children, cell by cell: their estimates are moved to the nearest
numbers that are not negative and have the sum of the parent's count, then rounded.

    parent  7      children  5.2  3.1  -0.9     nearest  4.55  2.45  0     whole  5  2  0

The nearest numbers are max(x - theta, 0).  The search for theta begins with all children and leaves
out those at or below the theta of the others, until none is left out (Michelot 1986); it does so for
all nodes of a level at once.  Numbers are rounded by rounding their running sums, so each moves by less
than one and the sums of children, which are whole, do not change.

>>> shares = nearest(np.array([[5.2], [3.1], [-0.9]]), np.array([0]), np.array([[7.0]]))
>>> whole(shares, np.array([0]), np.array([[7]])).ravel().tolist()
[5, 2, 0]
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dpcore.arrays import Booleans, Floats, Integers
from dpcore.domain.regions import Regions


def whole_counts(
    regions: Regions,
    estimates: Sequence[Floats],
    totals: Integers,
    top: int,
    possible: Booleans | None,
) -> list[Integers]:
    """Counts (nodes, cells) of all levels.

    ``totals``: (nodes,) whole sums over cells for the nodes of the level ``top``; the levels above are
    sums of it, and the levels below share it out.  ``possible``: (leaves, cells), False for impossible
    cells.
    """
    # A node is possible if one of its children is: otherwise its count could not be shared out.
    open_ = [possible]
    for level in range(regions.depth, 0, -1):
        below = open_[0]
        gathered = None if below is None else np.logical_or.reduceat(below, regions.starts[level])
        open_.insert(0, gathered)
    counts = [_shared(estimates[top], totals, open_[top])]
    for level in range(top, 0, -1):
        counts.insert(0, regions.gathered(level, counts[0]).astype(np.int64))
    for level in range(top + 1, regions.depth + 1):
        starts, above = regions.starts[level], counts[-1]
        shares = nearest(estimates[level], starts, above.astype(np.float64), open_[level])
        counts.append(whole(shares, starts, above))
    return counts


def nearest(
    values: Floats, starts: Integers, totals: Floats, possible: Booleans | None = None
) -> Floats:
    """The nearest numbers (k, cells) that are not negative, with given sums over groups of rows.

    ``starts``: (groups,) where each group of rows begins; ``totals``: (groups, cells), not negative.
    """
    rows = np.diff(starts, append=len(values))
    left = np.ones(values.shape, dtype=bool) if possible is None else possible
    while True:
        number = np.add.reduceat(left, starts, axis=0, dtype=np.int64)
        sums = np.add.reduceat(np.where(left, values, 0.0), starts, axis=0)
        theta = np.repeat((sums - totals) / np.maximum(number, 1), rows, axis=0)
        still = left & (values > theta)
        if np.array_equal(still, left):
            return np.where(left, values - theta, 0.0)
        left = still


def whole(shares: Floats, starts: Integers, totals: Integers) -> Integers:
    """Numbers (k, cells) rounded so that groups of rows have the whole ``totals`` (groups, cells)."""
    down = np.floor(shares)
    running = np.rint(np.cumsum(shares - down, axis=0)).astype(np.int64)
    counts = down.astype(np.int64) + np.diff(running, axis=0, prepend=0)
    missing = totals - np.add.reduceat(counts, starts, axis=0)
    ends = np.append(starts[1:], len(shares))
    # Counts may be so large that a double does not hold their sum.
    for group, cell in np.argwhere(missing):
        largest = starts[group] + np.argmax(counts[starts[group] : ends[group], cell])
        counts[largest, cell] += missing[group, cell]
    return counts


def _shared(values: Floats, totals: Integers, possible: Booleans | None) -> Integers:
    """Counts (nodes, cells) if the total (nodes,) of each node over its cells is known."""
    size = values.shape[1]
    starts, column = size * np.arange(len(values)), (-1, 1)
    open_ = None if possible is None else possible.reshape(column)
    known = totals.reshape(column)
    shares = nearest(values.reshape(column), starts, known.astype(np.float64), open_)
    return whole(shares, starts, known).reshape(values.shape)
