import json
import math
from fractions import Fraction

import numpy as np
import pytest

from dpcore.accounting.budget import Budget
from dpcore.audit import Simulated, audit_mechanism
from dpcore.audit.learn import linear
from dpcore.audit.outcomes import Outcome, choose_outcomes
from dpcore.audit.scores import Extreme, Linear, Projection, Scored, Slice, SumOfScores
from dpcore.line.statistic import Statistic
from dpcore.mechanisms import DiscreteGaussian, DiscreteLaplace, ThresholdedLaplace
from dpcore.mechanisms.laplace import log_cdf
from dpcore.sampling.source import SeededSource

GENERATOR = np.random.default_rng(1)


def test_absent_numbers_do_not_spoil_a_score():
    outputs = np.array([[np.nan, 2.0], [np.nan, np.nan], [3.0, -np.inf]])
    assert Extreme(largest=True)(outputs).tolist() == [2, -np.inf, 3]
    assert Extreme(largest=False)(outputs).tolist() == [2, np.inf, -np.inf]
    assert Linear(np.ones(2), np.array([-5.0, -7.0]), "")(outputs).tolist() == [-3, -12, -4]


def test_the_stated_ratio_is_the_log_ratio_of_probabilities():
    near, far = Statistic(np.array([0, 5])), Statistic(np.array([1, 5]))
    two = Fraction(2)
    laplace = DiscreteLaplace(2, two, two).log_ratio(near, far)
    assert laplace(np.array([[-3, 9], [4, 0], [0, 5]])).tolist() == [0.5, -0.5, 0.5]
    gaussian = DiscreteGaussian(2, Fraction(1), Fraction(4)).log_ratio(near, far)
    assert gaussian(np.array([[3, 9]])).tolist() == [(2.0**2 - 3.0**2) / 8]
    absent = ThresholdedLaplace(2, two, two, threshold=3).log_ratio(near, far)
    expected = log_cdf(np.array([3.0]), 2.0) - log_cdf(np.array([2.0]), 2.0)
    np.testing.assert_allclose(absent(np.array([[np.nan, np.nan]])), expected, atol=1e-9)


def test_a_direction_without_noise_is_found():
    """The difference of two numbers with the same noise gives everything away."""
    noise = GENERATOR.laplace(size=(2, 2000, 1))
    near, far = (
        np.concatenate([z, z + x], axis=1) for z, x in zip(noise, (0.0, 0.01), strict=True)
    )
    scores = {str(score): score for score in linear(near, far, [0, 1])}
    whitened = scores["whitened difference of means"]
    assert min(whitened(near)) > max(whitened(far)) or max(whitened(near)) < min(whitened(far))


def test_events_of_all_kinds_agree_with_their_definition():
    near, far = (np.rint(x + GENERATOR.laplace(0, 5, (4000, 2))) for x in (0, 5))
    choice = choose_outcomes(near, far)
    assert 2 <= len(choice.outcomes) <= 4
    assert {outcome.favoured for outcome in choice.outcomes} == {0, 1}
    for outcome in choice.outcomes:
        values = outcome.score(near)
        inside = values >= outcome.cut if outcome.above else ~(values >= outcome.cut)
        np.testing.assert_array_equal(outcome.holds(near), inside)
        shares = [outcome.holds(side).mean() for side in (near, far)]
        assert shares[outcome.favoured] > shares[1 - outcome.favoured]


def test_scores_of_the_same_outputs_are_computed_once():
    """As parts of a sum as well: the ratio of a mechanism of many rounds takes longer than its draws."""
    computed = []

    class Counting:
        def __call__(self, outputs):
            computed.append(self)
            return outputs[:, 0].astype(float)

    parts = Slice(Counting(), 0, 1), Slice(Counting(), 1, 2)
    outputs = np.array([[1, 2], [3, 5]])
    scored = Scored(outputs)
    for score in (SumOfScores(parts), *parts, SumOfScores(parts)):
        np.testing.assert_array_equal(scored.by(score), score(outputs))
    alone = 2 + 1 + 1 + 2  # those that were called here to compare with
    assert len(computed) == alone + len(parts)


def test_an_absent_score_lies_below_every_cut():
    outputs = np.array([[np.nan], [1.0]])
    above, below = (Outcome(Projection(0), 0.0, side, 0) for side in (True, False))
    assert above.holds(outputs).tolist() == [False, True]
    assert below.holds(outputs).tolist() == [True, False]


def test_a_mechanism_that_says_nothing_has_a_bound_of_zero():
    silent = Simulated("silent", (0, 1), lambda x, size, generator: np.zeros(size, dtype=int))
    found = audit_mechanism([silent], Budget.of("0"), 500, SeededSource(1))
    assert found.passed
    assert found.lower_bound == 0


def test_a_mechanism_that_says_everything_is_bounded_by_the_draws():
    loud = Simulated("loud", (0, 1), lambda x, size, generator: np.full(size, x))
    found = audit_mechanism([loud], Budget.of("5"), 10_000, SeededSource(1))
    assert not found.passed
    assert 7 < found.lower_bound < math.log(10_000)
    told = json.loads(json.dumps(found.to_dict()))
    assert told == found.to_dict()
    assert told["estimate"] is None
    assert told["claim"] == {"alpha": "5", "beta": "0", "gamma": "0"}
    assert "FAILED: loud" in str(found)


def test_beta_is_forgiven():
    """An event of probability 0.01 that gives everything away is within beta = 0.02."""

    def run(x, size, generator):
        return np.where(generator.random(size) < 0.01, x + 1, 0)

    leak = Simulated("leak", (0, 1), run)
    assert audit_mechanism([leak], Budget.of("0.5", "0.02"), 20_000, SeededSource(1)).passed
    assert not audit_mechanism([leak], Budget.of("0.5", "0.005"), 20_000, SeededSource(1)).passed


@pytest.mark.parametrize(("draws", "level"), [(0, 0.95), (100, 1.0), (100, 0.0)])
def test_an_audit_without_draws_or_level_is_refused(draws: int, level: float):
    silent = Simulated("silent", (0, 1), lambda x, size, generator: np.zeros(size))
    with pytest.raises(ValueError, match="draws must be positive"):
        audit_mechanism([silent], Budget.of("1"), draws, SeededSource(1), level=level)
    with pytest.raises(ValueError, match="no pair"):
        audit_mechanism([], Budget.of("1"), 100, SeededSource(1))
