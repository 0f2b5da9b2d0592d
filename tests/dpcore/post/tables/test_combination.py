"""Variances of sums of consistent cells, against the whole covariance matrix."""

import numpy as np
import pytest

from dpcore.post.tables.consistency import Agreement, make_consistent
from dpcore.post.tables.margins import checked_margins

SIZES = (2, 3, 4, 1)
SETS = [((0, 1), 2.0), ((1, 2), 5.0), ((0, 2, 3), 1.0), ((2,), 3.0)]


def zeros():
    return [(attrs, np.zeros([SIZES[a] for a in attrs]), v) for attrs, v in SETS]


def agreement(public: bool = True) -> Agreement:
    return Agreement(SIZES, checked_margins(SIZES, zeros()), 0.0 if public else None)


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
            margins[i] = (attrs, unit.reshape(table.shape), variance)
            agreed = make_consistent(SIZES, margins, total=0 if total_known else None)
            columns.append(np.concatenate([margin.table.ravel() for margin in agreed]))
            variances.append(variance)
    matrix = np.array(columns).T
    assert matrix.shape == (total, total)
    return matrix * variances @ matrix.T


@pytest.mark.parametrize("public", [True, False])
def test_the_variance_of_any_sum_is_that_of_the_covariance_matrix(public: bool):
    generator = np.random.default_rng(1)
    matrix = covariance(public)
    ends = np.cumsum([table.size for _, table, _ in zeros()])[:-1]
    for chosen in [(0,), (1,), (2,), (3,), (0, 1), (0, 1, 2, 3)]:
        parts = [
            generator.normal(size=len(part)) if i in chosen else np.zeros(len(part))
            for i, part in enumerate(np.split(np.zeros(len(matrix)), ends))
        ]
        flat = np.concatenate(parts)
        shaped = {i: parts[i].reshape(zeros()[i][1].shape) for i in chosen}
        found = agreement(public).combination_variance(by_attributes(shaped))
        assert found == pytest.approx(flat @ matrix @ flat)


def test_one_cell_has_the_variance_of_a_cell_and_all_cells_have_none():
    for attrs, table, _ in zeros():
        one = np.zeros(table.size)
        one[0] = 1
        found = agreement().combination_variance({attrs: one.reshape(table.shape)})
        assert found == pytest.approx(agreement().margin(attrs).variance)
        everything = agreement().combination_variance({attrs: np.ones(table.shape)})
        assert everything == pytest.approx(0, abs=1e-9)


def test_a_sum_over_covarying_cells_is_not_a_sum_of_variances():
    """What an analyst would get wrong who squares and adds standard errors."""
    row = np.zeros((2, 3))
    row[0] = 1
    exact = agreement().combination_variance({(0, 1): row})
    naive = 3 * agreement().margin((0, 1)).variance
    assert exact < 0.6 * naive


@pytest.mark.parametrize("public", [True, False])
def test_covariances_of_sums_of_different_tables_are_those_of_the_covariance_matrix(public: bool):
    generator = np.random.default_rng(2)
    matrix = covariance(public)
    sizes = [table.size for _, table, _ in zeros()]
    several = []
    for i, size in enumerate(sizes):
        weights = [np.zeros(n) for n in sizes]
        weights[i] = generator.normal(size=size)
        several.append(np.concatenate(weights))
    shaped = [
        {attrs: part[part != 0].reshape(table.shape)}
        for part, (attrs, table, _) in zip(several, zeros(), strict=True)
    ]
    found = agreement(public).combination_covariance(shaped)
    np.testing.assert_allclose(found, np.array(several) @ matrix @ np.array(several).T, atol=1e-9)
