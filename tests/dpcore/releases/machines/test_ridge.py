"""Fits to noisy means: class weights are those of weighted records, and errors follow their noise."""

import numpy as np
import pytest

from dpcore.arrays import Floats
from dpcore.releases.machines.ridge import Sides, fitted

QUIET = (1e-12, 1e-12)


def means(rows: Floats, signs: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Of products of rows, and of signs times rows."""
    shares = weights / weights.sum()
    return (rows * shares[:, None]).T @ rows, (signs * shares) @ rows


def two_sides() -> tuple[Floats, Floats]:
    """Rows (1, z), and signs: 30 positive ones that spread as 90 negative ones do, elsewhere."""
    shape = np.random.default_rng(1).normal(size=(30, 3))
    z = np.concatenate([shape + np.array([1, 0.5, 0]), shape, shape, shape])
    return np.column_stack([np.ones(120), z]), np.repeat([1.0, -1.0, -1.0, -1.0], 30)


@pytest.mark.parametrize(("weight", "counts"), [(1.0, 1), (5.0, 5), (0.2, 0.2), (None, 3)])
def test_sides_that_spread_alike_are_fitted_as_weighted_records(weight, counts):
    rows, signs = two_sides()
    products, labels = means(rows, signs, np.ones(120))
    weighted, of_labels = means(rows, signs, np.where(signs > 0, counts, 1.0))
    measured = np.triu(np.ones((4, 4), dtype=bool))
    fit = fitted(products, labels, measured, QUIET, weight)
    np.testing.assert_allclose(fit.theta, np.linalg.solve(weighted, of_labels), rtol=1e-8)


@pytest.mark.parametrize("weight", [1.0, 4.0, None])
@pytest.mark.parametrize("private", [False, True])
def test_errors_are_those_of_small_noise(weight, private):
    """Held against fits to means with noise; where the number of records is private it divides all."""
    rows, signs = two_sides()
    products, labels = means(rows, signs, np.ones(120))
    measured = np.triu(np.ones((4, 4), dtype=bool))
    measured[0, 0] = private
    stddevs = (1e-5, 2e-5)
    stated = fitted(products, labels, measured, stddevs, weight).covariance
    random = np.random.default_rng(2)
    found = []
    for _ in range(3000):
        noise = np.where(measured, random.normal(0, stddevs[0], (4, 4)), 0.0)
        noisy = products + noise + np.triu(noise, 1).T
        of_labels = labels + random.normal(0, stddevs[1], 4)
        count = noisy[0, 0]
        scaled = (stddevs[0] / count, stddevs[1] / count)
        found.append(fitted(noisy / count, of_labels / count, measured, scaled, weight).theta)
    scale = np.sqrt(np.diag(stated))
    np.testing.assert_allclose(
        np.cov(np.transpose(found)) / np.outer(scale, scale),
        stated / np.outer(scale, scale),
        atol=0.09,
    )


def test_a_share_that_noise_made_negative_counts_as_a_small_one():
    sides = Sides.of(np.array([1.0, 0.3]), np.array([-1.2, 0.1]), None, 0.01)
    assert sides.weights == (50.0, 0.5 / 0.99)
    assert np.all(np.isfinite(sides.weighted(np.eye(2))))
