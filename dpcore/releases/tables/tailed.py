"""The tails of columns of count tables, and tables without the records that noise makes up there.

Most cells at the end of a long column are empty.  Their noise is negative as often as positive, but
records follow only positive counts: fifteen empty cells up to 20,000 dollars get a hundred records, and
the mean is far too large.  The total of all these cells is unbiased.  So in the tail counts decline from
the neighbouring cells, as in groups (``post.records.splitting``), and add up to this total:

    bill up to   1,000   2,000   4,000   5,000   6,000   8,000   10,000   12,000   14,000
    noisy          410     200      51      -9      -1      -1        2       -2        9
    records        410     200      45       2       1       1        0        0        0
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from dpcore.arrays import Floats, Integers
from dpcore.domain.axes import Axis, Categories, in_order
from dpcore.domain.cell_values import CellNumbers
from dpcore.post.records.splitting import CellAmounts, Tail, counts_of_tail, tails
from dpcore.post.tables.margins import Margin

Ends = Sequence[tuple[Integers, Floats]]
"""The cells (k,) of each tail of a column, and the records (k,) in them."""


def amounts_of(axis: Axis) -> CellAmounts | None:
    """The numbers in the cells of a column of numbers."""
    if isinstance(axis, Categories):
        return None
    cells = CellNumbers.of(axis, np.arange(axis.size - axis.nullable))
    return CellAmounts((cells.first + cells.last) / 2, cells.size)


def tails_of(
    axis: Axis, groups: Integers, held: Floats, kinds: Integers, error: float
) -> list[Tail]:
    """The tails of a column; ``groups``, ``kinds`` (size,): of its cells; ``held``, ``error``: as for
    ``tails``."""
    values = axis.size - axis.nullable if in_order(axis) else 0
    return tails(groups, held, kinds[:values], error, amounts_of(axis))


def declining_ends(axis: Axis, noisy: Margin, kinds: Integers) -> Ends:
    """The tails of a column in its noisy one-way table, and the records in them."""
    counts, variance = noisy.table, noisy.variance
    found = (
        tails_of(axis, np.arange(axis.size), counts, kinds, variance**0.5) if variance > 0 else []
    )
    return [
        (tail.cells, counts_of_tail(tail, counts[tail.cells], variance))
        for tail in found
        # A single cell is its own total, and the bulk of a column is known from its counts.
        if len(tail.cells) > 1 and not tail.bulk
    ]


def with_declining_ends(table: Margin, ends: Mapping[int, Ends], total: float) -> Margin:
    """The table with these records in the tails of its columns, and ``total`` records in all.

    Records that a cell gains follow the distribution of the other columns in all cells.
    """
    counts = table.table.copy()
    for place, attribute in enumerate(table.attributes):
        for cells, records in ends.get(attribute, ()):
            by_cell = np.moveaxis(counts, place, 0)
            shape = (len(cells), *[1] * (counts.ndim - 1))
            before = np.maximum(by_cell[cells].reshape(len(cells), -1).sum(axis=1), 0.0)
            # Cells that lose records keep their relation to the other columns.
            kept = np.minimum(before, records)
            usual = np.maximum(by_cell, 0.0).sum(axis=0)
            by_cell[cells] *= (kept / np.where(before > 0.0, before, np.inf)).reshape(shape)
            by_cell[cells] += (records - kept).reshape(shape) * usual / max(usual.sum(), 1e-300)
            others = np.delete(np.arange(len(by_cell)), cells)
            left = by_cell[others].sum()
            if left > 0.0:
                by_cell[others] *= max(total - records.sum(), 0.0) / left
    return table._replace(table=counts)
