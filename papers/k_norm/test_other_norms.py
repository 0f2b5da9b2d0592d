"""Noise by the cube norm and by the norm of discs has exactly its law."""

import math
from fractions import Fraction

import numpy as np
import pytest

from dpcore.sampling.source import SeededSource
from papers.k_norm.other_norms import cube_noise, cube_norm, disc_noise, disc_norm, eulerian_numbers
from papers.k_norm.sampler import LARGEST_DIMENSION
from tests.dpcore.sampling.sampling_oracles import (
    assert_exact_and_sub_additive,
    assert_gamma_lengths,
    assert_lattice_law,
    root_up,
)


def largest_number(vector: tuple[int, ...]) -> int:
    return max(abs(x) for x in vector)


def largest_pair(vector: tuple[int, ...]) -> int:
    pairs = zip(vector[::2], vector[1::2], strict=True)
    return max(root_up(x * x + y * y) for x, y in pairs)


# noise, norm, its definition, and d + 1 times which factor is the mean square of a coordinate
CUBE = (cube_noise, cube_norm, largest_number, lambda d: (d + 2) / 3)
DISCS = (disc_noise, disc_norm, largest_pair, lambda d: (d + 2) / 4)
both = pytest.mark.parametrize(
    ("noise", "norm", "by_definition", "squares"), [CUBE, DISCS], ids=["cube", "discs"]
)


@both
@pytest.mark.parametrize("scale", [Fraction(1), Fraction(7, 4)])
def test_every_lattice_point_is_as_likely_as_its_norm_says(
    noise, norm, by_definition, squares, scale
):
    draws = noise(scale, 2, 60_000, SeededSource(1))
    assert_lattice_law(draws, by_definition, float(scale))


@both
@pytest.mark.parametrize("dimension", [2, 6, LARGEST_DIMENSION])
def test_on_a_fine_lattice_the_length_follows_a_gamma_law(
    noise, norm, by_definition, squares, dimension
):
    scale = 20_000
    draws = noise(scale, dimension, 1500, SeededSource(2))
    assert_gamma_lengths(norm(draws) / scale, dimension)
    expected = (dimension + 1) * squares(dimension) * scale**2
    assert np.mean(draws.astype(float) ** 2) == pytest.approx(expected, rel=0.1)


def test_the_cube_of_one_dimension_is_discrete_laplace_noise():
    draws = cube_noise(Fraction(3), 1, 40_000, SeededSource(4))[:, 0]
    a = math.exp(-1 / 3)
    for z in (0, 1, -4):
        chance = (1 - a) / (1 + a) * a ** abs(z)
        assert np.mean(draws == z) == pytest.approx(chance, abs=4 * math.sqrt(chance / 40_000))


@both
def test_norms_are_exact_and_sub_additive(noise, norm, by_definition, squares):
    assert_exact_and_sub_additive(norm, by_definition)


def test_norms_of_large_vectors_are_exact():
    large = np.array([[3 * 2**40, 4 * 2**40], [2**28, 1], [2**40, 1]])
    assert cube_norm(large).tolist() == [2**42, 2**28, 2**40]
    assert disc_norm(large).tolist() == [5 * 2**40, 2**28 + 1, 2**40 + 1]


@pytest.mark.parametrize("dimension", [1, 2, 5, LARGEST_DIMENSION])
def test_cubes_of_lattice_points_are_counted_by_eulerian_numbers(dimension: int):
    numbers = eulerian_numbers(dimension).tolist()
    assert sum(numbers) == 2**dimension * math.factorial(dimension)
    for r in range(8):
        total = sum(n * math.comb(r + dimension - j, dimension) for j, n in enumerate(numbers))
        assert total == (2 * r + 1) ** dimension


def test_discs_of_an_odd_dimension_are_refused():
    with pytest.raises(ValueError, match="dimension must be even"):
        disc_noise(5, 3, 1, SeededSource(1))
