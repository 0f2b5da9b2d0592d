"""Sums of products of scores: how far a record moves them, and what they count."""

from itertools import combinations, product

import numpy as np
import pytest

from dpcore.mechanisms.quadrants import (
    UNIT,
    even_scores,
    half_scores,
    product_norms,
    sums_of_products,
)

ALL = {columns: tuple(combinations(range(columns), 2)) for columns in (2, 3, 4)}
SOME = {"a chain": ((0, 1), (1, 2), (2, 3)), "two apart": ((0, 1), (2, 3))}


def products(pairs: tuple[tuple[int, ...], ...], columns: int) -> np.ndarray:
    """The products (records, pairs) of records of all kinds: with low, middle, high and no values."""
    scores = np.array([*product((-UNIT, -3, 0, UNIT), repeat=columns)])
    return np.stack([scores[:, one] * scores[:, other] for one, other in pairs], axis=1)


@pytest.mark.parametrize("pairs", [*ALL.values(), *SOME.values()], ids=str)
def test_no_record_moves_the_sums_by_more_than_stated(pairs):
    rows = products(pairs, 1 + max(map(max, pairs)))
    moved, present = product_norms(pairs)
    assert (rows**2).sum(axis=1).max() == present
    farthest = max(int(((rows - row) ** 2).sum(axis=1).max()) for row in rows)
    # With three columns no two records have opposite products in all pairs.
    assert farthest <= moved
    assert farthest == moved or len(pairs) == 3


def test_halves_are_divided_next_to_the_median():
    assert half_scores(np.array([1, 2, 9, 3, 1, 50]), 5).tolist() == [-8, -8, -8, 8, 8, 0]
    assert half_scores(np.array([90, 4, 3]), 3).tolist() == [-8, 8, 8]
    assert half_scores(np.array([3, 4, 90]), 3).tolist() == [-8, -8, 8]
    assert half_scores(np.array([-3, -4, -9, -1]), 3).tolist() == [-8, 8, 8, 0]
    assert half_scores(np.array([5, 2]), 1).tolist() == [0, 0]


def test_scores_of_a_narrow_column_know_nothing_of_its_counts():
    assert even_scores(6, 5).tolist() == [-8, -4, 0, 4, 8, 0]


def test_sums_are_exact():
    scores = [np.array([8, -8, 0]), None, np.array([8, 8, -8])]
    counts = np.array([2**40, 3, 5])
    assert sums_of_products([(0, 2)], scores, counts).tolist() == [64 * 2**40 - 64 * 3]
    assert sums_of_products([], scores, counts).tolist() == []
