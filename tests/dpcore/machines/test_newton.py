"""The solver: the true minimiser, an honest certificate, and a tolerance that any table meets."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import minimize

from dpcore.machines.features import FourierFeatures
from dpcore.machines.losses import Hinge, Huber
from dpcore.machines.newton import Problem, _gradient, train
from dpcore.machines.sensitivity import default_gap, smallest_gap
from tests.dpcore.machines.problems import every_loss, random_problem, random_targets, solved


def objective(loss, features, targets, weights, rows, regularisation, w) -> float:
    losses = loss.value(features @ w, targets)
    return float(weights @ losses) / rows + regularisation * float(w @ w)


@pytest.mark.slow
@every_loss
def test_no_other_weights_have_a_smaller_objective(loss):
    """A general optimiser finds none, from the solution and from elsewhere."""
    rng = np.random.default_rng(1)
    for _ in range(3):
        problem = random_problem(loss, rng)
        solution = solved(loss, *problem, 1e-13 / problem[-1])
        value = objective(loss, *problem, solution.weights)
        for start in (
            solution.weights,
            np.zeros_like(solution.weights),
            rng.normal(size=len(solution.weights)),
        ):
            found = minimize(lambda w, p=problem: objective(loss, *p, w), start, method="Powell")
            assert value <= found.fun + 1e-9
        assert solution.gap <= 1e-13 / problem[-1]


@every_loss
def test_the_distance_to_the_minimiser_is_within_the_certificate(loss):
    rng = np.random.default_rng(3)
    for _ in range(15):
        problem = random_problem(loss, rng)
        strength = problem[-1]
        tight = smallest_gap(strength)
        best = solved(loss, *problem, tight).weights
        for gap in (1e-1, 1e-3, 1e-6):
            solution = solved(loss, *problem, max(gap, tight))
            assert solution.gap <= max(gap, tight)
            allowed = math.sqrt(solution.gap / (2 * strength)) + math.sqrt(tight / (2 * strength))
            assert np.linalg.norm(solution.weights - best) <= allowed


@pytest.mark.parametrize("delta", [0.1, 1.0])
def test_the_gradient_certificate_covers_every_rounding(delta):
    """Against rational arithmetic, at weights as large as a small lambda makes them."""
    rng, loss = np.random.default_rng(4), Huber(delta)
    for size in (0.0, 1.0, 1e3):
        features, targets, weights, rows, _ = random_problem(loss, rng, largest=12)
        w = size * rng.normal(size=features.shape[1])
        shares = weights / rows
        problem = Problem(features, targets, shares, 2e-3)
        _, proved = _gradient(loss, problem, features @ w, w)
        exact_w = [Fraction(x) for x in w]
        gradient = [2 * Fraction(1e-3) * x for x in exact_w]
        for row, y, count in zip(features, targets, weights, strict=True):
            phi = [Fraction(x) for x in row]
            away = sum(a * b for a, b in zip(phi, exact_w, strict=True)) - Fraction(y)
            slope = max(min(away, Fraction(delta)), -Fraction(delta)) * int(count) / rows
            gradient = [g + slope * x for g, x in zip(gradient, phi, strict=True)]
        exact = sum(g * g for g in gradient) / (2 * Fraction(1e-3))
        assert exact <= Fraction(proved) <= exact * Fraction(1.001) + Fraction(1e-15)


@every_loss
def test_no_rows_give_zero_weights(loss):
    for count in (0, 2):
        solution = train(loss, np.zeros((count, 4)), np.ones(count), np.zeros(count), 10, 0.1)
        assert solution.weights.tolist() == [0.0] * 4
        assert solution.gap == 0.0
        assert repr(solution) == "<trained machine: withheld>"


@every_loss
@pytest.mark.parametrize("regularisation", [1e-6, 1.0])
@pytest.mark.parametrize("rows", [10**6])
def test_the_tolerance_is_met_on_degenerate_data(loss, regularisation, rows):
    rng = np.random.default_rng(6)
    phi = FourierFeatures((0.3, 0.3), 16).transform(rng.random((100, 2)))
    ones, mixed = np.ones(100), random_targets(loss, rng, 100)
    heavy = np.ones(100)
    heavy[0] = rows - 199
    for features, targets, weights in [
        (phi, ones if loss.classifies else 0.5 * ones, ones),  # all alike
        (phi, mixed, heavy),
        (np.tile(phi[:1], (100, 1)), mixed, ones),  # all at one point
        (np.vstack([phi, phi]), np.concatenate([mixed, -mixed]), np.full(200, rows // 200)),
        (phi[:1], ones[:1], np.array([rows])),
        (np.zeros((3, 4)), mixed[:3], np.ones(3)),
    ]:
        solution = train(loss, features, targets, weights, rows, regularisation)
        assert solution.gap <= default_gap(rows, regularisation, loss.slope)
        assert solution.iterations < 80


def test_least_tolerance_is_met_for_a_hundred_million_records():
    rng = np.random.default_rng(19)
    for _ in range(60):
        features, labels, _, _, regularisation = random_problem(Hinge(), rng)
        weights = np.floor(np.exp(rng.random(len(labels)) * math.log(1e6))).astype(int)
        tolerance = smallest_gap(regularisation)
        solution = solved(Hinge(), features, labels, weights, 10**8, regularisation, tolerance)
        assert solution.gap <= tolerance


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"regularisation": 0.0}, "regularisation must be at least 1e-06"),
        ({"regularisation": 1e-7}, "regularisation must be at least 1e-06"),
        ({"targets": np.array([1.0, 0.0])}, "labels"),
        ({"loss": Huber(0.1), "targets": np.array([1.0, 2.0])}, "targets"),
        ({"targets": np.array([1.0, math.nan])}, "labels"),
        ({"counts": np.array([1, -1])}, "negative"),
        ({"counts": np.array([8, 8])}, "sum to at most rows"),
        ({"features": np.array([[1.0], [math.inf]])}, "finite"),
    ],
)
def test_arguments_of_a_wrong_form_are_refused(changes, message):
    arguments = {
        "loss": Hinge(),
        "features": np.ones((2, 1)),
        "targets": np.array([1.0, -1.0]),
        "counts": np.array([2, 3]),
        "rows": 10,
        "regularisation": 0.1,
    }
    with pytest.raises(ValueError, match=message):
        train(**(arguments | changes))
