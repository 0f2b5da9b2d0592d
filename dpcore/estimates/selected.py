"""Shares and contrasts that are selected from noisy tables, with intervals that allow for the selection.

A number that was selected because it is large tends to be too large.  So the caller divides the error
probability by how many numbers there are to select from (Bonferroni): all intervals are then right at
once with the intended probability, whichever are shown.

A weighted sum of Gaussian noises is within its normal quantile.  For a weighted sum of Laplace noises
with variance v the moment generating function is at most 1 / (1 - v s^2 / 2), and Chernoff's bound gives
the interval.  A share P / W gets Fieller's set (``estimates.fieller``), as P - R W is also a sum.

Where a column may be null, W counts the records that have a value.  Otherwise answers would seem to
differ between groups merely because different shares of the groups were asked.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from dpcore.arrays import Floats
from dpcore.domain.axes import Axis, in_order
from dpcore.estimates.fieller import bounded_fieller
from dpcore.post.tables.consistency import Agreement
from dpcore.post.tables.margins import Attributes


class MeasuredColumns(NamedTuple):
    """One or two columns of tables that agree; the noise of the tables is Gaussian or Laplace.

    ``attributes``: positions of the columns in the agreement.
    """

    axes: tuple[Axis, ...]
    agreement: Agreement
    attributes: Attributes
    gaussian: bool

    @property
    def standard_error(self) -> float:
        """The standard error of a cell of the columns' joint table."""
        return math.sqrt(self.agreement.margin(self.attributes).variance)

    @property
    def noise_of_all(self) -> float:
        """The standard error of the sum of all cells if their noise is independent, for comparing tables
        of the same columns with different cells."""
        return self.standard_error * math.sqrt(math.prod(axis.size for axis in self.axes))


class ShareInterval(NamedTuple):
    """A share with both ends of its interval."""

    value: float
    low: float
    high: float


Part = tuple[int, int]
"""A range of a column's cells: the first one, and the one after the last."""


class Contrast(NamedTuple):
    """The share of some values in two groups of records.

    ``given``: the position of the column that defines the groups; ``groups``: two parts of it;
    ``shown``: the part of the other column whose share is compared.  ``rank``: the smallest difference
    of the shares that the intervals allow, times the square root of the smaller group's share of the
    records; minus 1 if one column nearly determines the other.  ``across``: the share of ``shown`` in
    each part of the first column that has an interval.
    """

    given: int
    groups: tuple[Part, Part]
    shown: Part
    shares: tuple[ShareInterval, ShareInterval]
    rank: float
    across: tuple[tuple[Part, ShareInterval], ...]


def deviations(chance: float, gaussian: bool) -> float:
    """A number of standard errors: noise is larger, in size, with at most this probability.

    >>> round(deviations(0.05, gaussian=True), 2), round(deviations(0.05, gaussian=False), 2)
    (1.96, 4.13)
    """
    if gaussian:
        return -float(ndtri(chance / 2))

    # Chernoff's bound is chance = (r + 2) exp(-r) at sqrt((r^2 + 2 r) / 2) standard errors; each step
    # at least halves the error of r.
    r = 0.0
    for _ in range(64):
        r = math.log((r + 2) / chance)
    return math.sqrt((r * r + 2 * r) / 2)


def telling_share(measured: MeasuredColumns, chance: float) -> tuple[Part, ShareInterval] | None:
    """The part of one column with the share nearest to a half, and this share; None without an interval.

    Bonferroni counts ``possible_parts`` intervals.
    """
    (axis,), counts = measured.axes, measured.agreement.margin(measured.attributes).table
    whole, parts = counts @ _valued(axis), _parts(axis, counts, tails=True)[0]
    if not parts or whole <= 0:
        return None
    part = min(parts, key=lambda each: abs(counts[each[0] : each[1]].sum() / whole - 0.5))
    share = share_of_all(measured, part, chance)
    return (part, share) if math.isfinite(share.low + share.high) else None


def share_of_all(measured: MeasuredColumns, part: Part, chance: float) -> ShareInterval:
    """The share of a part of one column among records with a value; NaN where there is no interval.

    Bonferroni counts ``possible_parts`` intervals.
    """
    (axis,), counts = measured.axes, measured.agreement.margin(measured.attributes).table
    sums = _weights(axis, part), _valued(axis)
    covariance = measured.agreement.combination_covariance(
        [{measured.attributes: each} for each in sums]
    )
    number, divisor = (float(counts @ each) for each in sums)
    return _quotient(number, divisor, covariance, chance, measured.gaussian)


