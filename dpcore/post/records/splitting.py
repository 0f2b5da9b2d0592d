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

from dpcore.arrays import Booleans, Floats, Integers
from dpcore.post.records.denoise import NO_NOISE, kept_beside
from dpcore.post.tables.simplex import round_to_total

SEEN = 3.0
"""A group holds something if its records are this many standard errors."""


def split_groups(
    column: Integers,
    groups: Integers,
    noisy: Floats,
    variance: float,
    generator: np.random.Generator,
    kinds: Integers | None = None,
    error: float = 0.0,
    ranks: Floats | None = None,
    numbers: Floats | None = None,
) -> Integers:
    """(rows,) cells of records whose groups are ``column`` (rows,).

    ``groups`` (size,): the group of each cell; ``noisy`` (size,): counts of the cells in a table of
    that many rows, whose noise has the given ``variance``; ``kinds`` (values,): of the first cells,
    where these are in order as those of numbers are; cells of different kinds are not exchanged;
    ``error``: of the number of records in a group; ``ranks`` (rows,): in a group, records of higher rank
    get later cells; ``numbers`` (values,): how many numbers each of the first cells holds, or how wide
    it is.  Within a group the cells follow these counts after shrinkage towards ``declining`` ones, or
    towards those of an even density where it is nearer.  Without ranks it is random which record gets
    which cell, so that within a group the cells are independent of all other columns.
    """
    order = generator.permutation(len(column)) if ranks is None else np.argsort(ranks)
    result = np.empty_like(column)
    kinds = np.zeros(0, dtype=np.int64) if kinds is None else kinds
    number = groups.max(initial=-1) + 1
    nothing = np.bincount(column, minlength=number) < SEEN * error
    even = np.array([_seem_alike(noisy[groups == group], variance) for group in range(number)])
    density = np.bincount(column, minlength=number) / np.maximum(np.bincount(groups), 1)
    thin = density < density.max(initial=0.0)  # what holds most of all is no tail
    joined = _ends_joined(groups, nothing, even & thin, kinds)
    column, groups = joined[column], joined[groups]
    held = np.bincount(column, minlength=number).astype(np.float64)
    likely = declining(groups, held, len(kinds))
    for group in np.unique(groups):
        cells, rows = np.flatnonzero(groups == group), order[column[order] == group]
        near = likely[cells]
        if numbers is not None and cells[-1] < len(numbers) - 1:  # a tail is no even density
            near = _nearest(near, numbers[cells], noisy[cells], variance)
        shares = _shares(near, noisy[cells], len(rows), variance)
        result[rows] = np.repeat(cells, round_to_total(shares, len(rows)))
    return result


def tails_whole(few: Integers, more: Integers, values: int, column: Integers) -> Integers:
    """(groups,) for each of ``more`` groups the one that stands for it: those of a tail do together.

    ``few``, ``more`` (size,): the group of each cell, where few are made of more; ``values``: of the
    first cells, which are in order; ``column`` (rows,): which of the ``more`` each record is in.  A tail
    is an end where cells hold fewer records than those of both groups beside it: how many of the
    largest values there are is known of all of them together, and a phantom in a part of them would
    be far from all others.
    """
    joined = np.arange(more.max(initial=-1) + 1)
    held = np.zeros(len(joined), dtype=np.int64)
    held[more] = few  # of which of the few each of the more is part
    each = np.bincount(held[column], minlength=few.max(initial=-1) + 1) / np.bincount(few)
    runs = np.unique(few[:values])
    for end, *beside in (runs[::-1][:3], runs[:3]) if len(runs) > 3 else ():
        if each[end] < each[beside].min():
            for whole in (end, beside[0]):
                joined[held == whole] = np.flatnonzero(held == whole)[0]
    return joined


def _shares(likely: Floats, noisy: Floats, rows: int, variance: float) -> Floats:
    """(k,) counts of the k cells of one group; they add up to ``rows``, which is less noisy than they.

    What is lacking goes to the cells in proportion to what is still unknown of each.
    """
    likely = _beside_many(likely, noisy, rows, variance)
    kept = kept_beside(likely, noisy, variance)
    found = likely + kept * (noisy - likely)
    found = np.maximum(found + (rows - found.sum()) * kept / kept.sum(), 0.0)
    return found if found.any() else likely


