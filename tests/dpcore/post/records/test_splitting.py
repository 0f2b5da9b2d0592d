"""Records of groups get cells of their groups, in proportion to noisy counts."""

import numpy as np
import pytest
from scipy.stats import lognorm

from dpcore.post.records.splitting import CellAmounts, Tail, counts_of_tail, split_groups, tails


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
        ends = tails(groups, np.bincount(column).astype(float), np.zeros(60, int), 1.0)
        cells = split_groups(column, groups, noisy, error**2, generator, ends)
        assert abs(amounts[cells].mean() / mean - 1) < 0.35  # of equal counts, 30 times too large
    alike = split_groups(column, groups, noisy, error**2, generator)
    assert amounts[alike].mean() > 3 * mean


def test_the_largest_amounts_are_about_as_large_as_they_are():
    """Of lognormal amounts in cells that grow by a tenth, of which the last sixty are one group."""
    generator, amounts, cells = np.random.default_rng(10), 1.1 ** np.arange(100), np.arange(100)
    exact = np.rint(2000 * np.exp(-(((cells - 10) / 20) ** 2))).astype(np.int64)
    groups = np.minimum(cells // 5, 8)
    column = np.repeat(groups, exact)
    (tail,) = tails(groups, np.bincount(column).astype(float), np.zeros(100, int), 1.0)[:1]
    assert 0.05 < tail.slope < 0.3
    noisy = exact + generator.normal(0, 1000, 100)
    made = split_groups(column, groups, noisy, 1000.0**2, generator, [tail])
    true = np.repeat(amounts, exact)
    assert abs(amounts[made].mean() / true.mean() - 1) < 0.1
    assert 1 / 2 < amounts[made].max() / true.max() < 2


@pytest.mark.parametrize("last", [0.05, 0.1, 0.2])
@pytest.mark.parametrize("shape", ["log-normal", "geometric", "normal"])
def test_numbers_reach_about_as_far_as_they_do_whatever_their_shape(shape: str, last: float):
    """Days from 1 to 365 in cells of their own; the last group holds a share of all, hidden in noise."""
    days = np.arange(1.0, 366.0)
    exponent = {
        "log-normal": (np.log(days) - 2) ** 2 / (2 * 0.8**2) + np.log(days),
        "geometric": days / 10,
        "normal": (days - 180) ** 2 / (2 * 40**2),
    }[shape]
    likely = np.exp(-exponent)
    exact = np.rint(50_000 * likely / likely.sum()).astype(np.int64)
    share = exact.cumsum() / exact.sum()
    groups = np.minimum(np.floor(share / last), np.floor(1 / last + 1e-9) - 1).astype(np.int64)
    groups = np.unique(groups, return_inverse=True)[1]
    column, true = np.repeat(groups, exact), np.repeat(days, exact)
    held, amounts = np.bincount(column).astype(float), CellAmounts(days, np.ones(365))
    ends = tails(groups, held, np.zeros(365, int), 1.0, amounts)
    generator = np.random.default_rng(11)
    noisy = exact + generator.normal(0, 2000, 365)
    made = split_groups(column, groups, noisy, 2000.0**2, generator, ends)
    assert 0.8 < days[made].std() / true.std() < 1.25


@pytest.mark.parametrize("first", [0.0, 1.0, 2.0**53 - 100, -30.0])
def test_numbers_of_any_size_have_tails(first: float):
    """Near 2^53 logarithms hardly differ, and negative numbers have none."""
    numbers, groups = first + np.arange(60.0), np.minimum(np.arange(60) // 5, 8)
    exact = np.rint(500 * 0.9 ** np.arange(60)).astype(np.int64)
    column = np.repeat(groups, exact)
    held = np.bincount(column).astype(float)
    ends = tails(groups, held, np.zeros(60, int), 1.0, CellAmounts(numbers, np.ones(60)))
    with np.errstate(divide="raise", invalid="raise"):
        made = split_groups(
            column, groups, exact.astype(float), 1e4, np.random.default_rng(12), ends
        )
    assert abs(made.mean() / np.repeat(np.arange(60), exact).mean() - 1) < 0.1


def test_large_losses_thin_out_like_equally_large_gains():
    amounts = np.geomspace(1.0, 1e6, 40)
    widths = np.diff(amounts, append=1.2e6)
    groups, kinds = np.minimum(np.arange(40) // 4, 8), np.zeros(40, np.int64)
    held = np.array([10.0, 40, 160, 400, 400, 160, 40, 10, 3])
    above = tails(groups, held, kinds, 1.0, CellAmounts(amounts, widths))
    (gains,) = (t for t in above if t.cells[-1] == 39)
    mirrored = CellAmounts(-amounts[::-1], widths[::-1])
    ends = tails(8 - groups[::-1], held[::-1], kinds, 1.0, mirrored)
    (losses,) = (t for t in ends if t.cells[-1] == 0)
    assert losses.cells.tolist() == (39 - gains.cells).tolist()
    assert losses.steps.tolist() == gains.steps.tolist()
    assert (losses.density, losses.slope) == pytest.approx((gains.density, gains.slope))


def test_a_value_that_many_people_have_stands_out_of_its_group():
    generator = np.random.default_rng(5)
    exact = np.zeros(100, dtype=np.int64)
    exact[:60], exact[80] = 100, 200
    groups = np.repeat([0, 1, 2], [30, 30, 40])
    noisy = exact + generator.normal(0, 10, 100)
    column = np.repeat(groups, exact)
    ends = tails(groups, np.bincount(column).astype(float), np.zeros(100, int), 1.0)
    made = np.bincount(split_groups(column, groups, noisy, 100.0, generator, ends), minlength=100)
    assert len(ends) == 1
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
    groups, held = np.repeat([0, 1, 2], [40, 1, 40]), np.array([1200.0, 2203.0, 794.0])
    (tail,) = tails(groups, held, np.zeros(81, dtype=np.int64), 1.0)
    assert tail.cells.tolist() == list(range(41, 81))
    assert tail.density == 1200 / 40


@pytest.mark.parametrize(
    ("sizes", "held", "error"),
    [
        ([1, 1, 5, 1, 5, 1, 487, 1], [11, 17, 162, 40, 36, 11, 2654, 4289], 300.0),
        ([420, 25, 2, 26, 18, 1, 9, 1], [2271, 29, 159, 194, 68, 53, 67, 4463], 60.0),
    ],
)
def test_the_bulk_of_a_column_is_no_tail_of_what_lies_beside_it(sizes, held, error):
    """Income as a percentage of the poverty line, which three in five are far above: 501."""
    generator, groups = np.random.default_rng(7), np.repeat(np.arange(len(sizes)), sizes)
    ends = tails(groups, np.array(held, dtype=float), np.zeros(len(groups), np.int64), error)
    assert all(tail.bulk for tail in ends)
    counts = np.array(held)[groups] / np.array(sizes)[groups]
    column = np.repeat(np.arange(len(sizes)), held)
    noisy = counts + generator.normal(0, error / 3, len(groups))
    made = split_groups(column, groups, noisy, error**2 / 9, generator, ends)
    assert abs(made.mean() / np.average(np.arange(len(groups)), weights=counts) - 1) < 0.05


@pytest.mark.parametrize("last", [0.1, 0.2, 0.24, 0.26, 0.3, 0.5])
def test_most_of_the_last_group_may_be_near_the_others_however_much_it_holds(last):
    """Visits: a third of all went seven times or more, hardly any of them more than thirty times."""
    generator, visits = np.random.default_rng(8), np.arange(366)
    exact = np.rint(4000 * 0.15 * np.exp(-visits / 6.5)).astype(np.int64)
    first = int(np.flatnonzero(exact.cumsum() > (1 - last) * exact.sum())[0])
    groups = np.minimum(visits, first)
    column, true = np.repeat(groups, exact), np.repeat(visits, exact)
    held = np.bincount(column).astype(float)
    for _ in range(5):
        noisy = exact + generator.normal(0, 20, 366)
        ends = tails(groups, held, np.zeros(366, np.int64), 20.0)
        made = split_groups(column, groups, noisy, 400.0, generator, ends)
        assert abs(made.mean() - true.mean()) < 0.3 * true.std()


@pytest.mark.slow
def test_the_mean_of_a_log_normal_tail_hardly_depends_on_the_noise():
    """Medical spending: cells from 250 to 100,000 hold a tenth of all people, most below 5,000."""
    edges = np.concatenate([np.arange(10, 250, 20), np.geomspace(250, 1e5, 66)])
    amounts = np.exp(np.random.default_rng(5).normal(3.6, 1.6, 5000))
    exact, _ = np.histogram(amounts, edges)
    groups = np.append(np.arange(12), np.full(65, 12))[: len(exact)]
    held = np.bincount(groups, weights=exact)
    middles = (edges[1:] + edges[:-1]) / 2
    amounts = CellAmounts(middles, np.diff(edges))
    ends = tails(groups, held, np.zeros(len(exact), dtype=np.int64), 20.0, amounts)
    tail = next(tail for tail in ends if len(tail.cells) > 12)
    means = []
    for draw in range(20):
        generator = np.random.default_rng(draw)
        noisy = exact + generator.normal(0, 20, len(exact))
        column = np.full(int(held[12]), 12)
        cells = split_groups(column, groups, noisy, 400.0, generator, [tail], amounts=amounts)
        means.append(middles[cells].mean())
    true = np.average(middles[12:], weights=exact[12:])
    assert 0.7 * true < np.mean(means) < 1.3 * true
    assert np.std(means) < 0.14 * true  # twice that with steep declines and power laws alone


def test_a_tail_beside_groups_that_noise_made_too_few_ends_where_it_does():
    """It declined so slowly, to reach its total, that a column's mean was a dozen times too large."""
    edges = np.r_[np.arange(1000, 5000, 250), np.geomspace(5000, 1e6, 60)]
    widths, middles = np.diff(edges), (edges[1:] + edges[:-1]) / 2
    exact = 1500 * np.diff(lognorm.cdf(edges, 0.7, scale=2000))
    found = []
    for seed in range(6):
        noisy = exact + np.random.default_rng(seed).normal(0, 47, len(exact))
        density = 0.4 * exact[0] / widths[0]
        logs = np.log(middles / 1000)
        tail = Tail(np.arange(len(exact)), widths, middles - 1000, logs, density, 1.0, bulk=False)
        counts = counts_of_tail(tail, noisy * exact.sum() / noisy.sum(), 47.0**2)
        found.append(counts @ middles / counts.sum())
    assert np.median(found) < 1.5 * (exact @ middles / exact.sum())


def test_the_shape_of_a_wide_group_is_seen_in_sums_of_its_cells():
    """Ages in tenths of years: noise of 20 hides the six people in each cell, and not their shape."""
    generator, cells = np.random.default_rng(4), np.arange(640)
    exact = np.where(cells < 300, 5, 0)
    groups, column = np.zeros(640, dtype=np.int64), np.zeros(int(exact.sum()), dtype=np.int64)
    noisy = exact + generator.normal(0, 20, 640)
    amounts = CellAmounts(np.arange(640.0), np.ones(640))
    made = split_groups(column, groups, noisy, 400.0, generator, amounts=amounts)
    assert (made < 300).mean() > 0.75  # each count alone says next to nothing: 0.47


def test_a_tail_is_what_holds_something_together_and_thins_out():
    groups, kinds = np.repeat(np.arange(10), 2), np.zeros(20, dtype=np.int64)
    held = np.array([90, 90, 50, 50, 30, 30, 10, 10, 2, 1], dtype=float)
    for error, length in ((0.1, 2), (2.25, 8), (7.5, 12)):
        (tail,) = tails(groups, held, kinds, error)
        assert tail.cells.tolist() == list(range(20 - length, 20))
    assert tail.density == 25  # the lower one of two windows that hold something
    (mirrored,) = tails(groups, held[::-1].copy(), kinds, 7.5)
    assert mirrored.cells.tolist() == list(range(11, -1, -1))
    assert tails(groups, held, kinds[:0], 3.0) == []  # categories have no ends
    apart = np.repeat([0, 1], [18, 2])  # a special value at the end is no tail of the others
    (before,) = tails(groups, held, apart, 0.1)
    assert before.cells.tolist() == [16, 17]


def test_noise_of_three_standard_errors_in_an_empty_group_is_no_tail_of_its_own():
    held = np.array([7000.0, 900.0, 400.0, 23.0, 18.0, 77.0])
    groups = np.repeat(np.arange(6), [1, 7, 132, 6, 11, 144])
    (tail,) = tails(groups, held, np.zeros(301, dtype=np.int64), 25.0)
    assert tail.cells[0] == 8
    assert tail.cells[-1] == 300


def test_where_nearly_all_have_none_what_noise_makes_up_declines_from_none():
    """Of up to twenty loans, 56 of 9,850 people are late with one, 3 with two."""
    exact, groups = np.array([9791, 56, 3, *[0] * 18], dtype=float), np.array([0, 1, *[2] * 19])
    loans = CellAmounts(np.arange(21.0), np.ones(21))
    for draw in range(10):
        generator = np.random.default_rng(draw)
        noisy = exact + generator.normal(0, 12, 21)
        held = np.maximum(np.bincount(groups, exact) + generator.normal(0, 12, 3), 0.0)
        ends = tails(groups, held, np.zeros(21, dtype=np.int64), 12.0, loans)
        column = np.repeat(np.arange(3), held.astype(int))
        made = split_groups(column, groups, noisy, 144.0, generator, ends, amounts=loans)
        assert made.mean() < 0.03  # of a true mean of .006; with equal counts up to .08


def test_amounts_that_noise_hides_are_mostly_small():
    """50 of 10,000 people owe something, and the bound is 500,000."""
    edges = np.r_[0.0, 1.0, np.geomspace(10, 5e5, 47)]
    middles = (edges[1:] + edges[:-1]) / 2
    middles[0], groups = 0.0, np.r_[0, np.repeat(np.arange(1, 4), [16, 16, 15])]
    amounts = CellAmounts(middles, np.diff(edges))
    for apart in (False, True):
        kinds, means = np.r_[int(apart), np.zeros(47)].astype(np.int64), []
        for draw in range(20):
            generator = np.random.default_rng(draw)
            noisy = np.r_[9950.0, np.ones(47)] + generator.normal(0, 15, 48)
            of_groups = np.array([9950.0, 16, 16, 15]) + generator.normal(0, 15, 4)
            held = np.maximum(of_groups, 0.0)
            (tail,) = tails(groups, held, kinds, 15.0, amounts)
            assert tail.cells.tolist() == list(range(1, 48))
            column = np.repeat(np.arange(4), held.astype(int))
            of = groups, noisy, 225.0, generator, [tail]
            means.append(middles[split_groups(column, *of, amounts=amounts)].mean())
        assert np.mean(means) < 250  # with equal counts in a group 1,000


def test_both_ends_of_a_column_thin_out_and_never_share_a_group():
    groups, kinds = np.arange(12), np.zeros(12, dtype=np.int64)
    held = np.array([1, 5, 20, 60, 90, 200, 200, 90, 60, 20, 5, 1], dtype=float)
    upper, lower = tails(groups, held, kinds, 3.75)
    assert upper.cells.tolist() == [9, 10, 11]
    assert lower.cells.tolist() == [2, 1, 0]
    for error in np.geomspace(1, 1000, 30):
        ends = tails(groups, held, kinds, float(error))
        taken = [cell for tail in ends for cell in tail.cells.tolist()]
        assert len(taken) == len({*taken})


@pytest.mark.parametrize("error", [0.0, 1.0, 1e6])
@pytest.mark.parametrize("held", [[0, 1, 1, 0, 0], [0] * 5, [0, 0, 0, 0, 3], [1, 0, 0, 0, 0]])
def test_ends_that_hold_hardly_anything_are_no_obstacle(error, held):
    generator, groups = np.random.default_rng(9), np.repeat(np.arange(5), [1, 30, 30, 2, 1])
    column = np.repeat(np.arange(5), held)
    edges = np.r_[0.0, 1.0, np.geomspace(10, 5e5, 63)]
    amounts = CellAmounts(np.r_[0.0, (edges[1:] + edges[:-1])[1:] / 2], np.diff(edges))
    for numbers in (None, amounts):
        ends = tails(groups, np.array(held, dtype=float), np.zeros(64, np.int64), error, numbers)
        made = split_groups(column, groups, np.zeros(64), 1.0, generator, ends)
        assert np.bincount(groups[made], minlength=5).sum() == len(column)


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
    ends = tails(groups, held.astype(float), np.zeros(131, int), 180.0)
    made = split_groups(column, groups, noisy, 120.0**2, generator, ends)
    assert abs(np.mean(groups[made] == 1) - 2210 / len(column)) < 0.05


@pytest.mark.parametrize("by_width", [True, False])
def test_bins_that_become_wider_hold_records_by_their_width_where_the_counts_say_so(by_width: bool):
    generator = np.random.default_rng(8)
    edges = np.unique(np.rint(1.06 ** np.arange(160)))
    numbers = np.diff(edges)
    amounts = CellAmounts((edges[1:] + edges[:-1]) / 2, numbers)
    exact = np.rint(6000 * numbers / numbers.sum()) if by_width else np.full(len(numbers), 30)
    exact, below = exact.astype(np.int64), np.searchsorted(edges, 1000)
    exact[-1], groups = 200, np.append(np.zeros(len(numbers) - 1, dtype=np.int64), 1)
    column = np.repeat(groups, exact)
    error = 50.0 if by_width else 20.0
    noisy = exact + generator.normal(0, error, len(exact))

    def wrong(amounts: CellAmounts | None) -> int:
        """Records too many or too few in the narrow bins."""
        cells = split_groups(column, groups, noisy, error**2, generator, amounts=amounts)
        return abs(int(np.count_nonzero(cells < below)) - int(exact[:below].sum()))

    if by_width:
        assert wrong(amounts) < 0.5 * wrong(None)
    else:
        assert wrong(amounts) < 0.5 * error * below**0.5  # half of the noise in the sum of these


def test_cells_of_single_numbers_have_no_width_to_go_by():
    column, groups = np.zeros(30, dtype=np.int64), np.zeros(2, dtype=np.int64)
    with np.errstate(all="raise"):
        of = column, groups, np.array([20.0, 10.0]), 1.0, np.random.default_rng(0)
        cells = split_groups(*of, amounts=CellAmounts(np.zeros(2), np.zeros(2)))
    assert np.bincount(cells).tolist() == [20, 10]


def test_a_tail_may_start_at_the_smallest_amount_after_equal_densities_of_losses():
    """Both groups before it lie below zero, where a logarithmic scale has one place for all."""
    held = np.array([400.0, 400.0, 400.0, 900.0, 3.0, 2.0, 0.0, 1.0])
    kinds, middles = (
        np.array([0, 0, 0, 1, 0, 0, 0, 0]),
        np.array([-20, -10, -1, 5, 8, 15, 25, 35.0]),
    )
    with np.errstate(divide="raise", invalid="raise"):
        (tail, *_) = tails(np.arange(8), held, kinds, 2.0, CellAmounts(middles, np.full(8, 10.0)))
        counts = counts_of_tail(tail, held[tail.cells], 4.0)
    assert tail.slope == 0
    assert counts.sum() == pytest.approx(6)
