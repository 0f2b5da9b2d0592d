"""The bound for margins is the singular value bound of the whole workload, computed by brute force."""

import math
from functools import reduce
from itertools import combinations

import numpy as np
import pytest

from dpcore.advice.margin_limits import least_total
from dpcore.domain.adjacency import Adjacency

ADDED = Adjacency("add-remove")
CASES = [
    ((2, 3), ((0,), (1,))),
    ((2, 3, 2), ((0, 1), (1, 2))),
    ((2, 2, 2), tuple(combinations(range(3), 2))),
    ((3, 2, 4), ((0, 1, 2),)),
    ((1, 3, 2), ((0, 1), (2,))),
]


def workload(sizes, sets) -> np.ndarray:
    rows = []
    for attrs in sets:
        parts = [np.eye(n) if a in attrs else np.ones((1, n)) for a, n in enumerate(sizes)]
        rows.append(reduce(np.kron, parts))
    return np.vstack(rows)


def singular_sum(matrix: np.ndarray) -> float:
    return float(np.linalg.svd(matrix, compute_uv=False).sum())


@pytest.mark.parametrize(("sizes", "sets"), CASES)
def test_the_closed_form_is_the_singular_value_bound(sizes, sets):
    matrix = workload(sizes, sets)
    cells = matrix.shape[1]
    assert least_total(sizes, sets, 3.0, ADDED) == pytest.approx(
        3 * singular_sum(matrix) ** 2 / cells
    )
    centred = matrix @ (np.eye(cells) - 1 / cells)
    assert least_total(sizes, sets, 3.0, Adjacency()) == pytest.approx(
        3 * 2 * singular_sum(centred) ** 2 / (cells - 1)
    )


def error_of(strategy: np.ndarray, matrix: np.ndarray, adjacency: Adjacency) -> float:
    """Of the best estimate of the workload, with noise for the sensitivity that the strategy has."""
    cells = matrix.shape[1]
    present = (strategy**2).sum(axis=0).max()
    moved = max(
        ((strategy[:, i] - strategy[:, j]) ** 2).sum() for i, j in combinations(range(cells), 2)
    )
    if adjacency.public_rows:  # the total is known
        matrix = matrix @ (np.eye(cells) - 1 / cells)
        strategy = strategy @ (np.eye(cells) - 1 / cells)
    squared = adjacency.squared(moved=float(moved), present=float(present))
    return squared * float(np.sum((matrix @ np.linalg.pinv(strategy)) ** 2))


@pytest.mark.parametrize(
    "adjacency",
    [Adjacency(), ADDED, Adjacency("replace-one", 3, unit="home"), Adjacency("add-remove", 2)],
    ids=str,
)
@pytest.mark.parametrize(("sizes", "sets"), CASES)
def test_no_strategy_is_better(sizes, sets, adjacency):
    generator, matrix = np.random.default_rng(5), workload(sizes, sets)
    bound = least_total(sizes, sets, 1.0, adjacency)
    cells = matrix.shape[1]
    values, vectors = np.linalg.eigh(matrix.T @ matrix)
    best = vectors @ np.diag(np.maximum(values, 0) ** 0.25) @ vectors.T
    strategies = [np.eye(cells), np.vstack([matrix, 1e-3 * np.eye(cells)]), best]
    strategies += [generator.normal(size=(cells + k, cells)) for k in range(20)]
    errors = [error_of(strategy, matrix, adjacency) for strategy in strategies]
    assert min(errors) >= bound * (1 - 1e-9)
    if adjacency == ADDED:  # residuals of the optimal scale attain it
        assert errors[2] == pytest.approx(bound)


def test_one_cell_and_too_many_subsets():
    assert least_total((1, 1), ((0, 1),), 1.0, Adjacency()) == 0
    assert math.isclose(least_total((1,), ((0,),), 1.0, ADDED), 1.0)
    assert least_total((2,) * 20, (tuple(range(20)),), 1.0, ADDED) is None
