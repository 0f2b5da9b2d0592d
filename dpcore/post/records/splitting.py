"""Cells for records that carry groups of cells (``mechanisms.grouping``).

>>> groups = np.array([0, 1, 1])
>>> column = np.array([1, 1, 0, 1])
>>> split_groups(column, groups, np.array([1.0, 3.0, 0.0]), 1e-9, np.random.default_rng(7)).tolist()
[1, 1, 0, 1]

If the noisy counts contain little information, the cells of a group are assumed equal.  The ends of an
ordered column are different, because one group holds all rare values: with equally many records at
5,000 and at 90,000 dollars the mean would be far too large.  There counts decline cell by cell from the
neighbouring groups, at least as fast as in these, and each of the ``tails`` has its own total.  A tail
joins groups until their total is significant: with a standard error of 20, the last groups of 0, 10, 40
and 120 records form one tail.

>>> held, groups = np.array([900.0, 300.0, 120.0, 40.0, 10.0, 0.0]), np.repeat(np.arange(6), 4)
>>> (tail,) = tails(groups, held, np.zeros(24, dtype=np.int64), error=20.0)
>>> tail.cells.tolist(), round(tail.density, 1)
([8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23], 49.7)
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dpcore.arrays import Booleans, Floats, Integers
from dpcore.post.records.shrinkage import NO_NOISE, kept_beside
from dpcore.post.tables.simplex import round_to_total

BULK = 1 / 4
"""A tail with more than this share of a column's records must be confirmed by counts of cells."""

SEEN = 4.0
"""A total of groups is significant if it is this many standard errors.  With three, noise would put a
tail into an empty group, far from all records, in one of sixty columns with a dozen empty groups."""

LEAST_START = 0.4
"""A tail starts with at least this fraction of the mean of the adjacent groups: noise may exaggerate
how fast they decline."""

EXPONENTIAL, POWER_LAW = 0.5, 0.1
"""The weights of two declines relative to log-normal ones; a power law gets little, because noise can
make it very long."""

THINNING = 4.0
"""If noise hides the distribution of rare amounts, the first cell has this many times the mean count."""

CURVATURES = 0.1, 0.2, 0.4
"""Half the inverse variances of logarithms of amounts, if these are log-normal."""

DENSER = 1.0, 2.0, 4.0
"""A tail may start this many times denser than its neighbours, because noise may have made their counts
too small, so that the tail would decline too slowly, far beyond all records."""

LEAST_WIDTH = 1e-9
"""The width of a cell that contains a single real number."""


class CellAmounts(NamedTuple):
    """The numbers in the cells (values,) of a column: the ``middles`` of the cells, and their
    ``widths``; for countable numbers, a width is how many numbers the cell contains."""

    middles: Floats
    widths: Floats


class Tail(NamedTuple):
    """A tail of a column: its cells (k,) from the inside to the end.

    ``widths`` (k,): of the cells; ``steps``, ``along`` (k,): their distances from the start, in numbers
    and on the scale on which counts decline; ``density``: records per width at the start; ``slope``: the
    decline of the log density there per unit of ``along``; ``bulk``: it may not be a tail.
    """

    cells: Integers
    widths: Floats
    steps: Floats
    along: Floats
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
    amounts: CellAmounts | None = None,
) -> Integers:
    """Cells (rows,) of records whose groups are ``column`` (rows,).

    ``groups`` (size,): the group of each cell; ``noisy`` (size,): counts of the cells in a table of
    that many rows, with noise of the given ``variance``; ``ends``: tails, each made of whole groups;
    ``ranks`` (rows,): in a group or a tail, records of higher rank get later cells; ``amounts``: of the
    first cells, if they contain numbers.  Within a group the cells follow the noisy counts after
    shrinkage towards equal counts, or towards an even density if that is closer; in a tail, towards
    declining counts.  For numbers, sums of neighbouring cells are used too.  Without ranks the records
    of a group get its cells at random, independently of all other columns.
    """
    widths = None if amounts is None else amounts.widths
    order = generator.permutation(len(column)) if ranks is None else np.argsort(ranks)
    result, joined = np.empty_like(column), np.arange(groups.max(initial=-1) + 1)
    for tail in ends:  # only the total of its groups is significant, so they are one group
        joined[groups[tail.cells]] = groups[tail.cells[0]]
    column, groups = joined[column], joined[groups]
    held = np.bincount(column, minlength=len(joined))
    likely = np.maximum(held, 1.0)[groups] / np.bincount(groups)[groups]
    falling, tailing = likely.copy(), {int(groups[tail.cells[0]]): tail for tail in ends}
    for group, tail in tailing.items():
        falling[tail.cells] = _falling(
            tail, max(float(held[group]), min(1.0, tail.density / 2)), noisy[tail.cells], variance
        )
    for group in np.unique(groups):
        cells, rows = np.flatnonzero(groups == group), order[column[order] == group]
        end, near = tailing.get(group), likely[cells]
        others = [falling[cells]] if end else []
        if end and not end.bulk:
            near = falling[cells]
        elif widths is not None and cells[-1] < len(widths) and widths[cells].any():
            others += [near.sum() * n / n.sum() for n in (widths[cells] ** 0.5, widths[cells])]
        near = _nearest(near, others, noisy[cells], variance)
        if widths is not None and (not end or end.bulk):  # neighbours are similar
            near = _from_halves(near, noisy[cells], len(rows), variance)
        shares = _shares(near, noisy[cells], len(rows), variance)
        result[rows] = np.repeat(cells, round_to_total(shares, len(rows)))
    return result


