"""Limits of statistical tests are passed by chance as often as they say, and are not far out."""

import pytest
from scipy import stats

from tests.chance import FALSE_ALARM, most_failures


@pytest.mark.parametrize(("trials", "chance"), [(20, 0.1), (200, 0.05), (4000, 0.3)])
def test_a_limit_is_the_nearest_with_the_stated_rate(trials: int, chance: float):
    failures = stats.binom(trials, chance)
    limit = most_failures(trials, chance)
    assert failures.sf(limit) <= FALSE_ALARM < failures.sf(limit - 1)
