"""The rule for implicates: its moments, and its coverage over surveys."""

import numpy as np
import pytest
from scipy.stats import t

from dpcore.estimates.combine import combine
from dpcore.post.records.implicates import centred_redraws, fit_implicates, widened
from dpcore.post.tables.margins import Margin, margins_of

PAIRS = ((0, 1), (0, 2), (1, 2))
STDDEV = 12.0


def test_the_total_and_degrees_are_rubin_s():
    estimates, variances = np.array([[1.0], [2.0], [6.0]]), np.array([[0.5], [1.0], [1.5]])
    found = combine(estimates, variances)
    between = 7.0  # (4 + 1 + 9) / 2
    assert found.estimate[0] == 3
    assert found.standard_error[0] ** 2 == pytest.approx(1 + 4 / 3 * between)
    assert found.degrees[0] == pytest.approx(2 * (1 + 1 / (4 / 3 * between)) ** 2)
    low, high = found.interval(0.9)
    width = t.ppf(0.95, found.degrees[0]) * found.standard_error[0]
    assert (low[0], high[0]) == pytest.approx((3 - width, 3 + width))


def test_implicates_that_agree_have_the_survey_s_error():
    found = combine(np.ones((5, 2)), np.full((5, 2), 4.0))
    assert found.standard_error.tolist() == [2, 2]
    assert found.interval()[1] == pytest.approx([1 + 2 * 1.96] * 2, rel=1e-3)


@pytest.mark.parametrize(
    ("estimates", "variances"),
    [
        ([[1.0]], [[1.0]]),
        ([1.0, 2.0], [1.0]),
        ([1.0, 2.0], [1.0, -1.0]),
        ([1.0, 2.0], [1.0, np.nan]),
    ],
)
def test_what_cannot_be_combined_is_refused(estimates, variances):
    with pytest.raises(ValueError, match="variances"):
        combine(estimates, variances)


def test_centred_redraws_leave_the_mean_alone_and_give_the_noise_s_variance():
    noise = np.random.default_rng(1).normal(0, 3, (20_000, 6))
    redraws = centred_redraws(noise)
    assert np.abs(redraws.mean(axis=-1)).max() < 1e-12
    found = combine(redraws.T, np.zeros((6, 20_000)))
    assert np.mean(found.privacy_error**2) == pytest.approx(9, rel=0.03)


def test_redraws_are_widened_where_slopes_differ_too_little_and_not_beyond_twice():
    assert [widened(np.array(each)) for each in ([1.2, 1.1], [], [0.1])] == [1, 1, 2]
    assert 1.2 < widened(np.array([0.5, 0.85, 1.4])) < 1.4


def slope(codes):
    """Of the last column on the first: estimate and squared standard error, as of a survey."""
    x, y = codes[:, 0] - codes[:, 0].mean(), codes[:, 2] - codes[:, 2].mean()
    found = (x @ y) / (x @ x)
    return found, np.sum((x * (y - found * x)) ** 2) / (x @ x) ** 2


@pytest.mark.slow
def test_intervals_from_implicates_hold_and_those_from_one_do_not():
    """Sixty surveys of 600; noise is as large as sampling."""
    generator = np.random.default_rng(5)
    population = generator.random((20_000, 3))
    population = (population < 0.5).astype(np.int64)
    population[:, 2] ^= (generator.random(20_000) < 0.3) & (population[:, 0] == 1)
    truth = slope(population)[0]
    held, naive = [], []
    for _ in range(60):
        survey = population[generator.integers(len(population), size=600)]
        noisy = [
            Margin(pair, table + generator.normal(0, STDDEV, (2, 2)), STDDEV**2)
            for pair, table in zip(PAIRS, margins_of(survey, (2, 2, 2), PAIRS), strict=True)
        ]
        noises = [generator.normal(0, STDDEV, (2, 2, 6)) for _ in PAIRS]
        start = generator.integers(0, 2, (600, 3))
        made = fit_implicates((2, 2, 2), noisy, noises, start, generator)
        several = np.array([slope(each) for each in made])
        low, high = combine(*several.T).interval()
        held.append(low <= truth <= high)
        naive.append(abs(several[0, 0] - truth) <= 1.96 * several[0, 1] ** 0.5)
    assert np.mean(held) > 0.87
    assert np.mean(naive) < 0.8