def tails(
    groups: Integers,
    held: Floats,
    kinds: Integers,
    error: float,
    amounts: CellAmounts | None = None,
) -> list[Tail]:
    """The tails at the two ends of a column of ordered cells.

    ``groups`` (size,): the group of each cell; ``held`` (groups,): records in each, with a standard
    ``error``; ``kinds`` (values,): of the first cells, which are ordered; a tail has only one kind;
    ``amounts``: of these cells, if they contain numbers.

    A tail consists of the outermost groups, as few as have a significant total, because noise affects a
    total less than single counts.  It must be less dense than the groups before it.  The density at the
    start is the lower of two densities: that of the nearest groups with a significant total, and that of
    the next such groups.  So a frequent value such as 40 hours starts no tail.  If the nearer density is
    lower, counts decline within these groups too, so the tail starts below their mean.  If only the
    innermost group is significant, its density is the start.  The bulk of a column may decline too, or
    lie next to a top code or noise: such a tail is marked as ``bulk``, and the noisy counts must confirm
    it.
    """
    sizes, values = np.bincount(groups, minlength=len(held)), groups[: len(kinds)]
    of_kind = dict(zip(values.tolist(), kinds.tolist(), strict=True))
    alike = Counter(of_kind.values())
    found = list[Tail]()
    for way in (1, -1):
        runs = [g for g in np.unique(values)[::-way].tolist() if alike[of_kind[g]] > 1]
        left = [g for g in runs if of_kind[g] == of_kind[runs[0]]]
        seen = _seen(left, held, error)
        # If no groups are significant, or only all of them together, noise hides the amounts.
        if way > 0 and len(seen) in (0, len(left)) and amounts is not None:
            hidden = _hidden_tail(groups, held, left, amounts)
            if hidden:
                found.append(hidden)
                continue
        # The longest tail first: fewer groups are tried if their density does not decline.
        for number in range(len(seen), 0, -1):
            end, last = left[:number], left[number - 1]
            first = _seen(left[number:], held, error)
            second = _seen(left[number + len(first) :], held, error)
            bulk = bool(held[end].sum() > BULK * held[left].sum())
            # If nearly all answers are zero, only the innermost group may be significant.
            alone = first == left[-1:] and not bulk
            if not (second or alone) or (bulk and number > 1):
                continue
            before = [each for each in (first, second) if each]
            densities = [held[each].sum() / sizes[each].sum() for each in before]
            # Neither the tail nor its innermost group may be clearly denser than the groups before it.
            mean, clearly = held[end].sum() / sizes[end].sum(), held[last] - SEEN * error
            thins_out = max(mean, clearly / sizes[last]) < min(densities)
            cells = np.flatnonzero(np.isin(groups, end))[::way]
            if thins_out and not any(np.intersect1d(cells, other.cells).size for other in found):
                scales = _scales(int(cells[0]) - way, way, len(kinds), amounts)
                beside = [np.isin(values, each) for each in before]
                density, slope = _start([held[each].sum() for each in before], beside, scales)
                wide, steps, along = (scale[cells] for scale in scales)
                found.append(Tail(cells, wide, steps, along, density, slope, bulk))
                break
    return found


