"""Counts from the top down add up, and are the nearest ones within each group."""

import numpy as np
import pytest

from dpcore.domain.axes import Categories
from dpcore.domain.domain import Domain
from dpcore.domain.regions import Regions
from dpcore.post.tables.apportion import whole, whole_counts

PLACES = Domain(tuple(Categories(name, tuple(range(6))) for name in "abc"))


def regions(generator: np.random.Generator) -> Regions:
    return Regions(PLACES, np.sort(generator.choice(PLACES.size, 90, replace=False)))


@pytest.mark.parametrize("top", [0, 1, 2, 3])
@pytest.mark.parametrize("holes", [False, True])
def test_counts_are_whole_agree_and_stay_near(top: int, holes: bool):
    generator = np.random.default_rng(4)
    tree = regions(generator)
    possible = generator.random((tree.sizes[-1], 3)) < 0.6 if holes else None
    if possible is not None:
        possible[:, 1] = True
    estimates = [generator.normal(30, 20, (size, 3)) for size in tree.sizes]
    totals = generator.integers(0, 400, tree.sizes[top])
    counts = whole_counts(tree, estimates, totals, top, possible)
    assert counts[top].sum(axis=1).tolist() == totals.tolist()
    for level in range(1, tree.depth + 1):
        np.testing.assert_array_equal(tree.gathered(level, counts[level]), counts[level - 1])
    assert all(count.min() >= 0 and count.dtype == np.int64 for count in counts)
    if possible is not None:
        assert not counts[-1][~possible].any()


def test_rounding_moves_each_number_by_less_than_one():
    generator = np.random.default_rng(5)
    starts = np.array([0, 7, 8, 400])
    shares = generator.dirichlet(np.full(1000, 0.3), 2).T * 3000
    totals = np.rint(np.add.reduceat(shares, starts, axis=0)).astype(np.int64)
    shares *= np.repeat(
        totals / np.add.reduceat(shares, starts, axis=0), np.diff(starts, append=1000), axis=0
    )
    counts = whole(shares, starts, totals)
    np.testing.assert_array_equal(np.add.reduceat(counts, starts, axis=0), totals)
    assert np.abs(counts - shares).max() < 1


def test_counts_beyond_the_digits_of_a_double_still_add_up():
    total = 2**60 + 12345
    shares = np.full((7, 1), total / 7)
    assert whole(shares, np.array([0]), np.array([[total]])).sum() == total
