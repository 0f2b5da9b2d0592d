"""Cells for records that carry groups of cells (``mechanisms.grouping``).

>>> groups = np.array([0, 1, 1])
>>> column = np.array([1, 1, 0, 1])
>>> split_groups(column, groups, np.array([1.0, 3.0, 0.0]), 1e-9, np.random.default_rng(7)).tolist()
[1, 1, 0, 1]

Where the noisy counts say little, the cells of a group are taken to be alike.  Not so at the ends of an
ordered column, where one group holds all that is rare: a thousand of 5,000 dollars and as many of 90,000
would multiply the mean.  There counts decline cell by cell from the groups next to it, as fast as these
do or faster, so that the ``tails`` have their own total.  A tail is as many groups as hold
something together: in noise of a standard error of 20, the last groups of 0, 10 and 40 records are one.

>>> held, groups = np.array([900.0, 300.0, 120.0, 40.0, 10.0, 0.0]), np.repeat(np.arange(6), 4)
>>> (tail,) = tails(groups, held, np.zeros(24, dtype=np.int64), error=20.0)
>>> tail.cells.tolist(), tail.density
([8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23], 75.0)
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dpcore.arrays import Floats, Integers
from dpcore.post.records.shrinkage import NO_NOISE, kept_beside
from dpcore.post.tables.simplex import round_to_total

BULK = 1 / 4
"""More of a column's records than this are a tail of the others only where counts of cells say so."""

SEEN = 3.0
"""Groups hold something if their records are this many standard errors."""


class Tail(NamedTuple):
    """Cells (k,) of a tail, from within to the end, the records in a cell where it begins, and by how
    much their logarithm falls from one cell to the next there; ``bulk``: it may be no tail."""

    cells: Integers
    density: float
    slope: float
    bulk: bool


def split_groups(
    column: Integers,
    groups: Integers,
    noisy: Floats,
    variance: float,
    generator: np.random.Generator,
    ends: Sequence[Tail] = (),
    ranks: Floats | None = None,
    numbers: Floats | None = None,
) -> Integers:
    """(rows,) cells of records whose groups are ``column`` (rows,).

    ``groups`` (size,): the group of each cell; ``noisy`` (size,): counts of the cells in a table of
    that many rows, whose noise has the given ``variance``; ``ends``: whole groups that are one tail
    each; ``ranks`` (rows,): in a group or a tail, records of higher rank get later cells; ``numbers``
    (values,): how many numbers each of the first cells holds, or how wide it is.  Within a group the
    cells follow these counts after shrinkage towards equal ones, or those of an even density where they
    are nearer, and in a tail towards declining ones.  Without ranks it is random which record of a group
    gets which cell, so that within a group the cells are independent of all other columns.
    """
    order = generator.permutation(len(column)) if ranks is None else np.argsort(ranks)
    result, joined = np.empty_like(column), np.arange(groups.max(initial=-1) + 1)
    for tail in ends:
        joined[groups[tail.cells]] = groups[tail.cells[0]]
    column, groups = joined[column], joined[groups]
    held = np.bincount(column, minlength=len(joined))
    likely = np.maximum(held, 1.0)[groups] / np.bincount(groups)[groups]
    falling, tailing = likely.copy(), {int(groups[tail.cells[0]]): tail for tail in ends}
    for group, (cells, density, slope, _) in tailing.items():
        total = max(float(held[group]), min(1.0, density / 2))
        falling[cells] = _falling(density, slope, total, len(cells))
    for group in np.unique(groups):
        cells, rows = np.flatnonzero(groups == group), order[column[order] == group]
        end, near = tailing.get(group), likely[cells]
        others = [falling[cells]] if end else []
        if end and not end.bulk:
            near = falling[cells]
        elif numbers is not None and cells[-1] < len(numbers) and numbers[cells].any():
            others += [near.sum() * n / n.sum() for n in (numbers[cells] ** 0.5, numbers[cells])]
        near = _nearest(near, others, noisy[cells], variance)
        shares = _shares(near, noisy[cells], len(rows), variance)
        result[rows] = np.repeat(cells, round_to_total(shares, len(rows)))
    return result


