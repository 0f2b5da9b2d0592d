"""Noise by a body around all differences: its norm, its sensitivity, its law."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy import stats

from dpcore.sampling.source import SeededSource
from papers.difference_body.body import STEPS, Body
from tests.chance import FALSE_ALARM

SMALL = np.array([[3, 0], [1, 2], [-2, 1], [0, -2]])


def curve(dimension: int, cells: int = 60) -> np.ndarray:
    """Points of a cosine curve, in whole steps."""
    places = (np.arange(cells) + 0.5) / cells
    waves = np.cos(np.pi * np.outer(places, np.arange(1, dimension + 1)))
    return np.rint(2**14 * waves * 0.9 ** np.arange(dimension)).astype(np.int64)


def differences(vectors: np.ndarray) -> np.ndarray:
    return (vectors[:, None] - vectors[None]).reshape(-1, vectors.shape[1])


def by_definition(body: Body, vector: tuple[int, ...]) -> int:
    slabs = [
        Fraction(STEPS * abs(sum(a * b for a, b in zip(q, vector, strict=True))), width)
        for q, width in zip(body.directions, body.widths, strict=True)
    ]
    squared = Fraction(STEPS**2 * sum(x * x for x in vector), body.diameter**2)
    ball = next(r for r in range(10**7) if r * r >= squared) if squared else 0
    return max(ball, *(math.ceil(slab) for slab in slabs))


@pytest.mark.parametrize("dimension", [1, 2, 3, 4, 5, 6])
def test_no_difference_is_longer_than_stated_and_some_are_as_long(dimension: int):
    vectors = curve(dimension)
    lengths = Body.around(vectors).norm(differences(vectors))
    assert lengths.max() == STEPS
    assert lengths.min() == 0


def test_the_norm_is_that_of_its_definition():
    body = Body.around(SMALL)
    for vector in product(range(-3, 4), repeat=2):
        assert body.norm(np.array([vector]))[0] == by_definition(body, vector)


def test_the_norm_is_symmetric_and_sub_additive():
    body, random = Body.around(curve(4)), np.random.default_rng(1)
    one, other = random.integers(-(2**20), 2**20, (2, 500, 4))
    assert np.all(body.norm(one + other) <= body.norm(one) + body.norm(other))
    np.testing.assert_array_equal(body.norm(-one), body.norm(one))


@pytest.mark.slow
@pytest.mark.parametrize("scale", [Fraction(STEPS), Fraction(5 * STEPS, 2)])
def test_every_lattice_point_is_as_likely_as_its_norm_says(scale: Fraction):
    """Zero among them: it is drawn about as often as any other point near it."""
    body, reach = Body.around(SMALL), 60
    draws = body.noise(scale, 40_000, SeededSource(1))
    points = np.array(list(product(range(-reach, reach + 1), repeat=2)))
    weights = np.exp(-body.norm(points) / float(scale))
    weights /= weights.sum()
    inside = np.abs(draws).max(axis=1) <= reach
    codes = (draws[inside, 0] + reach) * (2 * reach + 1) + draws[inside, 1] + reach
    counts = np.bincount(codes, minlength=len(points))
    common = weights * len(draws) >= 10
    observed = np.append(counts[common], len(draws) - counts[common].sum())
    expected = np.append(weights[common], 1 - weights[common].sum()) * len(draws)
    assert common[points.tolist().index([0, 0])]
    assert stats.chisquare(observed, expected).pvalue > FALSE_ALARM
    for stretch in (2 / 3, 3 / 2):
        wrong = np.exp(-body.norm(points) / (float(scale) * stretch))
        wrong /= wrong.sum()
        wrong = np.append(wrong[common], 1 - wrong[common].sum()) * len(draws)
        assert stats.chisquare(observed, wrong).pvalue < 1e-9


@pytest.mark.parametrize("dimension", [3, 5])
def test_lengths_follow_a_gamma_law_and_errors_are_simulated_alike(dimension: int):
    body, scale = Body.around(curve(dimension)), Fraction(STEPS)
    draws = body.noise(scale, 3000, SeededSource(2))
    lengths = body.norm(draws) / float(scale)
    assert stats.kstest(lengths, stats.gamma(dimension).cdf).pvalue > FALSE_ALARM
    for stretch in (2 / 3, 3 / 2):
        assert stats.kstest(lengths / stretch, stats.gamma(dimension).cdf).pvalue < 1e-9
    simulated = body.simulated(float(scale), np.random.default_rng(3), 3000)
    for one, other in zip(draws.T, simulated.T, strict=True):
        assert stats.ks_2samp(one, other).pvalue > FALSE_ALARM


def test_too_many_dimensions_are_refused():
    with pytest.raises(ValueError, match="from 1 to 6 dimensions, not 7"):
        Body.around(curve(7))
