"""Give records cells that obey the order rules, if the groups of their cells do.

Two groups of cells are in order if some of their cells are.  The cells that a record gets inside its
groups may still break the order.  So such cells are drawn again, column by column, among the cells that
leave room for the other columns.  As rules hold along chains too, every partial draw can be completed.

>>> rule = Rule((), (), (Order(0, 1, (0, 1, 2, 3)),))
>>> codes = np.array([[3, 2], [0, 1]])
>>> halves = np.array([0, 0, 1, 1])
>>> groups = {column: (halves[codes[:, column]], halves) for column in (0, 1)}
>>> mended = cells_in_order(codes, groups, [rule], np.random.default_rng(7))
>>> mended[0].tolist() in ([2, 2], [2, 3], [3, 3]), mended[1].tolist()
(True, [0, 1])
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from dpcore.arrays import Booleans, Integers
from dpcore.post.records.rules import Order, Rule, breaks_rules


def cells_in_order(
    codes: Integers,
    groups: Mapping[int, tuple[Integers, Integers]],
    rules: Sequence[Rule],
    generator: np.random.Generator,
) -> Integers:
    """The records (rows, k), with cells changed where they break an order.

    ``groups``: for each column, the group that each record (rows,) must stay in, and the group of each
    cell (size,); the groups obey the rules.  Cells of other columns stay.  A new cell is drawn in
    proportion to the number of records that have it.
    """
    ordering = [rule for rule in rules if rule.orders]
    wrong = np.flatnonzero(breaks_rules(codes, ordering))
    if not len(wrong):
        return codes
    found = codes.copy()
    orders = [(o, rule.applies(codes[wrong].T)) for rule in ordering for o in rule.orders]
    columns = sorted({c for order, _ in orders for c in (order.low, order.high)})
    first, last = ({c: codes[wrong, c].copy() for c in columns} for _ in range(2))
    for c in {*columns} & {*groups}:
        of_records, of_cells = groups[c]
        first[c] = np.searchsorted(of_cells, of_records[wrong], side="left")
        last[c] = np.searchsorted(of_cells, of_records[wrong], side="right") - 1
    for c in columns:
        # Bounds are final after as many rounds as there are columns (``differences``).
        for _ in columns:
            for order, applies in orders:
                _narrow(first, last, order, applies)
        drawn = drawn_between(codes[:, c], first[c], last[c], generator)
        kept = (first[c] <= codes[wrong, c]) & (codes[wrong, c] <= last[c])
        found[wrong, c] = first[c] = last[c] = np.where(kept, codes[wrong, c], drawn)
    return found


def drawn_between(
    held: Integers, first: Integers, last: Integers, generator: np.random.Generator
) -> Integers:
    """A cell from ``first`` to ``last`` (k,) for each of k records, in proportion to how many records
    of ``held`` (rows,) have it."""
    most = int(last.max(initial=0))
    below = np.r_[0.0, np.cumsum(np.bincount(held, minlength=most + 1) + 1e-9)]
    start, end = below[first], below[last + 1]
    at = start + generator.random(len(first)) * (end - start)
    return np.asarray(np.clip(np.searchsorted(below, at, side="right") - 1, first, last))


def _narrow(
    first: dict[int, Integers], last: dict[int, Integers], order: Order, applies: Booleans
) -> None:
    """In either column, keep only cells that are in order with some cell of the other column."""
    low, high = order.low, order.high
    least = np.asarray(order.least)
    first[high] = np.maximum(first[high], np.where(applies, least[first[low]], 0))
    # Null, the last cell, has 0 here, but searchsorted needs numbers that ascend.
    most = np.searchsorted(np.maximum.accumulate(least), last[high], side="right") - 1
    last[low] = np.where(applies, np.minimum(last[low], np.maximum(most, first[low])), last[low])