def tails(groups: Integers, held: Floats, kinds: Integers, error: float) -> list[Tail]:
    """The tails of cells in order.

    ``groups`` (size,): the group of each cell; ``held`` (groups,): records in each, with a standard
    ``error``; ``kinds`` (values,): of the first cells, which are in order; those of a tail are alike.

    As many groups as together hold something, since how many of the largest values there are is known
    of all of them and hardly of each; not those that are as dense as what comes before them.  The
    density is that of the groups beside: of as many as hold something, and of as many again, the lower
    one, as a value that many have, such as 40 hours, begins no tail.  The bulk of a column may thin
    out too, or stand beside a top code or noise: such a tail is marked, and the counts decide.
    """
    sizes, values = np.bincount(groups, minlength=len(held)), groups[: len(kinds)]
    of_kind = dict(zip(values.tolist(), kinds.tolist(), strict=True))
    alike = Counter(of_kind.values())
    found = list[Tail]()
    for way in (1, -1):
        runs = [g for g in np.unique(values)[::-way].tolist() if alike[of_kind[g]] > 1]
        left = [g for g in runs if of_kind[g] == of_kind[runs[0]]]
        for number in range(len(_seen(left, held, error)), 0, -1):
            end, last = left[:number], left[number - 1]
            first = _seen(left[number:], held, error)
            second = _seen(left[number + len(first) :], held, error)
            bulk = bool(held[end].sum() > BULK * held[left].sum())
            if not second or (bulk and number > 1):
                continue
            beside = [held[each].sum() / sizes[each].sum() for each in (first, second)]
            mean, clearly = held[end].sum() / sizes[end].sum(), held[last] - SEEN * error
            thins_out = max(mean, clearly / sizes[last]) < min(beside)
            cells = np.flatnonzero(np.isin(groups, end))
            if thins_out and not any(np.intersect1d(cells, other.cells).size for other in found):
                apart = sizes[[*first, *second]].sum() / 2
                fall = math.log(beside[1] / beside[0]) / apart
                found.append(Tail(cells[::way], float(min(beside)), max(fall, 0.0), bulk))
                break
    return found


def _seen(order: list[int], held: Floats, error: float) -> list[int]:
    """As many of the first groups as together hold something; none where all do not."""
    for number in range(1, len(order) + 1):
        if held[order[:number]].sum() >= max(SEEN * error * number**0.5, 1.0):
            return order[:number]
    return []


def _shares(likely: Floats, noisy: Floats, rows: int, variance: float) -> Floats:
    """(k,) counts of the k cells of one group; they add up to ``rows``, which is less noisy than they.

    What is lacking goes to the cells in proportion to what is still unknown of each.
    """
    likely = _beside_many(likely, noisy, rows, variance)
    kept = kept_beside(likely, noisy, variance)
    found = likely + kept * (noisy - likely)
    found = np.maximum(found + (rows - found.sum()) * kept / kept.sum(), 0.0)
    return found if found.any() else likely


def _nearest(likely: Floats, others: Sequence[Floats], noisy: Floats, variance: float) -> Floats:
    """Likely counts (k,) of the cells of one group, or others that are clearly nearer to the noisy ones.

    Bins that become wider and wider hold equal counts where the logarithms of amounts are spread evenly,
    but hardly any below the amounts that are usual: there are more people between 9,000 and 10,000
    dollars than between 90 and 100.  And of a third of all people, who share the last group, most may
    be near its beginning.
    """

    def misfit(each: Floats) -> float:
        return float(np.sum((noisy - each) ** 2))

    nearest = min(others, key=misfit, default=likely)
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


def _falling(first: float, slope: float, total: float, size: int) -> Floats:
    """(size,) records of cells k = 1, 2, ..., with a total below size * first.

    The mean of two declines, as the counts do not tell which is right: first exp(-a k), as of amounts
    whose tail is a power law, and first exp(-slope k - b k^2), which falls ever faster, as of log-normal
    ones.  Each has the total; where even b = 0 holds fewer, only the first has it.
    """
    k = np.arange(1.0, size + 1)
    from scipy.optimize import brentq  # slow to import

    def decline(a: float, b: float) -> Floats:
        return np.asarray(first * np.exp(-a * k - b * k**2))

    evenly = decline(brentq(lambda a: decline(a, 0.0).sum() - total, 0.0, 700.0), 0.0)
    if decline(slope, 0.0).sum() <= total:
        return evenly
    faster = decline(slope, brentq(lambda b: decline(slope, b).sum() - total, 0.0, 700.0))
    return (evenly + faster) / 2
