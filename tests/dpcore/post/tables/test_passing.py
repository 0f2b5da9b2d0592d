"""Intervals for counts that passed a threshold: exact coverage, by summing the law."""

import math

import numpy as np
import pytest

from dpcore.post.tables.passing import passed_error, passed_interval

CASES = [(0.3, 3), (1.0, 9), (4.0, 35), (4.0, 0), (25.0, 160)]
every_case = pytest.mark.parametrize(("scale", "threshold"), CASES)


def law(scale: float, count: int, threshold: int) -> tuple[np.ndarray, np.ndarray]:
    """Values that can be published for an exact count, and their probabilities."""
    ratio = math.exp(-1 / scale)
    highest = max(count, threshold) + int(45 * scale) + 3
    values = np.arange(threshold + 1, highest)
    # In logarithms: the smallest noise that passes may itself be unlikely.
    logs = -np.abs(values - count) / scale
    weights = np.exp(logs - logs.max())
    assert ratio < 1
    return values, weights / weights.sum()


@every_case
def test_intervals_hold_every_exact_count_nine_times_in_ten_given_that_it_passed(scale, threshold):
    covers = []
    for count in range(0, threshold + int(12 * scale) + 3, max(1, int(scale / 4))):
        values, probabilities = law(scale, count, threshold)
        lower, upper = passed_interval(scale, threshold, values, 0.9)
        covers.append(float(probabilities @ ((lower <= count) & (count <= upper))))
    assert min(covers) >= 0.9 - 1e-9
    # Whole numbers: what lies beyond 90% is less than the probability of the values at both ends.
    assert max(covers) <= 0.9 + 0.2 * (1 - math.exp(-1 / scale)) + 1e-6


@pytest.mark.parametrize(("scale", "threshold"), CASES)
def test_errors_are_averages_over_equally_likely_exact_counts(scale, threshold):
    """A sum over all exact counts, against the pooled one."""
    ratio = math.exp(-1 / scale)
    for excess in (1, 2, int(3 * scale) + 1, int(9 * scale) + 1):
        value = threshold + excess
        counts = np.arange(value + int(50 * scale) + 3)
        passing = 1 - ratio ** np.maximum(counts - threshold, 0.0) / (1 + ratio)
        likely = np.where(
            counts <= threshold,
            (1 - ratio) * ratio ** (excess - 1.0),
            (1 - ratio) / (1 + ratio) * ratio ** np.abs(value - counts) / passing,
        )
        expected = math.sqrt(likely @ (value - counts) ** 2 / likely.sum())
        (found,) = passed_error(scale, threshold, np.array([value]))
        assert found == pytest.approx(expected, rel=0.01)


def test_no_published_cells_give_no_intervals():
    nothing = np.array([], dtype=np.int64)
    assert [len(end) for end in passed_interval(4.0, 20, nothing, 0.9)] == [0, 0]
    assert len(passed_error(4.0, 20, nothing)) == 0
