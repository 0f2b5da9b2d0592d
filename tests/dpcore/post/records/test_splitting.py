"""Records of groups get cells of their groups, in proportion to noisy counts."""

import numpy as np

from dpcore.post.records.splitting import split_groups


def test_all_records_get_cells_of_their_group_near_the_counts():
    generator = np.random.default_rng(1)
    exact = generator.integers(0, 400, 30)
    groups = np.repeat(np.arange(6), 5)
    column = np.repeat(groups, exact)
    noisy = exact + generator.normal(0, 5, 30)
    cells = split_groups(column, groups, noisy, 25.0, generator)
    assert np.array_equal(groups[cells], column)
    assert np.abs(np.bincount(cells, minlength=30) - exact).max() < 25


def test_counts_that_are_mostly_noise_are_shrunken_towards_equal_ones():
    generator = np.random.default_rng(2)
    column, groups = np.zeros(10_000, dtype=np.int64), np.zeros(100, dtype=np.int64)
    noisy = 100 + generator.normal(0, 500, 100)
    counts = np.bincount(split_groups(column, groups, noisy, 500.0**2, generator), minlength=100)
    assert np.abs(counts - 100).mean() < 60  # as drawn, and not negative, 150


def test_groups_of_one_cell_of_no_record_and_no_records_at_all():
    generator = np.random.default_rng(3)
    groups = np.array([0, 1, 1])
    assert split_groups(
        np.zeros(4, np.int64), groups, np.zeros(3), 1.0, generator
    ).tolist() == 4 * [0]
    assert len(split_groups(np.zeros(0, np.int64), groups, np.zeros(3), 1.0, generator)) == 0
