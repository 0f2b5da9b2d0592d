"""What noisy counts say of long tails: near the truth where it is known, more where it is not."""

import numpy as np
import pytest

from dpcore.releases.models.tails import FINE, ScoreTail, least_error

ENDS = 2.0 ** (np.arange(11) / 2)
ROWS = 100_000
SURVIVAL = {
    "pareto": lambda at: at**-2.5,
    "exponential": lambda at: np.exp(1 - at),
    "normal": lambda at: np.exp((1 - at**2) / 2),
}
FAR = 1000.0


def counted(survival, noise: float, seed: int = 0, longest: float = FAR) -> ScoreTail:
    beyond = 0.3 * ROWS * np.r_[1 / 0.3, survival(ENDS), 0.0]
    random = np.random.default_rng(seed)
    counts = -np.diff(beyond) + noise * random.normal(size=len(ENDS) + 1)
    return ScoreTail.of(ENDS, counts[None], np.array([noise]), np.array([longest]))


@pytest.mark.parametrize("law", SURVIVAL)
def test_what_is_cut_follows_from_exact_counts(law):
    tail = counted(SURVIVAL[law], 1e-3)
    for cut in (2.0, 4.0):
        at = np.arange(cut, FAR, 0.001)
        true = 0.3 * ROWS * SURVIVAL[law](at).sum() * 0.001
        found = tail.excess[0, np.argmin(np.abs(tail.lengths - cut))]
        assert 0.7 * true < found < 1.5 * true + 0.001 * ROWS  # bins are wide


@pytest.mark.slow
@pytest.mark.parametrize("law", SURVIVAL)
def test_noise_makes_what_may_be_cut_larger_and_seldom_too_small(law):
    place = 2 * FINE
    exact = counted(SURVIVAL[law], 1e-3).excess[0, place]
    noisy = [counted(SURVIVAL[law], 300.0, seed).excess[0, place] for seed in range(100)]
    assert np.median(noisy) > 0.7 * exact
    assert np.mean(np.array(noisy) > 0.5 * exact) > 0.85


def test_many_scores_just_below_the_tail_do_not_make_it_shorter():
    """As where most of the response is a little below its mean: bins of the tail itself decide."""
    beyond = 0.05 * ROWS * np.r_[1, SURVIVAL["pareto"](ENDS)[1:], 0.0]
    counts = np.r_[0.6 * ROWS, -np.diff(beyond)]
    counts[1] += 0.35 * ROWS
    tail = ScoreTail.of(ENDS, counts[None], np.array([1.0]), np.array([FAR]))
    at = np.arange(4.0, FAR, 0.001)
    true = 0.05 * ROWS * SURVIVAL["pareto"](at).sum() * 0.001
    assert 0.7 * true < tail.excess[0, 2 * FINE] < 1.5 * true


def test_nothing_is_longer_than_the_bounds_allow():
    tail = counted(SURVIVAL["pareto"], 30.0, longest=10.0)
    assert np.all(tail.excess[0, tail.lengths >= 10] == 0)
    assert np.all(np.diff(tail.excess[0]) <= 1e-9)


def test_squares_lack_what_lies_between_two_cuts():
    tail = counted(SURVIVAL["pareto"], 1e-3)
    place = np.argmin(np.abs(tail.lengths - 8))
    at = np.arange(3.0, 8.0, 0.001)
    true = 0.3 * ROWS * np.sum(2 * at * SURVIVAL["pareto"](at)) * 0.001
    assert tail.lacking(3.0)[0, place] == pytest.approx(true, rel=0.3)
    assert np.all(tail.lacking(3.0)[0, tail.lengths <= 3] == 0)


def test_two_estimates_are_weighed_so_that_the_mean_square_of_their_error_is_least():
    weights = np.linspace(0, 1, 10_001)
    for variance, bias, other, its_bias in [
        (1, 0, 3, 0),
        (4, 2, 9, 3),
        (1, 0, 1, 50),
        (9, 5, 1, 0),
    ]:
        mean = weights**2 * variance + (1 - weights) ** 2 * other
        mean += (weights * bias + (1 - weights) * its_bias) ** 2
        stated = least_error(*map(np.asarray, map(float, (variance, bias, other, its_bias))))
        assert stated == pytest.approx(weights[np.argmin(mean)], abs=1e-4)
