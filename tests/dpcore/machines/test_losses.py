"""Every loss: the true minimiser, an honest certificate, a sensitivity that holds; any table."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import minimize

from dpcore.machines import newton
from dpcore.machines.features import FourierFeatures
from dpcore.machines.losses import Hinge, Huber, Logistic
from dpcore.machines.sensitivity import default_gap, smallest_gap, weight_sensitivity

LOSSES = [Hinge(), Logistic(), Huber(0.1), Huber(1.0)]
every_loss = pytest.mark.parametrize("loss", LOSSES, ids=str)


def classifies(loss) -> bool:
    return isinstance(loss, Hinge | Logistic)


def random_targets(loss, rng, size: int) -> np.ndarray:
    return rng.choice([-1.0, 1.0], size) if classifies(loss) else rng.uniform(-0.5, 0.5, size)


def random_problem(loss, rng, largest=30):
    """Rows in a small Fourier space: features, targets, weights, n, lambda."""
    count = int(rng.integers(1, largest + 1))
    features = FourierFeatures(1, 0.3, int(rng.integers(1, 8))).transform(rng.random((count, 1)))
    weights = rng.integers(1, 6, count)
    rows = int(weights.sum()) + int(rng.integers(0, 3))
    targets = random_targets(loss, rng, count)
    return features, targets, weights, rows, float(10 ** rng.uniform(-4, 0.2))


def objective(loss, features, targets, weights, rows, regularisation, w) -> float:
    losses = loss.value(features @ w, targets)
    return float(weights @ losses) / rows + regularisation * float(w @ w)


@every_loss
def test_slopes_are_bounded_by_the_stated_one_and_reach_it(loss):
    responses = np.linspace(-40, 40, 80_001)
    for target in (-1.0, 1.0) if classifies(loss) else (-0.5, 0.0, 0.31):
        values = loss.value(responses, np.full_like(responses, target))
        slopes = np.abs(np.diff(values) / np.diff(responses))
        assert slopes.max() <= loss.slope * (1 + 1e-9)
        assert slopes.max() == pytest.approx(loss.slope, rel=1e-6)
        assert np.diff(values, 2).min() > -1e-9  # convex


@every_loss
def test_slopes_and_curvatures_are_the_derivatives_of_the_value(loss):
    responses, step = np.linspace(-6.02, 6.07, 1201), 1e-6
    for target in (-1.0, 1.0):
        targets = np.full_like(responses, target)
        rise = loss.value(responses + step, targets) - loss.value(responses - step, targets)
        np.testing.assert_allclose(loss.slopes(responses, targets), rise / (2 * step), atol=1e-6)
        turn = loss.slopes(responses + step, targets) - loss.slopes(responses - step, targets)
        np.testing.assert_allclose(
            loss.curvatures(responses, targets), turn / (2 * step), atol=1e-4
        )
        assert loss.curvatures(responses, targets).max() <= loss.curving


@pytest.mark.slow
@every_loss
def test_no_other_weights_have_a_smaller_objective(loss):
    """A general optimiser finds none, from the solution and from elsewhere."""
    rng = np.random.default_rng(1)
    for _ in range(3):
        problem = random_problem(loss, rng)
        solution = loss.train(*problem, gap=1e-13 / problem[-1])
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
        best = loss.train(*problem, gap=tight).weights
        for gap in (1e-1, 1e-3, 1e-6):
            solution = loss.train(*problem, gap=max(gap, tight))
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
        problem = newton.Problem(features, targets, shares, 2e-3)
        _, proved = newton._gradient(loss, problem, features @ w, w)
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
@pytest.mark.parametrize("regularisation", [0.02, 0.5, 8.0])
def test_no_replacement_in_any_small_table_moves_the_weights_by_more_than_the_claim(
    loss, regularisation
):
    """Brute force: three records, each at one of two points with one of three targets."""
    points = FourierFeatures(1, 0.3, 2).transform(np.array([[0.1], [0.8]]))
    targets = (-1.0, 1.0) if classifies(loss) else (-0.5, 0.0, 0.5)
    kinds = list(itertools.product(range(2), targets))
    gap = max(smallest_gap(regularisation), 1e-10)
    trained = {}
    for table in itertools.combinations_with_replacement(range(len(kinds)), 3):
        place, goal = zip(*(kinds[i] for i in table), strict=True)
        trained[table] = loss.train(
            points[list(place)], np.array(goal), np.ones(3), 3, regularisation, gap
        ).weights
    claim = weight_sensitivity(3, regularisation, gap=gap, slope=loss.slope)
    farthest = 0.0
    for shared in itertools.combinations_with_replacement(range(len(kinds)), 2):
        family = [trained[tuple(sorted((*shared, i)))] for i in range(len(kinds))]
        farthest = max(
            farthest, *(np.linalg.norm(a - b) for a, b in itertools.combinations(family, 2))
        )
    assert farthest <= claim
    if regularisation == 8.0:  # every record pulls with its whole slope, or half of it
        assert farthest >= (0.49 if isinstance(loss, Logistic) else 0.99) * claim or loss == Huber(
            1.0
        )


@every_loss
def test_no_rows_give_zero_weights(loss):
    for count in (0, 2):
        solution = loss.train(np.zeros((count, 4)), np.ones(count), np.zeros(count), 10, 0.1)
        assert solution.weights.tolist() == [0.0] * 4
        assert solution.gap == 0.0
        assert repr(solution) == "<trained machine: withheld>"


@every_loss
@pytest.mark.parametrize("regularisation", [1e-6, 1.0])
@pytest.mark.parametrize("rows", [10**6])
def test_the_tolerance_is_met_on_degenerate_data(loss, regularisation, rows):
    rng = np.random.default_rng(6)
    phi = FourierFeatures(2, 0.3, 16).transform(rng.random((100, 2)))
    ones, mixed = np.ones(100), random_targets(loss, rng, 100)
    heavy = np.ones(100)
    heavy[0] = rows - 199
    for features, targets, weights in [
        (phi, ones if classifies(loss) else 0.5 * ones, ones),  # all alike
        (phi, mixed, heavy),
        (np.tile(phi[:1], (100, 1)), mixed, ones),  # all at one point
        (np.vstack([phi, phi]), np.concatenate([mixed, -mixed]), np.full(200, rows // 200)),
        (phi[:1], ones[:1], np.array([rows])),
        (np.zeros((3, 4)), mixed[:3], np.ones(3)),
    ]:
        solution = loss.train(features, targets, weights, rows, regularisation)
        assert solution.gap <= default_gap(rows, regularisation, loss.slope)
        assert solution.iterations < 80


@pytest.mark.parametrize("value", [0.0, -1.0, 1e-4, 1.5, math.nan, math.inf])
def test_thresholds_out_of_range_are_refused(value):
    with pytest.raises(ValueError, match="delta"):
        Huber(value)


def test_the_rounded_hinge_is_the_hinge_but_for_its_corner():
    margins = np.linspace(-3, 5, 801)
    above = Hinge().value(margins, np.ones(801)) - np.maximum(0, 1 - margins)
    assert above[np.abs(1 - margins) >= Hinge.corner] == pytest.approx(0, abs=1e-12)
    assert above.max() == pytest.approx(Hinge.corner / 4)
    assert above.min() >= -1e-12


@every_loss
def test_targets_of_a_wrong_form_are_refused(loss):
    for bad in (np.array([1.0, 2.0]), np.array([1.0, math.nan]), np.ones(3)):
        with pytest.raises(ValueError, match=r"labels|targets|rows"):
            loss.train(np.eye(2), bad, np.ones(2), 2, 0.1)
    with pytest.raises(ValueError, match="gap must be at least"):
        loss.train(np.eye(2), np.ones(2), np.ones(2), 2, 0.1, gap=1e-30)


@every_loss
def test_a_regularisation_too_small_for_newton_steps_is_refused(loss):
    for strength in (1e-7, 1e-18):
        with pytest.raises(ValueError, match="regularisation must be at least 1e-06"):
            loss.train(np.eye(2), np.ones(2), np.ones(2), 2, strength)