def _nearest(likely: Floats, numbers: Floats, noisy: Floats, variance: float) -> Floats:
    """Likely counts (k,) of the cells of one group, or as many by how many ``numbers`` each holds.

    Bins that become wider and wider hold equal counts where the logarithms of amounts are spread evenly,
    but hardly any below the amounts that are usual: there are more people between 9,000 and 10,000
    dollars than between 90 and 100.  The noisy counts decide, where they differ by more than noise.
    """

    def misfit(each: Floats) -> float:
        return float(np.sum((noisy - each) ** 2))

    even = [likely.sum() * numbers**power / np.sum(numbers**power) for power in (0.5, 1.0)]
    nearest = min(even, key=misfit)
    return nearest if misfit(nearest) < misfit(likely) - NO_NOISE**2 * variance else likely


def _beside_many(likely: Floats, noisy: Floats, rows: int, variance: float) -> Floats:
    """Likely counts (k,) once cells that hold far more are known: these leave fewer for the others."""
    many = np.zeros(len(likely), dtype=bool)
    while not many.all():
        left = max(rows - noisy[many].sum(), 0.0)
        beside = np.where(many, noisy, likely * left / max(likely[~many].sum(), 1e-300))
        more = noisy - beside > NO_NOISE * variance**0.5
        if not more.any():
            return beside
        many |= more
    return likely


def _seem_alike(noisy: Floats, variance: float) -> bool:
    """Whether several cells of a group (k,) differ by no more than noise."""
    return len(noisy) > 1 and bool(np.all((noisy - noisy.mean()) ** 2 <= NO_NOISE**2 * variance))


def _ends_joined(groups: Integers, nothing: Booleans, even: Booleans, kinds: Integers) -> Integers:
    """(groups,) the group that each is part of, for the cells of its records.

    Groups at the ends that may hold ``nothing`` (groups,) are part of the next one if its cells seem
    ``even`` (groups,), as those of a thin tail do: how many of the largest values there are is known of
    all of them together, and hardly of each.
    """
    joined = np.arange(len(nothing))
    runs, first = np.unique(groups[: len(kinds)], return_index=True)
    for order, starts in ((runs[::-1], first[::-1]), (runs, first)):
        for i in range(len(order) - 1):
            into = nothing[order[i + 1]] or even[order[i + 1]]
            if not (nothing[order[i]] and into and kinds[starts[i]] == kinds[starts[i + 1]]):
                break
            joined[joined == joined[order[i]]] = order[i + 1]
    return joined


def declining(groups: Integers, held: Floats, values: int) -> Floats:
    """(size,) likely counts of the cells, before any is looked at.

    ``groups`` (size,): the group of each cell; ``held`` (groups,): the records of each; ``values``: how
    many of the first cells are in order.  Equal within a group, but for the first and the last group
    of the cells in order: these decline from the fewer of the two groups beside them, as one of them may
    be a value that many have, such as 40 hours.
    """
    sizes = np.bincount(groups, minlength=len(held))
    each = np.maximum(held, 1.0) / np.maximum(sizes, 1)
    likely = each[groups]
    runs = np.unique(groups[:values])
    if len(runs) > 1:
        for end, beside, way in ((runs[-1], runs[-3:-1], 1), (runs[0], runs[1:3], -1)):
            first = float(each[beside].min())
            if each[end] < first:
                cells = np.flatnonzero(groups == end)[::way]
                likely[cells] = _geometric(first, max(held[end], 1.0), len(cells))
    return likely


def _geometric(first: float, total: float, size: int) -> Floats:
    """(size,) first r, first r^2, ... with this total, which is less than ``size`` times ``first``."""
    powers = np.arange(1, size + 1)
    from scipy.optimize import brentq  # slow to import

    rate = brentq(lambda r: first * float(np.sum(r**powers)) - total, 0.0, 1.0)
    return np.asarray(first * rate**powers)
