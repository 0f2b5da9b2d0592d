"""Records that fit noisy margins, for any number of rows in the same time.

Many rows are fitted as fewer records, each with a weight of 4, 16, 64, ... rows.  Multiples of a large
weight are coarse, so the fit is refined: every fourth record is split into four of a quarter of its
weight, which are fitted to the margins minus the counts of the other records.  This is repeated down to
weight one.

    4,000,000 rows = 250,000 records of weight 16
                   = 187,500 of weight 16, and 250,000 of weight 4
                   = 187,500 of weight 16, 187,500 of weight 4, and 250,000 of weight 1

Every step starts from the previous fit and never makes it worse (``fit_records``).

>>> noisy = [Margin((0, 1), np.array([[31e6, 8e6], [-1.0, 61e6]]), 4.0)]
>>> fitted = fit_weighted(RecordColumns((2, 2)), noisy, 10**8, np.random.default_rng(7))
>>> int(fitted.weights.sum()), len(fitted.codes) < 2**21
(100000000, True)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from dpcore.arrays import Integers
from dpcore.post.records.columns import RecordColumns
from dpcore.post.records.fit import fit_records
from dpcore.post.records.trends import follow_trends
from dpcore.post.tables.margins import Margin, margins_of
from dpcore.progress import report

LARGEST_FIT = 2**18
"""The most records that are fitted at once."""

FACTOR = 4
"""How many records a record is split into, and the inverse of the share of records that are split."""


class WeightedRecords(NamedTuple):
    """Weighted records: ``codes`` (m, k), and ``weights`` (m,), the number of rows that each
    represents."""

    codes: Integers
    weights: Integers

    def margins(self, sizes: Sequence[int], sets: Iterable[Sequence[int]]) -> list[Integers]:
        """The count tables of the rows, one for each tuple of attributes."""
        return margins_of(self.codes, sizes, sets, self.weights)

    def records(self) -> Integers:
        """The codes (rows, k) of all rows."""
        return np.repeat(self.codes, self.weights, axis=0)

    def blocks(self, number: int) -> Iterator[Integers]:
        """The codes (rows, k) in ``number`` blocks; consecutive rows go to consecutive blocks."""
        ends = np.cumsum(self.weights)
        for block in range(number):
            before, after = ((i - 1 - block) // number for i in (ends - self.weights, ends))
            yield np.repeat(self.codes, after - before, axis=0)


def fit_weighted(
    columns: RecordColumns,
    margins: Sequence[Margin],
    rows: int,
    generator: np.random.Generator,
    *,
    total: float | None = None,
    tolerance: float = 0.03,
) -> WeightedRecords:
    """Fit records like ``fit_records``, in time and memory that hardly grow beyond ``LARGEST_FIT``
    rows.

    Up to that many rows it is ``fit_records``, with all weights one.  If columns are in order, their
    correlations are followed too (``trends``).
    """
    scale = rows / (rows if total is None else total) if rows else 1.0
    targets: Sequence[Margin] = [
        Margin(margin.attributes, margin.table * scale, margin.variance * scale**2)
        for margin in margins
    ]
    weight = 1
    while rows > weight * LARGEST_FIT:
        weight *= FACTOR

    def fitted_to(targets: Sequence[Margin], start: Integers | None = None) -> Integers:
        return fit_records(
            columns,
            targets,
            -(-rows // weight),
            generator,
            total=rows,
            tolerance=tolerance,
            start=start,
            progress=partial(report, f"records fitted{'' if start is None else ' again'}, sweeps"),
        )

    codes = fitted_to(targets)
    if rows and columns.in_order:
        targets, codes = follow_trends(columns, targets, codes, fitted_to)
    weights = np.full(len(codes), weight)
    weights[:1] -= weights.sum() - rows  # the number of records was rounded up
    fitted = WeightedRecords(codes, weights)
    while weight > 1:
        fitted = _refined(columns, targets, fitted, weight, generator, tolerance)
        weight //= FACTOR
    return fitted


def _refined(
    columns: RecordColumns,
    targets: Sequence[Margin],
    fitted: WeightedRecords,
    weight: int,
    generator: np.random.Generator,
    tolerance: float,
) -> WeightedRecords:
    """Split some of the records of one weight into lighter ones, and fit those again."""
    heavy = np.flatnonzero(fitted.weights == weight)
    split = generator.choice(heavy, -(-len(heavy) // FACTOR), replace=False)
    kept = np.delete(np.arange(len(fitted.codes)), split)
    left = WeightedRecords(fitted.codes[kept], fitted.weights[kept])
    counted = left.margins(columns.sizes, [target.attributes for target in targets])
    remaining = [
        Margin(target.attributes, target.table - counts, target.variance)
        for target, counts in zip(targets, counted, strict=True)
    ]
    start = np.repeat(fitted.codes[split], FACTOR, axis=0)
    total = len(split) * weight
    codes = fit_records(
        columns,
        remaining,
        len(start),
        generator,
        total=total,
        tolerance=tolerance,
        start=start,
        progress=partial(report, f"records of weight {weight // FACTOR} fitted, sweeps"),
    )
    return WeightedRecords(
        np.concatenate([left.codes, codes]),
        np.concatenate([left.weights, np.full(len(codes), weight // FACTOR)]),
    )
