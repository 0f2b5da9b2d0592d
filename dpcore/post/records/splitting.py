"""Cells for records that carry groups of cells (``mechanisms.grouping``).

>>> groups = np.array([0, 1, 1])
>>> column = np.array([1, 1, 0, 1])
>>> split_groups(column, groups, np.array([1.0, 3.0, 0.0]), 1e-9, np.random.default_rng(7)).tolist()
[1, 1, 0, 1]
"""

from __future__ import annotations

import numpy as np

from dpcore.arrays import Floats, Integers
from dpcore.post.records.denoise import shrink
from dpcore.post.tables.simplex import project_to_simplex, round_to_total


def split_groups(
    column: Integers,
    groups: Integers,
    noisy: Floats,
    variance: float,
    generator: np.random.Generator,
) -> Integers:
    """(rows,) cells of records whose groups are ``column`` (rows,).

    ``groups`` (size,): the group of each cell; ``noisy`` (size,): counts of the cells in a table of
    that many rows, whose noise has the given ``variance``.  Within a group the cells follow these
    counts after shrinkage towards equal ones; which record gets which cell is random, so within a
    group the cells are independent of all other columns.
    """
    result = np.empty_like(column)
    for group in range(groups.max(initial=-1) + 1):
        cells, rows = np.flatnonzero(groups == group), np.flatnonzero(column == group)
        counts = round_to_total(_shares(noisy[cells], len(rows), variance), len(rows))
        result[generator.permutation(rows)] = np.repeat(cells, counts)
    return result


def _shares(noisy: Floats, rows: int, variance: float) -> Floats:
    """(k,) counts of the k cells of one group; they add up to ``rows``."""
    even = np.full(len(noisy), max(rows, 1) / len(noisy))
    agreed = noisy + (rows - noisy.sum()) / len(noisy)
    return project_to_simplex(shrink(even, agreed, variance), float(rows))
