"""Estimates from a series: exact without noise, with the stated errors where there is some."""

from fractions import Fraction

import numpy as np
import pytest

from dpcore.domain.adjacency import Adjacency
from dpcore.domain.series import STEPS, Factor, each_alone, square_root, totals
from dpcore.line.statistic import Statistic
from dpcore.mechanisms.gaussian import DiscreteGaussian
from dpcore.mechanisms.laplace import DiscreteLaplace
from dpcore.post.combined_noise import Noise
from dpcore.post.series import QUANTITIES, estimate
from dpcore.sampling.source import SeededSource
from tests.chance import reach, shares

PERIODS, YEAR = 9, 4


def true(counts: np.ndarray, quantity: str) -> np.ndarray | None:
    """The exact quantity for the last period; counts (t, cells)."""
    t = len(counts)
    if quantity == "period":
        return counts[-1]
    if quantity == "to-date":
        return counts.sum(axis=0)
    if quantity == "change":
        return counts[-1] - counts[-2] if t > 1 else None
    if quantity == "change-on-year":
        return counts[-1] - counts[-1 - YEAR] if t > YEAR else None
    return counts[-YEAR:].sum(axis=0) if t >= YEAR else None


def exact_runs(factor: Factor, counts: np.ndarray) -> np.ndarray:
    """(t, cells) statistics in steps."""
    return np.array([np.array(factor.run(t)) @ counts[:t] for t in range(1, len(counts) + 1)])


def gaussian(factor: Factor, cells: int) -> DiscreteGaussian:
    squared = factor.l2_sensitivity_squared(factor.periods, 1, Adjacency())
    return DiscreteGaussian(cells, squared, squared * 2)


def laplace(factor: Factor, cells: int) -> DiscreteLaplace:
    moved = factor.l1_sensitivity(factor.periods, 1, Adjacency())
    return DiscreteLaplace(cells, moved, moved)


def noisy_runs(factor: Factor, counts: np.ndarray, noise: Noise) -> np.ndarray:
    exact, source = exact_runs(factor, counts), SeededSource(7)
    return np.array([noise.draw(Statistic(run), source).values for run in exact])


@pytest.mark.parametrize("make", [square_root, each_alone, totals])
@pytest.mark.parametrize("quantity", QUANTITIES)
def test_without_noise_the_estimates_are_the_exact_sums(make, quantity):
    counts = np.random.default_rng(1).integers(0, 10**9, (PERIODS, 3))
    factor = make(PERIODS)
    noise = gaussian(factor, 3)
    for t in range(1, PERIODS + 1):
        runs = exact_runs(factor, counts[:t])
        found, expected = (
            estimate(factor, [noise] * t, runs, quantity, YEAR),
            true(counts[:t], quantity),
        )
        assert (found is None) == (expected is None)
        if found is not None:
            assert found.values == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("law", [gaussian, laplace])
@pytest.mark.parametrize("quantity", QUANTITIES)
def test_errors_and_intervals_are_those_of_the_noise(law, quantity):
    cells = 20_000
    counts = np.full((PERIODS, cells), 1000)
    factor = square_root(PERIODS)
    noise = law(factor, cells)
    runs = noisy_runs(factor, counts, noise)
    found = estimate(factor, [noise] * PERIODS, runs, quantity, YEAR)
    exact = true(counts, quantity)
    error = np.sqrt(np.mean((found.values - exact) ** 2))
    assert error == pytest.approx(found.standard_error, rel=0.045)
    held = np.mean((found.lower <= exact) & (exact <= found.upper))
    least, most = shares(cells, 0.9)
    assert least <= held <= most
    assert abs(np.mean(found.values - exact)) < reach(found.values - exact)


def test_an_interval_for_a_count_holds_no_negative_number_and_one_for_a_change_may():
    factor = square_root(2)
    noise = gaussian(factor, 2)
    runs = np.array([[0, 900 * STEPS], [0, 0]])
    count = estimate(factor, [noise] * 2, runs, "period")
    assert np.all(count.lower >= 0)
    assert np.all(count.upper > count.lower)
    assert estimate(factor, [noise] * 2, runs, "change").upper[1] < 0


def test_runs_may_have_noise_of_different_widths():
    factor, narrow = each_alone(2), DiscreteLaplace(1, Fraction(1), Fraction(3 * STEPS))
    wide = DiscreteLaplace(1, Fraction(1), Fraction(4 * STEPS))
    runs = np.array([[50 * STEPS], [70 * STEPS]])
    total = estimate(factor, [narrow, wide], runs, "to-date")
    assert total.standard_error == pytest.approx(np.hypot(narrow.stddev, wide.stddev) / STEPS)
    assert estimate(factor, [narrow, wide], runs, "period").standard_error == wide.stddev / STEPS


def test_what_is_no_series_is_refused():
    noise = DiscreteLaplace(1, Fraction(1), Fraction(STEPS))
    runs = np.array([[STEPS]])
    with pytest.raises(ValueError, match="quantity: must be one of period, to-date"):
        estimate(square_root(1), [noise], runs, "mean")
    with pytest.raises(ValueError, match="as many as runs, 1, not 2"):
        estimate(square_root(1), [noise] * 2, runs, "period")
