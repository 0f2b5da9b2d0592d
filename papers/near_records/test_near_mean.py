"""A value near the mean by the exponential mechanism: exact loss, stated distance."""

import math
from itertools import combinations_with_replacement

import numpy as np
import pytest
from scipy import stats

from dpcore.accounting.budget import Budget
from dpcore.domain.axes import Grid
from dpcore.domain.domain import Domain
from dpcore.sampling.source import SeededSource
from papers.near_records.release import NearMean
from tests.chance import FALSE_ALARM, most_failures
from tests.dpcore.releases.contract import drawn, exact_vector

LINE = Domain((Grid("x", 0.0, 8.0, 8),))


def release(rows: int, alpha: str = "1") -> NearMean:
    return NearMean("n", LINE, rows, Budget.of(alpha))


def log_law(near_mean: NearMean, records: tuple[int, ...]) -> np.ndarray:
    """The logarithms of the chances of all cells, from the definition."""
    logs = -exact_vector(near_mean, records) / float(near_mean.mechanism.scale)
    return logs - np.logaddexp.reduce(logs)


def test_over_all_neighbours_and_outcomes_the_loss_is_alpha_at_most():
    worst, near_mean = 0.0, release(4)
    for shared in combinations_with_replacement(range(8), 3):
        laws = np.array([log_law(near_mean, (*shared, cell)) for cell in range(8)])
        worst = max(worst, float((laws.max(axis=0) - laws.min(axis=0)).max()))
    assert 0.5 < worst <= 1


def test_draws_follow_the_definition_and_not_two_thirds_nor_three_halves_of_the_scale():
    near_mean, records = release(6, "20"), (0, 1, 1, 5, 6, 7)
    exact = exact_vector(near_mean, records)
    cells = near_mean.mechanism.repeat(exact, None, 20_000, SeededSource(2)).values
    hits = np.bincount(cells, minlength=8)

    def fits(factor: float) -> float:
        weights = np.exp(-exact / (float(near_mean.mechanism.scale) * factor))
        return float(stats.chisquare(hits, weights / weights.sum() * len(cells)).pvalue)

    assert fits(1) > FALSE_ALARM
    assert fits(2 / 3) < 1e-9
    assert fits(3 / 2) < 1e-9


@pytest.mark.parametrize("records", [[0] * 40, [3] * 20 + [4] * 20, [0] * 20 + [7] * 20])
def test_the_mean_is_within_the_stated_distance(records):
    near_mean, mean = release(40, "2"), np.mean(records) + 0.5
    missed = 0
    for seed in range(200):
        noisy = drawn(near_mean, records, seed)
        (table,) = near_mean.publish(noisy).tables
        (cell,) = np.flatnonzero(table.columns["drawn"])
        missed += abs(cell + 0.5 - mean) > near_mean.distance
    assert missed <= most_failures(200, 0.1)
    assert near_mean.distance < 8 * 6 / 80 + 0.5
    domain, codes = near_mean.sample(noisy, 5)
    assert domain == LINE
    assert set(codes.ravel().tolist()) == {cell}


def test_more_draws_are_refused():
    with pytest.raises(ValueError, match="draws: must be 1 with mean-exponential"):
        NearMean("n", LINE, 4, Budget.of("1"), 2)
    assert math.isfinite(release(1).distance)
