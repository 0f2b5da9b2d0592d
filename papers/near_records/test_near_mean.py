"""A value near the mean by the exponential mechanism: its stated distance."""

import math

import numpy as np
import pytest

from dpcore.accounting.budget import Budget
from dpcore.domain.axes import Grid
from dpcore.domain.domain import Domain
from papers.near_records.release import NearMean
from tests.chance import most_failures
from tests.dpcore.releases.contract import drawn

LINE = Domain((Grid("x", 0.0, 8.0, 8),))


def release(rows: int, alpha: str = "1") -> NearMean:
    return NearMean("n", LINE, rows, Budget.of(alpha))


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
