"""Variances of sums of consistent cells, against the whole covariance matrix."""

import numpy as np
import pytest

from dpcore.post.tables.consistency import Agreement, make_consistent
from dpcore.post.tables.margins import Margin

SIZES = (2, 3, 4, 1)
SETS = [((0, 1), 2.0), ((1, 2), 5.0), ((0, 2, 3), 1.0), ((2,), 3.0)]


def zeros():
    return [Margin(attrs, np.zeros([SIZES[a] for a in attrs]), v) for attrs, v in SETS]


def agreement(public: bool = True) -> Agreement:
    return Agreement(SIZES, zeros(), 0.0 if public else None)


def by_attributes(weights: dict[int, np.ndarray]) -> dict[tuple[int, ...], np.ndarray]:
    return {SETS[i][0]: weight for i, weight in weights.items()}


def covariance(total_known: bool = True) -> np.ndarray:
    """Of all cells of all consistent tables: the adjustment is linear, so unit vectors give it."""
    total = sum(table.size for _, table, _ in zeros())
    columns, variances = [], []
    for i, (attrs, table, variance) in enumerate(zeros()):
        for cell in range(table.size):
            margins = zeros()
            unit = np.zeros(table.size)
            unit[cell] = 1.0
            margins[i] = Margin(attrs, unit.reshape(table.shape), variance)
            agreed = make_consistent(SIZES, margins, total=0 if total_known else None)
            columns.append(np.concatenate([margin.table.ravel() for margin in agreed]))
            variances.append(variance)
    matrix = np.array(columns).T
    assert matrix.shape == (total, total)
    return matrix * variances @ matrix.T


@pytest.mark.parametrize("public", [True, False])
def test_covariances_of_sums_are_those_of_the_covariance_matrix(public: bool):
    """Also of sums over several tables, and of all cells, which are known."""
    generator = np.random.default_rng(2)
    matrix, shapes = covariance(public), [table.shape for _, table, _ in zeros()]
    several = [{}, *({i: generator.normal(size=shapes[i])} for i in range(4))]
    several[0] = {i: generator.normal(size=shape) for i, shape in enumerate(shapes)}
    several += [{i: np.ones(shapes[i])} for i in range(4)]
    flat = np.array(
        [
            np.concatenate([each.get(i, np.zeros(s)).ravel() for i, s in enumerate(shapes)])
            for each in several
        ]
    )
    found = agreement(public).combination_covariance([by_attributes(each) for each in several])
    expected = flat @ matrix @ flat.T
    np.testing.assert_allclose(found, expected, atol=1e-9)
    assert agreement(public).combination_variance(by_attributes(several[0])) == pytest.approx(
        expected[0, 0]
    )
    assert public == (abs(found[-1, -1]) < 1e-9)
