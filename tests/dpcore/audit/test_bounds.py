import math

import numpy as np
import pytest
from scipy import stats

from dpcore.audit.bounds import (
    loss_estimate,
    loss_lower_bound,
    probability_lower,
    probability_upper,
)


@pytest.mark.parametrize(("hits", "draws"), [(0, 10), (1, 10), (10, 10), (37, 1000), (3, 10**6)])
@pytest.mark.parametrize("error", [0.1, 1e-3, 1e-9])
def test_limits_are_those_of_the_exact_binomial_test(hits: int, draws: int, error: float):
    lower = stats.binomtest(hits, draws, alternative="greater").proportion_ci(1 - error, "exact")
    upper = stats.binomtest(hits, draws, alternative="less").proportion_ci(1 - error, "exact")
    assert probability_lower(hits, draws, error) == pytest.approx(lower.low, rel=1e-6)
    assert probability_upper(hits, draws, error) == pytest.approx(upper.high, rel=1e-6)


@pytest.mark.parametrize(
    ("p", "other", "beta"), [(0.5, 0.2, 0.0), (0.02, 0.01, 0), (0.3, 0.1, 0.05)]
)
def test_the_bound_is_above_the_truth_with_at_most_the_stated_chance(p, other, beta):
    """Computed exactly, by summing over all counts."""
    draws, error = 60, 0.1
    hits = np.arange(draws + 1)
    bounds = loss_lower_bound(hits[:, None], draws, hits, draws, beta=beta, error=error)
    weights = np.outer(stats.binom.pmf(hits, draws, p), stats.binom.pmf(hits, draws, other))
    truth = math.log((p - beta) / other)
    assert weights[bounds > truth].sum() <= error


def test_events_that_say_nothing_have_an_infinitely_low_bound():
    assert loss_lower_bound(0, 100, 50, 100, error=0.05) == -math.inf
    assert loss_lower_bound(10, 100, 0, 100, beta=0.2, error=0.05) == -math.inf
    assert loss_lower_bound(100, 100, 100, 100, error=0.05) < 0


def test_an_event_that_never_happens_on_the_other_side_has_a_finite_bound():
    bound = float(loss_lower_bound(1000, 1000, 0, 1000, error=0.05))
    assert bound == pytest.approx(
        math.log(0.025 ** (1 / 1000) / (1 - 0.025 ** (1 / 1000))), rel=1e-6
    )


def test_the_estimate_is_the_ratio_of_shares():
    assert loss_estimate(60, 100, 20, 100, 0.1) == pytest.approx(math.log(2.5))
    assert loss_estimate(1, 100, 0, 100, 0.0) == math.inf
