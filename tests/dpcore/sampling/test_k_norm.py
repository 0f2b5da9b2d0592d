"""K-norm noise has exactly its law: cell by cell on a small lattice, and by its length on a fine one."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy import stats

from dpcore.sampling.k_norm import (
    LARGEST_DIMENSION,
    _eulerian,
    _uniform_below,
    k_norm_noise,
    lattice_norm,
)
from dpcore.sampling.source import SeededSource

NORMS = ("l2", "cube", "discs")


def by_definition(norm: str, vector: tuple[int, ...]) -> int:
    if norm == "cube":
        return max(abs(x) for x in vector)
    groups = [vector] if norm == "l2" else [vector[i : i + 2] for i in range(0, len(vector), 2)]
    squares = max(sum(x * x for x in group) for group in groups)
    return next(r for r in range(10**6) if r * r >= squares)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("scale", [Fraction(1), Fraction(7, 4)])
def test_every_lattice_point_is_as_likely_as_its_norm_says(norm: str, scale: Fraction):
    draws, reach = k_norm_noise(norm, scale, 2, 60_000, SeededSource(1)), 40
    points = list(product(range(-reach, reach + 1), repeat=2))
    weights = np.exp([-by_definition(norm, p) / float(scale) for p in points])
    weights /= weights.sum()
    codes = (draws[:, 0] + reach) * (2 * reach + 1) + draws[:, 1] + reach
    counts = np.bincount(codes, minlength=len(points))
    common = weights * len(draws) >= 10
    observed = np.r_[counts[common], counts[~common].sum()]
    expected = np.r_[weights[common], weights[~common].sum()] * len(draws)
    assert stats.chisquare(observed, expected).pvalue > 1e-4


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("dimension", [2, 6, LARGEST_DIMENSION])
def test_on_a_fine_lattice_the_length_follows_a_gamma_law(norm: str, dimension: int):
    scale = 20_000
    draws = k_norm_noise(norm, scale, dimension, 1500, SeededSource(2))
    lengths = lattice_norm(norm, draws) / scale
    assert stats.kstest(lengths, stats.gamma(dimension).cdf).pvalue > 1e-4
    for stretch in (2 / 3, 3 / 2):
        assert stats.kstest(lengths / stretch, stats.gamma(dimension).cdf).pvalue < 1e-9
    squares = {"l2": 1, "cube": (dimension + 2) / 3, "discs": (dimension + 2) / 4}[norm]
    expected = (dimension + 1) * squares * scale**2
    assert np.mean(draws.astype(float) ** 2) == pytest.approx(expected, rel=0.1)


def test_the_gamma_mechanism_has_the_second_moment_of_the_reference():
    """E X X' = (d + 1) (Delta/alpha)^2 Sigma (METHODS b), uncorrelated."""
    draws = k_norm_noise("l2", 1000, 3, 20_000, SeededSource(3)) / 1000
    np.testing.assert_allclose(draws.T @ draws / len(draws), 4 * np.eye(3), atol=0.2)


def test_one_dimension_is_discrete_laplace_noise_for_all_norms_of_it():
    for norm in ("l2", "cube"):
        draws = k_norm_noise(norm, Fraction(3), 1, 40_000, SeededSource(4))[:, 0]
        a = math.exp(-1 / 3)
        for z in (0, 1, -4):
            chance = (1 - a) / (1 + a) * a ** abs(z)
            assert np.mean(draws == z) == pytest.approx(chance, abs=4 * math.sqrt(chance / 40_000))


@pytest.mark.parametrize("norm", NORMS)
def test_norms_are_rounded_up_exactly_and_sub_additive(norm: str):
    generator = np.random.default_rng(5)
    small = generator.integers(-30, 31, (300, 4))
    assert lattice_norm(norm, small).tolist() == [
        by_definition(norm, tuple(v)) for v in small.tolist()
    ]
    both = lattice_norm(norm, small[:150]) + lattice_norm(norm, small[150:])
    assert (lattice_norm(norm, small[:150] + small[150:]) <= both).all()
    large = np.array([[3 * 2**40, 4 * 2**40], [2**28, 1], [2**40, 1]])
    expected = {"cube": [2**42, 2**28, 2**40]}.get(norm, [5 * 2**40, 2**28 + 1, 2**40 + 1])
    assert lattice_norm(norm, large).tolist() == expected


@pytest.mark.parametrize("dimension", [1, 2, 5, LARGEST_DIMENSION])
def test_cubes_of_lattice_points_are_counted_by_eulerian_numbers(dimension: int):
    numbers = _eulerian(dimension).tolist()
    assert sum(numbers) == 2**dimension * math.factorial(dimension)
    for r in range(8):
        total = sum(n * math.comb(r + dimension - j, dimension) for j, n in enumerate(numbers))
        assert total == (2 * r + 1) ** dimension


def test_uniform_integers_below_different_bounds():
    bounds = np.repeat([1, 3, 1000], 20_000)
    drawn = _uniform_below(bounds, SeededSource(6))
    assert (drawn < bounds).all()
    assert (drawn >= 0).all()
    assert stats.chisquare(np.bincount(drawn[20_000:40_000])).pvalue > 1e-4
    assert stats.chisquare(np.bincount(drawn[40_000:] // 100)).pvalue > 1e-4


@pytest.mark.parametrize(
    ("norm", "scale", "dimension", "says"),
    [
        ("l2", Fraction(1, 2), 2, "scale must be 1 at least"),
        ("l2", 0, 2, "scale must be positive"),
        ("l2", 5, 0, "dimension must lie between"),
        ("l2", 5, LARGEST_DIMENSION + 1, "dimension must lie between"),
        ("discs", 5, 3, "dimension must be even"),
    ],
)
def test_what_cannot_be_drawn_is_refused(norm, scale, dimension, says):
    with pytest.raises(ValueError, match=says):
        k_norm_noise(norm, scale, dimension, 1, SeededSource(1))