LEAST_GROUP = 0.02
"""Groups with a smaller share of all records are not compared."""

EDGE = 0.01
"""Shares this close to 0 or 1 describe almost nobody, or almost everybody: they are no finding."""

FOLLOWS, CLEAR = 0.9, 0.2
"""If two groups have shares that differ by more than ``FOLLOWS``, and the root of the smaller group's
share of records exceeds ``CLEAR``, one column nearly determines the other."""

EXCEPTIONS, CUT, SURE = 0.05, 0.25, 4.0
"""One column also nearly determines a value of the other if in most of its cells nearly all records, or
nearly none, have the value.  Exceptions are at most ``CUT`` of the records with the value (or without
it, if these are fewer), and at most ``EXCEPTIONS`` if one cell of an ordered column is left out.  Cells
count if they have more than ``SURE`` standard errors of records."""

LEVELS = (0.02, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.98)
FEW, TRIED = 7, 12
"""Columns of over ``FEW`` cells are cut near ``LEVELS``; ``TRIED`` contrasts of a table get
intervals."""


def possible_parts(axis: Axis) -> int:
    """The number of parts of a column that may be compared: single categories, or ranges of numbers."""
    cells = axis.size - axis.nullable
    return cells * (cells + 1) // 2 if in_order(axis) else cells


def possible_shares(axes: Sequence[Axis]) -> int:
    """The number of shares of a part of either column among the records in a part of the other."""
    return 2 * math.prod(possible_parts(axis) for axis in axes)


def strongest_contrast(measured: MeasuredColumns, chance: float, given: int) -> Contrast | None:
    """The two groups by one column between which the share of some values of the other differs most.

    None if noise may explain all differences.  Each interval misses with probability at most ``chance``.
    Which parts are compared depends on the noisy counts, but all are among ``possible_shares``: all
    intervals are right at once, except with probability at most ``chance`` times their number.
    """
    n = measured.agreement.margin(measured.attributes).table
    n = n.T if given else n
    axes = measured.axes[given], measured.axes[1 - given]
    groups, cut = _parts(axes[0], n.sum(axis=1))
    known = n @ _valued(axes[1])
    sums, shown = _parts(axes[1], n.sum(axis=0), tails=True)[0], known.sum()
    sizes = np.array([known[low:high].sum() for low, high in groups])
    inside = np.array([[n[a:b, c:d].sum() for c, d in sums] for a, b in groups])
    if shown <= 0 or not sums:
        return None
    large = np.flatnonzero(sizes > LEAST_GROUP * shown)
    rates = inside[large] / sizes[large, None]
    weight = np.sqrt(np.minimum.outer(sizes[large], sizes[large]) / shown)
    ranks = (rates[:, None] - rates[None]) * weight[..., None]
    # A share near 0 or 1 says that one column determines the other.
    all_but, none = (rates > 1 - EDGE)[:, None], (rates < EDGE)[None]
    ranks[all_but | none] = -1.0
    far = (rates[:, None] - rates[None]) * (weight[..., None] > CLEAR) > FOLLOWS
    first, last = np.array([groups[i] for i in large]).reshape(-1, 2).T
    ranks[(first[:, None] < last) & (first < last[:, None])] = -1.0  # the groups overlap
    tried = []
    # Only the largest differences get intervals, because covariances take long.
    for flat in np.argsort(-ranks, axis=None)[:TRIED].tolist():
        i, j, k = (int(each) for each in np.unravel_index(flat, ranks.shape))
        if ranks[i, j, k] <= 0:
            break
        tried.append(((groups[large[i]], groups[large[j]]), sums[k], float(weight[i, j])))
    asked = list(dict.fromkeys((each, part) for pair, part, _ in tried for each in pair))
    shares = dict(zip(asked, _shares_among(measured, n, given, chance, asked), strict=True))
    found = []
    for pair, part, root in tried:
        more, less = (shares[each, part] for each in pair)
        if (rank := (more.low - less.high) * root) > 0:
            found.append(Contrast(given, pair, part, (more, less), rank, ()))
    best = max(found, key=lambda each: each.rank, default=None)
    if best is None:
        return None
    across = _shares_among(measured, n, given, chance, [(part, best.shown) for part in cut])
    bounded = (e for e in zip(cut, across, strict=True) if math.isfinite(e[1].low + e[1].high))
    follows = bool(np.any(far)) or any(_determines(measured, each) for each in (0, 1))
    return best._replace(across=tuple(bounded), rank=best.rank - follows)


