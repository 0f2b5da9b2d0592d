"""The sensitivity of a machine holds and is sharp, and its tolerance is met."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

from dpcore.machines.features import KAPPA, FourierFeatures
from dpcore.machines.losses import Hinge, Huber, Logistic
from dpcore.machines.newton import train
from dpcore.machines.sensitivity import default_gap, weight_sensitivity
from tests.dpcore.machines.problems import every_loss, random_problem


@every_loss
@pytest.mark.parametrize("regularisation", [0.02, 0.5, 8.0])
def test_no_replacement_in_any_small_table_moves_the_weights_by_more_than_the_claim(
    loss, regularisation
):
    """Brute force: three records, each at one of two points with one of three targets."""
    points = FourierFeatures((0.3,), 2).transform(np.array([[0.1], [0.8]]))
    targets = (-1.0, 1.0) if loss.classifies else (-0.5, 0.0, 0.5)
    kinds = list(itertools.product(range(2), targets))
    trained = {}
    for table in itertools.combinations_with_replacement(range(len(kinds)), 3):
        place, goal = zip(*(kinds[i] for i in table), strict=True)
        trained[table] = train(
            loss, points[list(place)], np.array(goal), np.ones(3), 3, regularisation
        ).weights
    claim = weight_sensitivity(3, regularisation, loss.slope, terms=2)
    farthest = 0.0
    for shared in itertools.combinations_with_replacement(range(len(kinds)), 2):
        family = [trained[tuple(sorted((*shared, i)))] for i in range(len(kinds))]
        farthest = max(
            farthest, *(np.linalg.norm(a - b) for a, b in itertools.combinations(family, 2))
        )
    assert farthest <= claim
    if regularisation == 8.0:  # every record pulls with its whole slope, or half of it
        reached = 0.48 if isinstance(loss, Logistic) else 0.98
        assert farthest >= reached * claim or loss == Huber(1.0)


def test_a_dropped_record_moves_the_weights_by_half_of_the_claim_at_most():
    rng = np.random.default_rng(16)
    for _ in range(60):
        features, labels, counts, n, regularisation = random_problem(Hinge(), rng, largest=8)
        fewer = counts.copy()
        fewer[0] -= 1
        before, after = (
            train(Hinge(), features, labels, each, n, regularisation).weights
            for each in (counts, fewer)
        )
        moved = float(np.linalg.norm(before - after))
        assert moved <= weight_sensitivity(n, regularisation, 1.0, terms=1)


@pytest.mark.parametrize("rows", [1, 7, 10**4, 10**6])
@pytest.mark.parametrize("regularisation", [1e-6, 0.1, 1 / 3])
def test_sensitivity_is_rounded_up_and_the_slack_is_small(rows, regularisation):
    gap = default_gap(rows, regularisation, 1.0)
    claim = weight_sensitivity(rows, regularisation, 1.0, terms=2)
    exact = Fraction(KAPPA) / (Fraction(regularisation) * rows)
    slack = Fraction(claim) - exact
    assert slack > 0
    assert slack**2 >= 4 * Fraction(gap) / (2 * Fraction(regularisation))
    extra = claim / float(exact) - 1
    assert extra < max(0.0101, 4.4e-8 * rows)
