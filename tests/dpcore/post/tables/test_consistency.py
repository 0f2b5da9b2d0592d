"""Consistent margins against dense generalised least squares on the whole table."""

import numpy as np
import pytest

from dpcore.post.tables.consistency import Agreement, make_consistent
from dpcore.post.tables.margins import Margin, Residual

CASES = {
    "pairs of three": ((2, 3, 4), [(0, 1), (0, 2), (1, 2)], [1.0, 3.0, 0.5]),
    "nested": ((3, 2, 2), [(0,), (0, 1), (0, 1, 2), (2,)], [2.0, 1.0, 5.0, 0.1]),
    "the same twice": ((2, 3), [(0, 1), (0, 1), (1,)], [1.0, 4.0, 2.0]),
    "disjoint": ((2, 3, 2), [(0,), (1, 2)], [1.0, 2.0]),
    "sizes of one": ((1, 3, 2), [(0, 1), (0, 2), (1, 2), (0,)], [1.0, 2.0, 3.0, 1.0]),
    "the total too": ((2, 2), [(), (0, 1)], [1.0, 1.0]),
    "wide overlap": ((2, 2, 3, 2), [(0, 1, 2), (1, 2, 3), (0, 3)], [1.0, 0.3, 2.0]),
}


def noisy_margins(sizes, attributes, variances, generator):
    return [
        Margin(attrs, generator.normal(5, 3, [sizes[a] for a in attrs]), variance)
        for attrs, variance in zip(attributes, variances, strict=True)
    ]


def summing_matrix(sizes, attributes):
    """(cells of the margin, cells of the whole table): zeros and ones."""
    whole = np.arange(np.prod(sizes)).reshape(sizes)
    unit = np.eye(whole.size).reshape(*sizes, whole.size)
    gone = tuple(a for a in range(len(sizes)) if a not in attributes)
    return unit.sum(axis=gone).reshape(-1, whole.size)


def dense_generalised_least_squares(sizes, noisy, total):
    """The oracle: fitted margins and their covariances, with the total as an exact constraint.

    The whole table is x = particular + null @ z, where null spans the tables that add up to zero; all
    tables where no total is known.
    """
    matrices = [summing_matrix(sizes, margin.attributes) for margin in noisy]
    cells = matrices[0].shape[1]
    particular, null = np.zeros(cells), np.eye(cells)
    if total is not None:
        particular = np.full(cells, total / cells)
        null = np.linalg.svd(np.ones((1, cells)))[2][1:].T
    design = np.vstack([a / m.variance**0.5 for a, m in zip(matrices, noisy, strict=True)])
    observed = np.concatenate([m.table.ravel() / m.variance**0.5 for m in noisy])
    inverse = np.linalg.pinv(design @ null, rcond=1e-10)
    solution = particular + null @ (inverse @ (observed - design @ particular))
    covariance = null @ inverse @ inverse.T @ null.T
    return [(a @ solution, a @ covariance @ a.T) for a in matrices]


@pytest.mark.parametrize("total", [17.0, None])
@pytest.mark.parametrize("case", CASES)
def test_tables_and_variances_are_those_of_dense_least_squares(case, total):
    sizes, attributes, variances = CASES[case]
    noisy = noisy_margins(sizes, attributes, variances, np.random.default_rng(1))
    expected = dense_generalised_least_squares(sizes, noisy, total)
    agreed = make_consistent(sizes, noisy, total)
    for margin, (table, covariance) in zip(agreed, expected, strict=True):
        np.testing.assert_allclose(margin.table.ravel(), table, atol=1e-9)
        np.testing.assert_allclose(np.diag(covariance), margin.variance, atol=1e-9)
        found = Agreement(sizes, noisy, total).margin(margin.attributes).variance
        assert found == pytest.approx(margin.variance, abs=1e-12)


def test_the_variance_of_a_table_inside_a_margin_is_exact():
    sizes, attributes, variances = CASES["wide overlap"]
    noisy = noisy_margins(sizes, attributes, variances, np.random.default_rng(1))
    covariance = dense_generalised_least_squares(sizes, noisy, 3.0)[1][1]
    for inside in [(1,), (2,), (3,), (1, 2), (1, 3), (2, 3), ()]:
        # (1, 2, 3) is the second margin; sum its axes 0..2.
        summing = summing_matrix(sizes[1:], tuple(a - 1 for a in inside))
        exact = np.diag(summing @ covariance @ summing.T)
        found = Agreement(sizes, noisy, 3.0).margin(inside).variance
        np.testing.assert_allclose(exact, found, atol=1e-9)


def test_residuals_count_like_the_tables_that_measure_nothing_else():
    """A residual is a table whose sums nobody looked at: least squares with the centred rows alone."""
    sizes, generator = (2, 3, 2), np.random.default_rng(5)
    measured, design, observed = [], [], []
    for attrs, variance in [((0,), 2.0), ((1,), 1.0), ((0, 1), 0.7), ((1, 2), 3.0), ((2,), 1.5)]:
        table = generator.normal(5, 3, [sizes[a] for a in attrs])
        rows = summing_matrix(sizes, attrs)
        if attrs != (1, 2):  # the whole margin
            centring = np.eye(1)
            for a in attrs:
                centring = np.kron(centring, np.eye(sizes[a]) - 1 / sizes[a])
            table = (centring @ table.ravel()).reshape(table.shape)
            rows = centring @ rows
            measured.append(Residual(attrs, table, variance))
        else:
            measured.append(Margin(attrs, table, variance))
        design.append(rows / variance**0.5)
        observed.append(table.ravel() / variance**0.5)
    total = np.full((1, 12), 1e6)  # the public total
    inverse = np.linalg.pinv(np.vstack([*design, total]), rcond=1e-12)
    solution = inverse @ np.concatenate([*observed, [40 * 1e6]])
    agreement = Agreement(sizes, measured, 40.0)
    for attrs in [(0,), (1,), (2,), (0, 1), (1, 2), ()]:
        rows = summing_matrix(sizes, attrs)
        margin = agreement.margin(attrs)
        np.testing.assert_allclose(margin.table.ravel(), rows @ solution, atol=1e-5)
        variances = np.diag(rows @ inverse @ inverse.T @ rows.T)
        np.testing.assert_allclose(variances, margin.variance, atol=1e-5)
    with pytest.raises(ValueError, match="no measurement covers"):
        agreement.margin((0, 2))


def test_a_table_of_one_cell_is_the_total_and_can_be_made_consistent_again():
    noisy = [Margin((0,), np.array([9.0]), 4.0), Margin((0, 1), np.array([[4.0, 7.0]]), 4.0)]
    once = make_consistent((1, 2), noisy, 10)
    assert (once[0].table.tolist(), once[0].variance) == ([10.0], 0.0)
    np.testing.assert_allclose(make_consistent((1, 2), once, 10)[1].table, once[1].table)
