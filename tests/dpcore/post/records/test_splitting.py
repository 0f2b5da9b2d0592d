"""Records of groups get cells of their groups, in proportion to noisy counts."""

import numpy as np
import pytest

from dpcore.post.records.splitting import declining, split_groups, tails_whole


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


def test_few_people_of_large_amounts_do_not_multiply_the_mean():
    generator = np.random.default_rng(4)
    amounts = 1.25 ** np.arange(60)
    exact = np.rint(20_000 * 0.8 ** np.arange(60)).astype(np.int64)
    groups = np.minimum(np.arange(60), 12)
    column = np.repeat(groups, exact)
    mean = (amounts @ exact) / exact.sum()
    for error in (30.0, 300.0):
        noisy = exact + generator.normal(0, error, 60)
        cells = split_groups(column, groups, noisy, error**2, generator, np.zeros(60, int))
        assert abs(amounts[cells].mean() / mean - 1) < 0.35  # of equal counts, 30 times too large
    alike = split_groups(column, groups, noisy, error**2, generator)
    assert amounts[alike].mean() > 3 * mean


def test_a_value_that_many_people_have_stands_out_of_its_group():
    generator = np.random.default_rng(5)
    exact = np.zeros(100, dtype=np.int64)
    exact[:60], exact[80] = 100, 200
    groups = np.repeat([0, 1, 2], [30, 30, 40])
    noisy = exact + generator.normal(0, 10, 100)
    column = np.repeat(groups, exact)
    made = np.bincount(
        split_groups(column, groups, noisy, 100.0, generator, np.zeros(100, int)), minlength=100
    )
    assert abs(made[80] - 200) < 50


def test_a_value_that_nearly_all_of_a_group_have_is_kept():
    generator, groups, exact = np.random.default_rng(6), np.zeros(25, np.int64), np.zeros(25)
    exact[24] = 380
    for _ in range(100):
        noisy = exact + generator.normal(0, 20, 25)
        column = np.zeros(380 + round(generator.normal(0, 8)), dtype=np.int64)
        made = np.bincount(split_groups(column, groups, noisy, 400.0, generator), minlength=25)
        assert made[24] > 200


def test_a_value_that_many_have_is_not_where_a_tail_begins():
    """Hours a week: as many work 41 to 80 hours as 1 to 39, and a third works 40."""
    groups = np.repeat([0, 1, 2], [40, 1, 40])
    likely = declining(groups, np.array([1200.0, 2203.0, 794.0]), 81)
    assert likely[41] < 3 * likely[80]
    assert likely[41:].sum() == pytest.approx(794)


def test_a_tail_is_one_group_with_the_next_and_a_dense_end_is_not():
    few, more = np.repeat([0, 1, 2, 3, 4], 4), np.repeat(np.arange(10), 2)
    column = np.repeat(np.arange(10), [90, 90, 50, 50, 30, 30, 10, 10, 2, 1])
    assert tails_whole(few, more, 20, column).tolist() == [0, 1, 2, 3, 4, 5, 6, 6, 8, 8]
    assert tails_whole(few, more, 0, column).tolist() == [*range(10)]  # categories have no ends


def test_records_of_higher_rank_get_later_cells_of_their_group():
    generator = np.random.default_rng(7)
    groups, exact = np.repeat([0, 1], [10, 40]), np.repeat([100, 10], [10, 40])
    column, ranks = np.repeat(groups, exact), generator.random(1400)
    cells = split_groups(column, groups, exact.astype(float), 1.0, generator, ranks=ranks)
    assert np.array_equal(groups[cells], column)
    for group in (0, 1):
        inside = column == group
        assert (np.diff(cells[inside][np.argsort(ranks[inside])]) >= 0).all()


def test_the_group_that_most_are_in_is_not_spread_over_empty_ones_beside_it():
    """Heights in noise that shows four groups and nothing inside them."""
    generator = np.random.default_rng(8)
    groups, held = np.repeat([0, 1, 2, 3], [53, 22, 24, 32]), np.array([166, 2210, 1305, 0])
    column, noisy = np.repeat(np.arange(4), held), generator.normal(28, 120, 131)
    made = split_groups(column, groups, noisy, 120.0**2, generator, np.zeros(131, int), 180.0)
    assert abs(np.mean(groups[made] == 1) - 2210 / len(column)) < 0.05


@pytest.mark.parametrize("by_width", [True, False])
def test_bins_that_become_wider_hold_records_by_their_width_where_the_counts_say_so(by_width: bool):
    generator = np.random.default_rng(8)
    edges = np.unique(np.rint(1.06 ** np.arange(160)))
    numbers = np.diff(edges)
    exact = np.rint(6000 * numbers / numbers.sum()) if by_width else np.full(len(numbers), 30)
    exact, below = exact.astype(np.int64), np.searchsorted(edges, 1000)
    exact[-1], groups = 200, np.append(np.zeros(len(numbers) - 1, dtype=np.int64), 1)
    column, kinds = np.repeat(groups, exact), np.zeros(len(numbers), dtype=np.int64)
    error = 50.0 if by_width else 20.0
    noisy = exact + generator.normal(0, error, len(exact))

    def wrong(numbers: np.ndarray | None) -> int:
        """Records too many or too few in the narrow bins."""
        cells = split_groups(column, groups, noisy, error**2, generator, kinds, 0.0, None, numbers)
        return abs(int(np.count_nonzero(cells < below)) - int(exact[:below].sum()))

    if by_width:
        assert wrong(numbers) < 0.5 * wrong(None)
    else:
        assert wrong(numbers) <= wrong(None) + 1
