"""Sums of independent noises: exact laws by convolution, against the stated quantiles."""

import math
from fractions import Fraction

import numpy as np
import pytest

from dpcore.mechanisms.gaussian import DiscreteGaussian
from dpcore.mechanisms.laplace import DiscreteLaplace
from dpcore.post.combined_noise import Noise, half_width, half_widths_of_two, stddev


def gaussian(sigma: int) -> DiscreteGaussian:
    return DiscreteGaussian(1, Fraction(1), Fraction(sigma) ** 2)


def laplace(scale: int) -> DiscreteLaplace:
    return DiscreteLaplace(1, Fraction(1), Fraction(scale))


def law(noise: Noise, reach: int) -> np.ndarray:
    """Probabilities of the whole numbers from -reach to reach."""
    z = np.abs(np.arange(-reach, reach + 1.0))
    if isinstance(noise, DiscreteGaussian):
        chances = np.exp(-(z**2) / (2 * float(noise.variance)))
    else:
        chances = np.exp(-z / float(noise.scale))
    return chances / chances.sum()


def summed_law(weights: list[int], noises: list[Noise]) -> tuple[np.ndarray, np.ndarray]:
    """Sums with whole weights, and their exact probabilities."""
    total = np.ones(1)
    for weight, noise in zip(weights, noises, strict=True):
        reach = math.ceil(30 * noise.stddev)
        spread = np.zeros(2 * reach * abs(weight) + 1)
        spread[:: abs(weight)] = law(noise, reach)
        total = np.convolve(total, spread)
    return np.arange(len(total)) - len(total) // 2, total


CASES = [
    ([1], [gaussian(1)]),
    ([1], [laplace(3)]),
    ([3, -2, 1], [gaussian(4), gaussian(9), gaussian(2)]),
    ([2, 1, -5], [laplace(4), laplace(9), laplace(2)]),
    ([1, 1], [laplace(20), laplace(20)]),
    ([4, -1, 3], [laplace(7), gaussian(11), laplace(2)]),
]


@pytest.mark.parametrize(("weights", "noises"), CASES)
@pytest.mark.parametrize("level", [0.5, 0.8, 0.9, 0.99])
def test_a_half_width_holds_the_stated_share_and_is_wider_than_needed_by_few_steps(
    weights, noises, level
):
    values, chances = summed_law(weights, noises)
    found = half_width(np.array(weights, dtype=float), noises, level)
    held = chances[np.abs(values) <= found].sum()
    assert held >= level
    steps = sum(abs(weight) for weight in weights)
    assert chances[np.abs(values) <= found - 2 * steps - 1].sum() < level


@pytest.mark.parametrize(("weights", "noises"), CASES)
def test_standard_deviations_are_exact(weights, noises):
    values, chances = summed_law(weights, noises)
    exact = math.sqrt(chances @ values**2)
    assert stddev(np.array(weights, dtype=float), noises) == pytest.approx(exact, rel=1e-9)


def test_gaussian_noise_narrower_than_a_step_is_refused():
    with pytest.raises(ValueError, match="variance of at least 1"):
        half_width(np.ones(1), [DiscreteGaussian(1, Fraction(1), Fraction(1, 2))], 0.9)


@pytest.mark.parametrize("level", [0.5, 0.9, 0.99])
def test_half_widths_of_two_of_a_law_are_those_of_any_sum(level):
    weights = np.array([0.0, 0.01, 0.5, 0.9995, 1.0, 1.0005, 2.0, 30.0])
    noise = laplace(1000)
    found = half_widths_of_two(noise, weights, level)
    wanted = [half_width(np.array([1.0, a]), [noise, noise], level) for a in weights]
    np.testing.assert_allclose(found, wanted, rtol=1e-3)
    few = laplace(20)
    for weight in (1, 2):
        values, chances = summed_law([1, weight], [few, few])
        (width,) = half_widths_of_two(few, np.array([weight]), level)
        assert chances[np.abs(values) <= width].sum() >= level


@pytest.mark.parametrize("variance", [Fraction(1, 50), Fraction(1, 2), Fraction(1), Fraction(30)])
def test_half_widths_of_two_gaussian_noises_hold_at_every_variance(variance):
    noise = DiscreteGaussian(1, Fraction(1), variance)
    for weight in (1, 2):
        values, chances = summed_law([1, weight], [noise, noise])
        for level in (0.5, 0.9, 0.99):
            (width,) = half_widths_of_two(noise, np.array([float(weight)]), level)
            assert chances[np.abs(values) <= width].sum() >= level
