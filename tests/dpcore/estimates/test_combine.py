"""The rule for implicates: its moments, and its coverage over surveys."""

import numpy as np
import pytest
from scipy.stats import t

from dpcore.estimates.combine import combine
from dpcore.post.records.implicates import centred_redraws, widened


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
