"""Intervals for numbers between bounds: exact coverage, by summing the law of the noise."""

import math
from fractions import Fraction

import numpy as np
import pytest

from dpcore.mechanisms import DiscreteGaussian, DiscreteLaplace
from dpcore.post.tables.bounded import bounded_interval

NOISES: list[DiscreteLaplace | DiscreteGaussian] = [
    DiscreteLaplace(1, Fraction(2), Fraction(1, 2)),
    DiscreteLaplace(1, Fraction(2), Fraction(20)),
    DiscreteGaussian(1, Fraction(2), Fraction(400)),
]
every_noise = pytest.mark.parametrize("noise", NOISES, ids=["narrow", "laplace", "gaussian"])


def law(noise: DiscreteLaplace | DiscreteGaussian) -> tuple[np.ndarray, np.ndarray]:
    values = np.arange(-math.ceil(30 * noise.stddev), math.ceil(30 * noise.stddev) + 1)
    if isinstance(noise, DiscreteLaplace):
        weights = np.exp(-np.abs(values) / float(noise.scale))
    else:
        weights = np.exp(-(values**2) / 2 / noise.stddev**2)
    return values, weights / weights.sum()


def ends(
    noise: DiscreteLaplace | DiscreteGaussian, noisy: np.ndarray, top: int
) -> tuple[np.ndarray, np.ndarray]:
    lower, upper = bounded_interval(noisy, noise.half_width(0.9), noise.half_width(0.8), top)
    return np.ceil(lower), np.floor(upper)


@every_noise
def test_every_count_lies_in_its_interval_nine_times_in_ten(noise):
    errors, chances = law(noise)
    both, one = int(noise.half_width(0.9)), int(noise.half_width(0.8))
    whole = chances.max()  # what an interval of whole numbers holds beyond 90%, at either end
    for rows in (8 * both + 10, 4 * both, both + 1):
        for count in range(rows + 1):
            lower, upper = ends(noise, count + errors, rows)
            cover = float(chances @ ((lower <= count) & (count <= upper)))
            from_bound = min(count, rows - count)
            most = 0.95 if one < from_bound <= both else 0.9
            assert 0.9 - 1e-9 <= cover <= (most if rows >= 4 * both else 1) + 2 * whole


def test_far_from_the_bounds_it_is_that_of_the_noise_and_so_without_an_upper_bound():
    for top in (1000.0, np.inf):
        lower, upper = bounded_interval(np.array([500.0]), 11.0, 8.0, top)
        assert (lower[0], upper[0]) == (489, 511)
