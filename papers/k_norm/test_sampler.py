"""K-norm noise has exactly its law: cell by cell on a small lattice, and by its length on a fine one."""

from fractions import Fraction

import numpy as np
import pytest

from dpcore.sampling.source import SeededSource
from papers.k_norm.sampler import LARGEST_DIMENSION, k_norm_noise, lattice_norm
from tests.dpcore.sampling.sampling_oracles import (
    assert_exact_and_sub_additive,
    assert_gamma_lengths,
    assert_lattice_law,
    root_up,
)


def by_definition(vector: tuple[int, ...]) -> int:
    return root_up(sum(x * x for x in vector))


@pytest.mark.parametrize("scale", [Fraction(1), Fraction(7, 4)])
def test_every_lattice_point_is_as_likely_as_its_norm_says(scale: Fraction):
    draws = k_norm_noise(scale, 2, 60_000, SeededSource(1))
    assert_lattice_law(draws, by_definition, float(scale))


@pytest.mark.parametrize("dimension", [2, 6, LARGEST_DIMENSION])
def test_on_a_fine_lattice_the_length_follows_a_gamma_law(dimension: int):
    scale = 20_000
    draws = k_norm_noise(scale, dimension, 1500, SeededSource(2))
    assert_gamma_lengths(lattice_norm(draws) / scale, dimension)
    expected = (dimension + 1) * scale**2
    assert np.mean(draws.astype(float) ** 2) == pytest.approx(expected, rel=0.1)


def test_the_norm_is_rounded_up_exactly_and_sub_additive():
    assert_exact_and_sub_additive(lattice_norm, by_definition)
    large = np.array([[3 * 2**40, 4 * 2**40], [2**28, 1], [2**40, 1]])
    assert lattice_norm(large).tolist() == [5 * 2**40, 2**28 + 1, 2**40 + 1]


@pytest.mark.parametrize(
    ("scale", "dimension", "says"),
    [
        (Fraction(1, 2), 2, "scale must be at least 1"),
        (0, 2, "scale must be positive"),
        (5, 0, "dimension must lie between"),
        (5, LARGEST_DIMENSION + 1, "dimension must lie between"),
    ],
)
def test_what_cannot_be_drawn_is_refused(scale, dimension, says):
    with pytest.raises(ValueError, match=says):
        k_norm_noise(scale, dimension, 1, SeededSource(1))
