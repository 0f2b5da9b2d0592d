"""Histograms, dense and thresholded: laws, stated errors, and the records that follow."""

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from dpcore.accounting.budget import Budget
from dpcore.domain.axes import Bins, Categories, Grid
from dpcore.domain.domain import Domain
from dpcore.line.privacy_line import perturb
from dpcore.line.statistic import Exact, Noisy
from dpcore.releases.counts.histogram import LARGEST_DENSE, Histogram
from dpcore.releases.counts.thresholded import ThresholdedHistogram
from dpcore.sampling.discrete_laplace import discrete_laplace
from dpcore.sampling.source import SeededSource
from tests.chance import FALSE_ALARM
from tests.dpcore.releases.contract import opened, repeated_draws, tally_of

DOMAIN = Domain(
    (Categories("place", ("a", "b"), nullable=True), Bins("age", (0.0, 5.0, 20.0), integer=True))
)
RECORDS = np.repeat(np.arange(6), (0, 1, 40, 300, 9, 50))
ROWS = len(RECORDS)
HALF = Budget.of("0.5")
WIDE = Domain((Grid("x", 0.0, 1.0, 2**30), Grid("y", 0.0, 1.0, 2**30)))


def histogram(
    kind: type[Histogram] = Histogram, share: Budget = HALF, domain: Domain = DOMAIN
) -> Histogram:
    return kind("people", domain, ROWS, share)


def statement(release: Histogram, start: str) -> float:
    (found,) = [s.value for s in release.expected_error() if s.quantity.startswith(start)]
    return found


def test_the_threshold_is_two_over_alpha_times_the_logarithm_of_the_cells():
    release = histogram(ThresholdedHistogram, Budget.of("1"), WIDE)
    assert release.mechanism.threshold == math.ceil(2 * 60 * math.log(2))
    # pi = a^(tau + 1) / (1 + a), about 1 / (2 p): half a false cell at most.
    a, tau = math.exp(-0.5), release.mechanism.threshold
    assert statement(release, "expected number of") == pytest.approx(
        2**60 * a ** (tau + 1) / (1 + a)
    )
    assert statement(release, "expected number of") <= 0.5
    assert statement(release, "threshold below") == tau


def known(occupied: int | None, rows: int, cells: int = 65_536) -> ThresholdedHistogram:
    domain = Domain((Grid("x", 0.0, 1.0, cells),))
    return ThresholdedHistogram("h", domain, rows, Budget.of("1"), occupied=occupied)


def test_a_known_number_of_occupied_cells_lowers_the_threshold_where_that_lowers_the_bound():
    general = math.ceil(2 * math.log(65_536))
    assert known(3152, 200_000).mechanism.threshold == math.ceil(2 * math.log(65_536 / 3152))
    assert statement(known(3152, 200_000), "expected L1 error of the table") <= (
        3 * 3152 * (math.log(65_536 / 3152) + 1)  # Hall 2012, section 2.4.1
    )
    for occupied, rows in ((3152, 21_574), (1, 10**6), (None, 10**6)):
        assert known(occupied, rows).mechanism.threshold == general
    with pytest.raises(ValueError, match="occupied: must lie between 1 and the number of cells"):
        known(65_537, 10)


@pytest.mark.parametrize("occupied", [1, 3, 7])
def test_the_bound_of_a_table_holds_for_every_table_and_some_come_near(occupied):
    """All tables of 20 records in 40 cells, from the law of the noise cell by cell."""
    mechanism = known(occupied, 20, 40).mechanism
    noise = np.arange(-200, 201)
    chances = np.exp(-np.abs(noise) / 2) * math.tanh(1 / 4)
    empty = float((noise * chances)[noise > mechanism.threshold].sum())
    errors = []
    for counts in partitions(20, occupied):
        found = (40 - occupied) * empty
        for count in counts:
            kept = count + noise > mechanism.threshold
            found += float((np.where(kept, np.abs(noise), count) * chances).sum())
        errors.append(found)
    bound = mechanism.table_error(20, occupied)
    assert 0.3 * bound < max(errors) <= bound