def _hidden_tail(
    groups: Integers, held: Floats, left: list[int], amounts: CellAmounts
) -> Tail | None:
    """The tail of all amounts above zero, if noise hides their distribution.

    Nearly all records are zero, so the density at zero does not show the density of amounts.  The
    density of logarithms of amounts, and so the counts of growing cells, are assumed to decline slowly.
    None if there are no growing cells, or many records in them.
    """
    middles, widths = amounts
    cells = np.flatnonzero(np.isin(groups, left))
    cells = cells[cells < len(middles)]
    above = cells[middles[cells] > 0.0]
    if len(above) < max(len(cells) - 1, 2) or widths[above].max() < 2 * widths[above].min():
        return None
    records = float(held[np.unique(groups[above])].sum())
    if records > BULK * held.sum():
        return None
    places, even = np.arange(1.0, len(above) + 1), max(records, 1.0) / len(above)
    return Tail(above, np.ones(len(above)), places, places, THINNING * even, 0.0, bulk=False)


def _start(
    records: Sequence[float], beside: Sequence[Booleans], scales: tuple[Floats, Floats, Floats]
) -> tuple[float, float]:
    """The density and the slope at the start of a tail, from ``records`` in the nearer and, if any, the
    farther groups before it; ``beside`` (values,) marks their cells."""
    widths, _, along = scales
    near, *farther = (n / widths[cells].sum() for n, cells in zip(records, beside, strict=True))
    if not farther:
        return float(near), 0.0
    (far,), (from_near, from_far) = farther, (along[cells].mean() for cells in beside)
    # Without amounts above zero, both groups have the same position on a logarithmic scale.
    apart = from_near - from_far
    slope = max(math.log(far / near) / apart, 0.0) if apart > 0 else 0.0
    return float(min(near, far) * max(math.exp(slope * from_near), LEAST_START)), slope


def _scales(
    start: int, way: int, size: int, amounts: CellAmounts | None
) -> tuple[Floats, Floats, Floats]:
    """``widths``, ``steps`` and ``along`` (size,) of all cells, for a tail that begins after a cell.

    Amounts and losses decline on a logarithmic scale, which far from zero is nearly linear.
    """
    if amounts is not None and (outward := way * amounts.middles)[start] > 0.0:
        # Only cells before the tail can be zero or negative; they get an arbitrary smaller amount.
        logs = np.log(np.maximum(outward, outward[outward > 0.0].min() / 2) / outward[start])
        if (np.diff(logs[start::way]) > 0.0).all():
            return np.maximum(amounts.widths, LEAST_WIDTH), outward - outward[start], logs
    cells = (np.arange(float(size)) - start) * way
    return np.ones(size), cells, cells


def counts_of_tail(tail: Tail, noisy: Floats, variance: float) -> Floats:
    """Records (k,) of the cells of a tail, which add up to the total of their ``noisy`` counts (k,)."""
    # A noisy total may be negative, but the total of a decline is positive.
    total = max(float(noisy.sum()), min(1.0, tail.density / 2))
    counts = _shares(_falling(tail, total, noisy, variance), noisy, total, variance)
    return np.asarray(counts * (total / counts.sum()))


def counts_of_column(noisy: Floats, variance: float, widths: Floats) -> Floats:
    """Counts (k,) of the cells of a column of numbers, after shrinkage towards the cells around."""
    rows = max(float(noisy.sum()), 1.0)
    likely = rows * widths / widths.sum()
    return _shares(_from_halves(likely, noisy, rows, variance), noisy, rows, variance)


def _seen(order: list[int], held: Floats, error: float) -> list[int]:
    """The first groups that together have a significant total; none if even all of them do not."""
    for number in range(1, len(order) + 1):
        if held[order[:number]].sum() >= max(SEEN * error * number**0.5, 1.0):
            return order[:number]
    return []


def _shares(likely: Floats, noisy: Floats, rows: float, variance: float) -> Floats:
    """Counts (k,) of the k cells of one group, which add up to ``rows``, a less noisy number.

    The difference is shared among the cells in proportion to their uncertainty.
    """
    likely = _beside_many(likely, noisy, rows, variance)
    return _shrunken(likely, noisy, rows, variance)


