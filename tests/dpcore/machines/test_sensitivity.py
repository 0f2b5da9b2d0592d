"""The sensitivity of a machine holds and is sharp, and its tolerance is met."""

import math
from fractions import Fraction

import numpy as np
import pytest

from dpcore.machines.features import KAPPA, FourierFeatures
from dpcore.machines.losses import Hinge
from dpcore.machines.sensitivity import default_gap, smallest_gap, weight_sensitivity


def random_problem(rng, largest=40):
    """Rows in a small Fourier space, some shared: features, labels, weights, n, lambda."""
    count, dimensions = int(rng.integers(1, largest + 1)), int(rng.integers(1, 4))
    points = rng.random((count, dimensions))
    if rng.random() < 0.5:
        points = np.round(2 * points) / 2
    bandwidth = float(rng.choice([0.1, 0.5, 3.0]))
    features = FourierFeatures(dimensions, bandwidth, int(rng.integers(1, 20))).transform(points)
    labels = rng.choice([-1, 1], count)
    weights = rng.integers(1, 6, count) if rng.random() < 0.5 else np.ones(count, dtype=int)
    n = int(weights.sum()) + int(rng.integers(0, 3))
    return features, labels, weights, n, float(10 ** rng.uniform(-4, 0.2))


@pytest.mark.slow
def test_sensitivity_bounds_every_replacement_and_is_reached():
    rng = np.random.default_rng(15)
    largest = 0.0
    for trial in range(150):
        n, size = int(rng.integers(1, 9)), int(rng.integers(1, 5))
        regularisation = float(10 ** rng.uniform(-2, 0.5))
        points = rng.standard_normal((n + 1, size))
        points /= np.linalg.norm(points, axis=1, keepdims=True) * (1 + 1e-15)
        if trial % 2:
            points[:] = points[0]
        labels = rng.choice([-1, 1], n + 1)
        if trial % 4 >= 2:
            points[n], labels[n] = points[0], -labels[0]
        gap = 1e-10 / regularisation / n**2
        before, after = (
            Hinge().train(points[rows], labels[rows], np.ones(n), n, regularisation, gap).weights
            for rows in (slice(0, n), slice(1, n + 1))
        )
        moved = float(np.linalg.norm(before - after))
        assert moved <= weight_sensitivity(n, regularisation, 1.0, gap)
        largest = max(largest, moved / weight_sensitivity(n, regularisation, 1.0, 0.0))
    assert 0.999 < largest < 1.0001


def test_a_dropped_record_moves_the_weights_by_half_of_it_at_most():
    rng = np.random.default_rng(16)
    for _ in range(60):
        features, labels, weights, n, regularisation = random_problem(rng, largest=8)
        fewer = weights.copy()
        fewer[0] -= 1
        gap = 1e-10 / regularisation / n**2
        with_it = Hinge().train(features, labels, weights, n, regularisation, gap).weights
        without = Hinge().train(features, labels, fewer, n, regularisation, gap).weights
        moved = float(np.linalg.norm(with_it - without))
        assert moved <= 0.501 * weight_sensitivity(n, regularisation, gap=0.0)


def test_least_tolerance_is_met_for_a_hundred_million_records():
    rng = np.random.default_rng(19)
    for _ in range(60):
        features, labels, _, _, regularisation = random_problem(rng)
        weights = np.floor(np.exp(rng.random(len(labels)) * math.log(1e6))).astype(int)
        tolerance = smallest_gap(regularisation)
        solution = Hinge().train(features, labels, weights, 10**8, regularisation, tolerance)
        assert solution.gap <= tolerance


@pytest.mark.parametrize("rows", [1, 7, 10**4, 10**6])
@pytest.mark.parametrize("regularisation", [1e-6, 0.1, 1 / 3])
def test_sensitivity_is_rounded_up_and_the_slack_is_small(rows, regularisation):
    gap = default_gap(rows, regularisation)
    exact = Fraction(KAPPA) / (Fraction(regularisation) * rows)
    with_slack = Fraction(weight_sensitivity(rows, regularisation)) - exact
    assert with_slack > 0
    assert with_slack**2 >= 4 * Fraction(gap) / (2 * Fraction(regularisation))
    assert Fraction(weight_sensitivity(rows, regularisation, gap=0.0)) >= exact
    extra = weight_sensitivity(rows, regularisation) / float(exact) - 1
    assert extra < max(0.0101, 4.4e-8 * rows)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"regularisation": 0.0}, "regularisation"),
        ({"gap": 1e-30}, "gap must be at least"),
        ({"targets": np.array([1, 0])}, "labels"),
        ({"weights": np.array([1, -1])}, "negative"),
        ({"weights": np.array([8, 8])}, "sum to at most rows"),
        ({"features": np.array([[1.0], [math.inf]])}, "finite"),
    ],
)
def test_arguments_of_a_wrong_form_are_refused(changes, message):
    arguments = {
        "features": np.ones((2, 1)),
        "targets": np.array([1, -1]),
        "weights": np.array([2, 3]),
        "rows": 10,
        "regularisation": 0.1,
    }
    with pytest.raises(ValueError, match=message):
        Hinge().train(**(arguments | changes))
