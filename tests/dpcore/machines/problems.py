"""Training problems for the tests of machines, and their solution to any tolerance."""

import numpy as np
import pytest

from dpcore.machines.features import FourierFeatures
from dpcore.machines.losses import Hinge, Huber, Logistic, Loss
from dpcore.machines.newton import Problem, Solution, solve

LOSSES = [Hinge(), Logistic(), Huber(0.1), Huber(1.0)]
every_loss = pytest.mark.parametrize("loss", LOSSES, ids=str)


def solved(loss: Loss, features, targets, counts, rows, regularisation, gap) -> Solution:
    return solve(loss, Problem(features, targets, counts / rows, 2 * regularisation), gap)


def random_targets(loss: Loss, rng, size: int) -> np.ndarray:
    return rng.choice([-1.0, 1.0], size) if loss.classifies else rng.uniform(-0.5, 0.5, size)


def random_problem(loss: Loss, rng, largest=30):
    """Rows in a small Fourier space, some shared: features, targets, counts, n, lambda."""
    count, dimensions = int(rng.integers(1, largest + 1)), int(rng.integers(1, 4))
    points = rng.random((count, dimensions))
    if rng.random() < 0.5:
        points = np.round(2 * points) / 2
    widths = (float(rng.choice([0.1, 0.5, 3.0])),) * dimensions
    features = FourierFeatures(widths, int(rng.integers(1, 20))).transform(points)
    counts = rng.integers(1, 6, count)
    rows = int(counts.sum()) + int(rng.integers(0, 3))
    targets = random_targets(loss, rng, count)
    return features, targets, counts, rows, float(10 ** rng.uniform(-4, 0.2))
