"""Cells for records that carry groups of cells (``mechanisms.grouping``).

>>> groups = np.array([0, 1, 1])
>>> column = np.array([1, 1, 0, 1])
>>> split_groups(column, groups, np.array([1.0, 3.0, 0.0]), 1e-9, np.random.default_rng(7)).tolist()
[1, 1, 0, 1]

Where the noisy counts say little, the cells of a group are taken to be alike.  Not so at the ends of an
ordered column, where one group holds all that is rare: a thousand of 5,000 dollars and as many of 90,000
would multiply the mean.  There counts decline cell by cell from the group next to it, at the rate that
gives the group its own total.

>>> declining(np.array([0, 0, 1, 1, 1]), np.array([100.0, 70.0]), values=5).round(1).tolist()
[50.0, 50.0, 33.2, 22.1, 14.7]
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq

from dpcore.arrays import Floats, Integers
from dpcore.post.records.denoise import kept_beside
from dpcore.post.tables.simplex import round_to_total


def split_groups(
    column: Integers,
    groups: Integers,
    noisy: Floats,
    variance: float,
    generator: np.random.Generator,
    values: int = 0,
) -> Integers:
    """(rows,) cells of records whose groups are ``column`` (rows,).

    ``groups`` (size,): the group of each cell; ``noisy`` (size,): counts of the cells in a table of
    that many rows, whose noise has the given ``variance``; ``values``: how many of the first cells are
    in order, such as those of numbers.  Within a group the cells follow these counts after shrinkage
    towards ``declining`` ones; which record gets which cell is random, so within a group the cells
    are independent of all other columns.
    """
    result = np.empty_like(column)
    held = np.bincount(column, minlength=groups.max(initial=-1) + 1).astype(np.float64)
    likely = declining(groups, held, values)
    for group in range(len(held)):
        cells, rows = np.flatnonzero(groups == group), np.flatnonzero(column == group)
        shares = _shares(likely[cells], noisy[cells], len(rows), variance)
        result[generator.permutation(rows)] = np.repeat(cells, round_to_total(shares, len(rows)))
    return result


def _shares(likely: Floats, noisy: Floats, rows: int, variance: float) -> Floats:
    """(k,) counts of the k cells of one group; they add up to ``rows``, which is less noisy than they.

    What is lacking goes to the cells in proportion to what is still unknown of each.
    """
    kept = kept_beside(likely, noisy, variance)
    found = likely + kept * (noisy - likely)
    found = np.maximum(found + (rows - found.sum()) * kept / kept.sum(), 0.0)
    return found if found.any() else likely


def declining(groups: Integers, held: Floats, values: int) -> Floats:
    """(size,) likely counts of the cells, before any is looked at.

    ``groups`` (size,): the group of each cell; ``held`` (groups,): the records of each; ``values``: how
    many of the first cells are in order.  Equal within a group, but for the first and the last group
    of the cells in order.
    """
    sizes = np.bincount(groups, minlength=len(held))
    each = np.maximum(held, 1.0) / np.maximum(sizes, 1)
    likely = each[groups]
    runs = np.unique(groups[:values])
    if len(runs) > 1:
        for end, beside, way in ((runs[-1], runs[-2], 1), (runs[0], runs[1], -1)):
            if each[end] < each[beside]:
                cells = np.flatnonzero(groups == end)[::way]
                likely[cells] = _geometric(each[beside], max(held[end], 1.0), len(cells))
    return likely


def _geometric(first: float, total: float, size: int) -> Floats:
    """(size,) first r, first r^2, ... with this total, which is less than ``size`` times ``first``."""
    powers = np.arange(1, size + 1)
    rate = brentq(lambda r: first * float(np.sum(r**powers)) - total, 0.0, 1.0)
    return np.asarray(first * rate**powers)