def _from_halves(likely: Floats, noisy: Floats, rows: float, variance: float) -> Floats:
    """Likely counts (k,) fitted to the sums of halves, quarters, ... of the cells, in which noise is
    relatively small."""
    number = 2
    while 2 * number < len(noisy):
        starts = np.arange(number) * len(noisy) // number
        sizes = np.diff([*starts, len(noisy)])
        before, sums = (np.add.reduceat(each, starts) for each in (likely, noisy))
        better = _shrunken(before, sums, rows, variance * float(sizes.mean()))
        likely = likely * np.repeat(better / np.maximum(before, 1e-300), sizes)
        number *= 2
    return likely


def _shrunken(likely: Floats, noisy: Floats, rows: float, variance: float) -> Floats:
    """Noisy counts (k,), shrunken towards likely ones; the result adds up to ``rows``."""
    kept = kept_beside(likely, noisy, variance)
    found = likely + kept * (noisy - likely)
    found = np.maximum(found + (rows - found.sum()) * kept / kept.sum(), 0.0)
    return found if found.any() else likely


def _nearest(likely: Floats, others: Sequence[Floats], noisy: Floats, variance: float) -> Floats:
    """Likely counts (k,) of the cells of one group, or ``others`` if these are clearly closer to the
    noisy ones.

    Bins of growing width have equal counts if log amounts are uniform, but hardly any records below the
    usual amounts: more people have 9,000 to 10,000 dollars than 90 to 100.  And if the last group has a
    third of all people, most of them may be near its beginning.
    """

    def misfit(each: Floats) -> float:
        return float(np.sum((noisy - each) ** 2))

    nearest = min(others, key=misfit, default=likely)
    return nearest if misfit(nearest) < misfit(likely) - NO_NOISE**2 * variance else likely


def _beside_many(likely: Floats, noisy: Floats, rows: float, variance: float) -> Floats:
    """Likely counts (k,): cells with far more records keep their noisy counts; others share the rest."""
    many = np.zeros(len(likely), dtype=bool)
    while not many.all():
        left = max(rows - noisy[many].sum(), 0.0)
        beside = np.where(many, noisy, likely * left / max(likely[~many].sum(), 1e-300))
        more = noisy - beside > NO_NOISE * variance**0.5
        if not more.any():
            return beside
        many |= more
    return likely


def _falling(tail: Tail, total: float, noisy: Floats, variance: float) -> Floats:
    """Records (k,) of the cells of a tail, which add up to a total.

    The mean of several declines, weighted by their likelihood given the ``noisy`` counts: exponential in
    ``tail.steps``; normal or log-normal in ``tail.along``, with the tail's slope at first or with a
    usual curvature; and exponential in ``tail.along``, which is a power law for amounts.  A decline too
    steep for the total is left out: noise may have made its slope.
    """
    from scipy.optimize import brentq  # slow to import

    _, widths, steps, along, density, slope, _ = tail
    # At least one decline, the first, must be able to reach the total.
    start = max(density, 1.001 * total / widths.sum()) * widths
    declines = [
        (start, steps, EXPONENTIAL),
        (start * np.exp(-slope * along), along**2, 1.0),
        *((start * np.exp(-c * along**2), along, 1 / len(CURVATURES)) for c in CURVATURES),
        (start, along, POWER_LAW),
    ]

    def records(first: Floats, distances: Floats) -> Floats:
        def decline(rate: float) -> Floats:
            return np.asarray(first * np.exp(-rate * distances / distances[0]))

        # At a rate of 700 even the nearest cell is nearly empty.
        return decline(brentq(lambda rate: decline(rate).sum() - total, 0.0, 700.0))

    found = [
        (records(first * times, distances), prior / times)
        for first, distances, prior in declines
        for times in DENSER
        if first.sum() * times > total
    ]
    misfits = np.array([np.sum((noisy - each) ** 2) for each, _ in found]) / (2.0 * variance)
    weights = np.array([prior for _, prior in found]) * np.exp(misfits.min() - misfits)
    return np.asarray(weights @ np.stack([each for each, _ in found]) / weights.sum())