def _determines(measured: MeasuredColumns, given: int) -> bool:
    """Whether a record's cell of one column nearly determines whether it has some value of the other."""
    counts = measured.agreement.margin(measured.attributes).table
    inside = (counts.T if given else counts) @ np.diag(_valued(measured.axes[1 - given]))
    rest = inside.sum(axis=1, keepdims=True) - inside
    sure = (_valued(measured.axes[given]) > 0) & (
        inside.sum(axis=1) > SURE * measured.standard_error
    )
    least = np.minimum(inside, rest)[sure]
    smaller = np.minimum(inside[sure].sum(axis=0), rest[sure].sum(axis=0))
    cut = least.max(axis=0, initial=0.0) * in_order(measured.axes[given])
    few = (least.sum(axis=0) - cut <= EXCEPTIONS * smaller) & (least.sum(axis=0) <= CUT * smaller)
    return bool(np.any(few & (smaller > LEAST_GROUP * inside.sum())))


def _weights(axis: Axis, part: Part) -> Floats:
    """(cells,) 1 for the cells of a part, and 0 for all others."""
    cells = np.arange(axis.size)
    return np.asarray((part[0] <= cells) & (cells < part[1]), dtype=np.float64)


def _valued(axis: Axis) -> Floats:
    """(cells,) 1 for cells with a value, and 0 for null."""
    return _weights(axis, (0, axis.size - axis.nullable))


def _parts(axis: Axis, counts: Floats, tails: bool = False) -> tuple[list[Part], list[Part]]:
    """The parts of a column that are compared, and the parts that divide it; no part contains null."""
    cells = axis.size - axis.nullable
    if not in_order(axis):
        alone = [(i, i + 1) for i in range(cells)]
        return alone, alone
    cuts = list(range(cells + 1))
    if cells > FEW:
        below = np.cumsum(counts[:cells]) / max(float(counts[:cells].sum()), 1.0)
        inner = {int(np.argmin(np.abs(below - level))) + 1 for level in LEVELS}
        cuts = sorted({0, cells, *inner})
    bars = list(pairwise(cuts))
    ends = [(0, cut) for cut in cuts[1:-1]] + [(cut, cells) for cut in cuts[1:-1]]
    return (ends if tails or cells > FEW else list(dict.fromkeys(bars + ends))), bars


def _shares_among(
    measured: MeasuredColumns,
    n: Floats,
    given: int,
    chance: float,
    asked: Sequence[tuple[Part, Part]],
) -> list[ShareInterval]:
    """For each (group, part): the share of the part in the group, among records with a value in both
    columns.

    ``n``: the table of both columns; its rows are the cells of the column that defines the group.
    """
    of_group, of_shown = measured.axes[given], measured.axes[1 - given]
    tables = [
        np.outer(_weights(of_group, group), weights)
        for group, part in asked
        for weights in (_weights(of_shown, part), _valued(of_shown))
    ]
    covariance = measured.agreement.combination_covariance(
        [{measured.attributes: each.T if given else each} for each in tables]
    )
    shares = []
    for i in range(0, len(tables), 2):
        number, divisor = (float(np.sum(n * each)) for each in tables[i : i + 2])
        joint = covariance[i : i + 2, i : i + 2]
        shares.append(_quotient(number, divisor, joint, chance, measured.gaussian))
    return shares


def _quotient(
    number: float, divisor: float, covariance: Floats, chance: float, gaussian: bool
) -> ShareInterval:
    """The quotient of two noisy numbers with this joint covariance (2, 2); NaN without an interval."""
    (variance, joint), (_, of_divisor) = covariance.tolist()
    ends = np.asarray([number]), variance, np.asarray([divisor]), of_divisor, joint
    found = bounded_fieller(*ends, deviations(chance, gaussian))
    low, high = (float(np.clip(end[0], 0.0, 1.0)) for end in found)
    return ShareInterval(number / divisor if divisor else math.nan, low, high)
