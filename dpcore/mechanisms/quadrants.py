"""Sums of products of scores, which show how two numbers are related with little noise.

A table of nine by nine groups shows a correlation as a sum over 81 noisy cells.  One number shows it
too: how many more records lie in the quadrants where both numbers are low or both are high than in the
other two.  It costs as much as one table, and has as much noise as one cell.

    score of a group   -UNIT below the boundary nearest to the median, UNIT above, 0 for null
    of a narrow column evenly spaced from -UNIT to UNIT, as nothing is known of its median
    result             for each pair of columns, the sum over records of the product of both scores

Claim.  Let q pairs of d columns have scores of at most u = UNIT in absolute value.  One record's
products have a squared L2 norm of at most q u^4, and the products of two records differ by at most min(4
q, d^2) u^4 in this norm.

Proof.  Each product is at most u^2, and two differ by at most 2 u^2.  For the d^2, count all d (d - 1)/2
pairs of these columns, which adds squares.  With scores s and t of the two records, the difference has
the squared norm |p|^2 + |p'|^2 - 2 p p', where p p' = ((s t)^2 - sum s_i^2 t_i^2)/2 >= -d u^4/2, and
|p|^2 and |p'|^2 are at most d (d - 1)/2 u^4.

Source.  N. Blomqvist, Annals of Mathematical Statistics 21 (1950), 593-600 (the measure, not its noise).

>>> half_scores(np.array([50, 20, 30, 7]), values=3).tolist()
[-8, 8, 8, 0]
>>> even_scores(4, values=3).tolist()
[-8, 0, 8, 0]
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import chain

import numpy as np

from dpcore.arrays import Integers

Pair = tuple[int, ...]
"""The positions of two columns."""

UNIT = 8
"""The largest score.  With whole scores of one digit, noise can be exact."""


def half_scores(counts: Integers, values: int) -> Integers:
    """The scores (groups,) of groups with these noisy counts; only the first ``values`` are not null."""
    if values < 2:  # if one group has all values, there is no relation to show
        return np.zeros(len(counts), dtype=np.int64)
    below = np.cumsum(np.maximum(counts[:values], 0))
    split = 1 + int(np.abs(2 * below[:-1] - below[-1]).argmin())
    scores = np.zeros(len(counts), dtype=np.int64)
    scores[:split], scores[split:values] = -UNIT, UNIT
    return scores


def even_scores(size: int, values: int) -> Integers:
    """The scores (size,) of the cells of a narrow column, of which the first ``values`` are not null."""
    scores = np.zeros(size, dtype=np.int64)
    scores[:values] = np.rint(np.linspace(-UNIT, UNIT, values))
    return scores


def product_norms(pairs: Collection[Pair]) -> tuple[int, int]:
    """The bounds of the claim: squared L2 norms of two records' difference, and of one record."""
    columns = len(set(chain.from_iterable(pairs)))
    return min(4 * len(pairs), columns**2) * UNIT**4, len(pairs) * UNIT**4


def sums_of_products(
    pairs: Sequence[Pair], scores: Sequence[Integers | None], counts: Integers
) -> Integers:
    """The sums (pairs,), exact.

    ``scores``: for each column the scores of the occupied cells (k,), None if no pair has the column;
    ``counts``: the records (k,) in each, private.
    """
    found = np.empty(len(pairs), dtype=np.int64)
    for place, (one, other) in enumerate(pairs):
        first, second = scores[one], scores[other]
        assert first is not None
        assert second is not None
        found[place] = np.sum(first * second * counts)
    return found