def partitions(total: int, parts: int, least: int = 1) -> Iterator[tuple[int, ...]]:
    if parts == 1:
        yield (total,)
        return
    for first in range(least, total // parts + 1):
        for rest in partitions(total - first, parts - 1, first):
            yield (first, *rest)


def test_the_thresholded_law_is_that_of_noise_on_every_cell_and_then_a_threshold():
    """Each cell alone, and the number of cells published: chi-square at level 1e-4."""
    release = histogram(ThresholdedHistogram, Budget.of("1"))
    tally, mechanism, times = tally_of(DOMAIN, RECORDS), release.mechanism, 20_000
    fast = repeated_draws(release, tally, times, SeededSource(1))
    noise = discrete_laplace(mechanism.scale, 6 * times, SeededSource(2)).reshape(times, 6)
    naive = (opened(release, tally) + noise).astype(float)
    naive[naive <= mechanism.threshold] = np.nan

    def codes(draws: np.ndarray) -> np.ndarray:
        return np.nan_to_num(np.clip(draws, None, 400), nan=-1).astype(int)

    for cell in range(6):
        assert same_law(codes(fast[:, cell]), codes(naive[:, cell])) > FALSE_ALARM
    published = [np.count_nonzero(~np.isnan(draws), axis=1) for draws in (fast, naive)]
    assert same_law(*published) > FALSE_ALARM
    shifted = np.where(np.isnan(naive), naive, naive + 1)
    assert same_law(codes(fast[:, 3]), codes(shifted[:, 3])) < 1e-9
    # Empty and occupied cells both came out, and both were dropped.
    assert 0.03 < np.mean(~np.isnan(fast[:, 0])) < 0.2
    assert 0.03 < np.mean(np.isnan(fast[:, 4])) < 0.5


def test_the_order_of_published_cells_does_not_tell_which_are_occupied():
    domain = Domain((Grid("x", 0.0, 1.0, 1000),))
    release = ThresholdedHistogram("people", domain, 3000, HALF)
    low = replace(release.mechanism, threshold=2)
    tally = tally_of(domain, np.repeat(np.arange(0, 1000, 5), 15))
    noisy = perturb(release.statistic(tally), low, HALF, SeededSource(1))
    assert np.all(np.diff(noisy.cells) > 0)
    occupied = noisy.cells % 5 == 0
    assert 100 < np.count_nonzero(occupied) < np.count_nonzero(~occupied)
    assert np.all(noisy.values > 2)
    assert noisy.values[occupied].mean() > 12 > 9 > noisy.values[~occupied].mean()


def same_law(one: np.ndarray, other: np.ndarray) -> float:
    """The p-value of a two-sample chi-square test, rare values pooled with their neighbours."""
    cuts = np.unique(np.quantile(np.r_[one, other], np.linspace(0, 1, 30), method="lower"))
    table = [np.bincount(np.searchsorted(cuts, x), minlength=len(cuts) + 1) for x in (one, other)]
    return float(stats.chi2_contingency(np.array(table)[:, np.sum(table, axis=0) > 20]).pvalue)


def test_a_published_row_says_what_the_cell_is():
    noisy = Noisy(np.array([3, -1, 40, 310, 10, 45]))
    (table,) = histogram().publish(noisy).tables
    place = table.columns["place"]
    assert place.tolist() == ["a", "a", "b", "b", None, None]
    assert table.columns["age_from"].tolist() == [0, 5] * 3
    assert table.columns["age_to"].tolist() == [4, 19] * 3
    assert table.columns["noisy_count"].tolist() == noisy.values.tolist()
    assert table.columns["count"].sum() == ROWS
    assert table.columns["count"].min() >= 0
    np.testing.assert_allclose(table.columns["count"], np.maximum(noisy.values, 0), atol=3)


def test_a_thresholded_table_holds_the_cells_that_were_drawn_and_no_others():
    release = histogram(ThresholdedHistogram, domain=WIDE)
    cells = np.array([5, 2**59, 2**60 - 1])
    published = release.publish(Noisy(np.array([90, 91, 200]), cells))
    columns = published.tables[0].columns
    assert columns["count"].tolist() == [90, 91, 200]
    assert columns["x_from"][2] == 1 - 2.0**-30
    assert columns["y_from"].tolist() == [5 * 2.0**-30, 0, 1 - 2.0**-30]
    assert published.facts["cells_published"] == 3
    assert published.facts["sum_of_counts"] == 381
    assert published.facts["threshold"] == release.mechanism.threshold


def test_records_have_the_published_histogram_scaled_to_their_number():
    release, noisy = histogram(), Noisy(np.array([3, -1, 40, 310, 10, 45]))
    counts = release.counts(noisy)
    for rows in (ROWS, 2 * ROWS):
        domain, codes = release.sample(noisy, rows)
        assert domain == DOMAIN
        sampled = np.bincount(DOMAIN.pack(codes), minlength=6)
        np.testing.assert_array_equal(sampled, counts * rows // ROWS)
    _, codes = release.sample(noisy, 7)
    assert len(codes) == 7
    assert len(release.sample(noisy, 0)[1]) == 0


def test_a_domain_too_large_to_print_is_refused_with_a_way_out():
    large = Domain((Grid("x", 0.0, 1.0, LARGEST_DENSE + 1),))
    with pytest.raises(ValueError, match="thresholded-laplace"):
        _ = histogram(domain=large).mechanism
    assert histogram(ThresholdedHistogram, domain=large).mechanism.size == LARGEST_DENSE + 1


def test_a_histogram_of_an_empty_or_single_cell_is_drawn_like_any_other():
    one = Domain((Categories("only", ("cell",)),))
    for kind in (Histogram, ThresholdedHistogram):
        release = kind("one", one, 1, HALF)
        for records in ((0,), ()):
            exact = release.statistic(tally_of(one, np.array(records, dtype=np.int64)))
            assert isinstance(exact, Exact)
            for seed in range(10):
                noisy = perturb(exact, release.mechanism, HALF, SeededSource(seed))
                (table,) = release.publish(noisy).tables
                assert len(table.columns["only"]) == len(noisy.values) <= 1
                assert len(release.sample(noisy, 3)[1]) == 3
