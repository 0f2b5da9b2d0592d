"""Limits of statistical tests are passed by chance as often as they say, and are not far out."""

import numpy as np
import pytest
from scipy import stats

from tests.chance import FALSE_ALARM, mean_squares, most_failures, reach, shares


@pytest.mark.parametrize(("trials", "chance"), [(20, 0.1), (200, 0.05), (4000, 0.3)])
def test_a_limit_is_the_nearest_with_the_stated_rate(trials: int, chance: float):
    failures = stats.binom(trials, chance)
    limit = most_failures(trials, chance)
    assert failures.sf(limit) <= FALSE_ALARM < failures.sf(limit - 1)
    least, most = shares(trials, chance)
    assert most == pytest.approx(limit / trials)
    assert failures.cdf(round(least * trials) - 1) <= FALSE_ALARM < failures.cdf(least * trials)


def test_mean_squares_have_the_stated_rate_and_show_errors_stated_as_half():
    least, most = mean_squares(25)
    assert stats.chi2(25).cdf(25 * least) == pytest.approx(FALSE_ALARM)
    assert stats.chi2(25).sf(25 * most) == pytest.approx(FALSE_ALARM)
    assert most < 4


@pytest.mark.slow
def test_the_mean_of_runs_is_within_reach_and_not_within_a_third():
    means = np.random.default_rng(1).normal(3, 2, (2000, 100))
    away = np.array([abs(runs.mean() - 3) / reach(runs) for runs in means])
    assert np.all(away < 1)
    assert np.mean(away > 1 / 3) == pytest.approx(2 * stats.norm.sf(5.33 / 3), abs=0.04)
