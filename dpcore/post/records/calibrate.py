"""Adjust records so that they also follow tables from which they were not drawn.

Two releases of one plan may count the same columns: records of all columns, and a table of health by
visits with a budget of its own, which is more precise.  Records keep their cells; how often each is
taken changes until they agree with the better tables too.

    weights --raking--> the tables, shrunken towards the records' own where they are noise
            --systematic sampling--> each record none, one or several times

Raking (Deming & Stephan 1940) changes the joint distribution as little as the tables allow, and no
record gets a combination of cells that it did not have: what rules exclude stays excluded.

>>> cells = np.repeat([0, 1], [60, 40])
>>> table = Target(cells[:, None], [FollowedMargin((0,), np.array([90.0, 10.0]), np.ones(2))])
>>> chosen = calibrated(100, [table], np.random.default_rng(1))
>>> np.bincount(cells[chosen]).tolist()
[90, 10]
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from dpcore.arrays import Floats, Integers
from dpcore.domain.axes import Axis, Categories, Grid
from dpcore.post.records.shrinkage import log_likelihoods, shrink
from dpcore.post.tables.margins import Margin

SWEEPS, CONVERGED = 30, 1e-3
MOST = 100.0
"""A record is taken at most about this many times, so that the result does not depend on few records."""

DOUBT = 4.0
"""Records move only if the log likelihood of a table exceeds that of their own table by this."""


class FollowedMargin(NamedTuple):
    """Unbiased noisy counts with an axis for each of ``attributes``; ``variance``: of their noise."""

    attributes: tuple[int, ...]
    table: Floats
    variance: Floats


class Target(NamedTuple):
    """Tables that records should follow.

    ``codes`` (rows, columns): the cells of each record; ``margins``: tables for the same number of
    records, one for every set of these columns, the smaller ones first.
    """

    codes: Integers
    margins: Sequence[FollowedMargin]


def target(
    theirs: Sequence[Axis],
    ours: Sequence[Axis],
    codes: Integers,
    margin: Callable[[tuple[int, ...]], Margin],
) -> Target | None:
    """The target of records with these codes (rows, columns) over ``ours``, in cells that both releases
    share.

    ``theirs``: axes of the same columns in the other release; ``margin``: its table over some of these
    axes, given by position.  None if two axes have no cells in common.
    """
    pairs = [common_cells(one, other) for one, other in zip(theirs, ours, strict=True)]
    groups = [pair for pair in pairs if pair is not None]
    total = float(margin(()).table)
    if len(groups) < len(pairs) or total < 1:
        return None
    scale, margins = len(codes) / total, []
    for ways in range(1, len(pairs) + 1):
        for kept in combinations(range(len(pairs)), ways):
            table, variance = margin(kept).table * scale, np.ones(())
            for axis, place in enumerate(kept):
                starts = np.flatnonzero(np.diff(groups[place][0], prepend=-1))
                table = np.add.reduceat(table, starts, axis=axis)
                merged = np.bincount(groups[place][0]).astype(np.float64)
                variance = np.multiply.outer(variance, merged)
            noise = margin(kept).variance * scale**2
            margins.append(FollowedMargin(kept, table, variance * noise))
    cells = np.empty_like(codes)
    for place, (_, own) in enumerate(groups):
        cells[:, place] = own[codes[:, place]]
    return Target(cells, margins)


def common_cells(theirs: Axis, ours: Axis) -> tuple[Integers, Integers] | None:
    """For two axes of one column: the cell between common edges that contains each of their cells.

    >>> from dpcore.domain.axes import Bins
    >>> common_cells(Bins("x", (0.0, 1.0, 5.0, 9.0)), Bins("x", (0.0, 2.0, 5.0, 7.0, 9.0)))
    (array([0, 0, 1]), array([0, 0, 1, 1]))
    """
    if theirs.nullable != ours.nullable:
        return None
    if isinstance(theirs, Categories) or isinstance(ours, Categories):
        same = np.arange(theirs.size)
        return (same, same) if theirs == ours else None
    if (isinstance(theirs, Grid) and theirs.points) or (isinstance(ours, Grid) and ours.points):
        return None
    one, other = theirs.starts, ours.starts
    if one[0] != other[0]:
        return None
    common = np.array(sorted({*one} & {*other}))
    null = np.full(int(ours.nullable), len(common))
    first, second = (
        np.append(np.searchsorted(common, np.array(each), side="right") - 1, null)
        for each in (one, other)
    )
    return first, second


def calibrated(rows: int, targets: Sequence[Target], generator: np.random.Generator) -> Integers:
    """Row numbers (rows,) of the records to take, in random order; a record may be taken repeatedly."""
    wanted = [_wanted(rows, target) for target in targets]
    cells = [np.ravel_multi_index(tuple(t.codes.T), t.margins[-1].table.shape) for t in targets]
    weights = np.ones(rows)
    for _ in range(SWEEPS):
        before = weights
        for of_table, counts in zip(cells, wanted, strict=True):
            now = np.bincount(of_table, weights, minlength=counts.size)
            factors = np.divide(counts, now, out=np.ones_like(counts), where=now > 0)
            weights = weights * factors[of_table]
        weights = np.minimum(weights * (rows / max(weights.sum(), 1e-9)), MOST)
        if np.abs(weights - before).max() < CONVERGED:
            break
    # Noisy tables of a few records may contradict each other and leave no record.
    weights = weights if weights.any() else np.ones(rows)
    # Sorted by cell, systematic sampling takes nearly the expected number from each.
    order = np.lexsort(cells)
    ends = np.cumsum(weights[order]) * (rows / weights.sum())
    chosen = np.searchsorted(ends, np.arange(rows) + generator.random(), side="right")
    return np.asarray(generator.permutation(order[np.minimum(chosen, rows - 1)]))


def _wanted(rows: int, target: Target) -> Floats:
    """Non-negative counts (size,) between the counts of the records and the noisy counts.

    They are computed from the one-way margins up to the whole table: if records fit the margins well and
    only the whole table badly, the noise of all its cells would spoil the margins.
    """
    shape = target.margins[-1].table.shape
    own = np.bincount(
        np.ravel_multi_index(tuple(target.codes.T), shape), minlength=math.prod(shape)
    )
    wanted, known = own.reshape(shape).astype(np.float64), dict[tuple[int, ...], Floats]()
    for margin in target.margins:
        others = tuple(axis for axis in range(len(shape)) if axis not in margin.attributes)
        better = _shrunken(wanted.sum(others), margin.table, margin.variance)
        known[others] = np.expand_dims(better * (rows / max(better.sum(), 1e-9)), others)
        for _ in range(SWEEPS):
            for summed, counts in known.items():
                now = wanted.sum(summed, keepdims=True)
                wanted *= np.divide(counts, now, out=np.ones_like(counts), where=now > 0)
    return wanted.ravel()


def _shrunken(own: Floats, table: Floats, variance: Floats) -> Floats:
    """Noisy counts, shrunken towards the records' own as far as noise explains the difference."""
    # The table may have counts in cells without records.
    model = np.maximum(own, 0.5)
    evidence = log_likelihoods(model, table, variance)
    evidence[:, 1:] -= DOUBT
    return np.maximum(shrink(model, table, variance, evidence), 0.0)
