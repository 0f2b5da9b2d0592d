"""Intervals around published counts: what they contain, and where they are those of the estimate."""

import numpy as np
import pytest

from dpcore.post.tables.bounded import bounded_interval
from dpcore.post.tables.count_interval import FEW, Accepted, count_interval
from tests.chance import shares

STDDEV = 10.0


def shrunken(exact: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Unbiased numbers, and counts that move them halfway to a neighbour's: more accurate, biased."""
    generator = np.random.default_rng(seed)
    estimates = exact + generator.normal(0, STDDEV, exact.shape)
    return estimates, np.rint(np.maximum(0.3 * estimates + 0.7 * (exact - 1), 0))


def published(exact: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Counts with intervals from a simulation that starts from the counts."""
    estimates, counts = shrunken(exact, seed)
    again = shrunken(counts, seed + 1)[1]
    errors = np.full(len(exact), np.sqrt(np.mean((again - counts) ** 2)))
    ends = bounded_interval(estimates, 1.645 * STDDEV, 1.282 * STDDEV, 1e9)
    accepted = Accepted.of(counts / STDDEV, again / STDDEV, np.ones_like)
    return counts, *count_interval(counts, errors, estimates, STDDEV, ends, accepted)


@pytest.mark.parametrize("size", [0, 4, 12, 40, 200])
def test_cells_of_every_size_are_covered(size):
    exact = np.array([0, 4, 12, 40, 200]).repeat(10_000)
    counts, lower, upper = published(exact, 5)
    here = exact == size
    held = np.mean((np.floor(lower) <= exact) & (exact <= np.ceil(upper)), where=here)
    assert held >= shares(10_000, 0.9)[0]
    assert np.all((lower <= counts) & (counts <= upper))
    assert lower.min() >= 0


def test_small_counts_have_short_intervals_and_large_ones_those_of_the_estimate():
    exact = np.array([0, 400]).repeat(3000)
    counts, lower, upper = published(exact, 7)
    wide = upper - lower
    assert wide[:3000].mean() < 1.4 * STDDEV  # that of the estimate is about two
    assert wide[3000:].mean() == pytest.approx(3.29 * STDDEV, rel=0.01)
    assert counts[3000:].min() > 2 * STDDEV


def test_an_estimate_far_above_the_count_raises_the_upper_end():
    accepted = Accepted.of(np.zeros(300), np.zeros(300), np.ones_like)
    ends = np.zeros(2 * FEW), np.repeat([14.0, 34.0], FEW)
    estimates = np.repeat([1.0, 20.0], FEW)
    counts, errors = np.zeros(2 * FEW, dtype=np.int64), np.ones(2 * FEW)
    lower, upper = count_interval(counts, errors, estimates, STDDEV, ends, accepted)
    assert not lower.any()
    assert upper[0] < 3
    assert upper[-1] == 34
