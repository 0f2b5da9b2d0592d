"""Total variation of margins is what its definition says, and cheap on wide tables."""

from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from dpcore.estimates import distances as evaluation
from dpcore.estimates.distances import margin_errors, quantile_errors, rank_correlations

SIZES = (2, 3, 4, 5)


def tables(seed: int) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    return generator.integers(0, SIZES, (70, 4)), generator.integers(0, SIZES, (41, 4)) // 2


def naive(real: np.ndarray, synthetic: np.ndarray, ways: int) -> list[float]:
    errors = []
    for chosen in combinations(range(4), ways):
        rows = [[tuple(row) for row in table[:, chosen]] for table in (real, synthetic)]
        cells = set(rows[0]) | set(rows[1])
        shares = [{c: table.count(c) / len(table) for c in cells} for table in rows]
        errors.append(sum(abs(shares[0][c] - shares[1][c]) for c in cells) / 2)
    return errors


@pytest.mark.parametrize("ways", [1, 2, 3, 4])
def test_total_variation_agrees_with_counting_cell_by_cell(ways: int, monkeypatch):
    real, synthetic = tables(1)
    expected = naive(real, synthetic, ways)
    for largest_dense in (2**22, 10, 1):
        monkeypatch.setattr(evaluation, "LARGEST_DENSE", largest_dense)
        found = margin_errors(real, synthetic, SIZES, ways)
        assert found.mean == pytest.approx(np.mean(expected))
        assert found.worst == pytest.approx(max(expected))


def test_a_table_agrees_with_itself_in_any_order_and_tables_without_common_cells_not_at_all():
    real, _ = tables(2)
    assert margin_errors(real, real[::-1], SIZES, 2) == pytest.approx((0.0, 0.0), abs=1e-12)
    zeros, ones = np.zeros((5, 2), dtype=int), np.ones((9, 2), dtype=int)
    assert margin_errors(zeros, ones, (2, 2), 1) == pytest.approx((1.0, 1.0))


@pytest.mark.parametrize(
    ("codes", "message"),
    [
        (np.zeros((0, 2), dtype=int), "must have shape"),
        (np.zeros((3, 1), dtype=int), "must have shape"),
        (np.full((3, 2), 2), "between 0 and the size"),
        (np.full((3, 2), -1), "between 0 and the size"),
    ],
)
def test_codes_outside_the_domain_are_refused(codes: np.ndarray, message: str):
    fine = np.zeros((3, 2), dtype=int)
    with pytest.raises(ValueError, match=f"synthetic.*{message}"):
        margin_errors(fine, codes, (2, 2), 1)
    with pytest.raises(ValueError, match="ways must lie"):
        margin_errors(fine, fine, (2, 2), 3)


def test_rank_correlations_are_spearman_s():
    generator = np.random.default_rng(4)
    values = generator.normal(size=(300, 3)) @ generator.normal(size=(3, 3))
    values[:, 1] = np.round(values[:, 1])  # ties
    expected = stats.spearmanr(values).statistic
    np.testing.assert_allclose(rank_correlations(values), expected, atol=1e-12)
    np.testing.assert_allclose(rank_correlations(np.exp(values)), expected, atol=1e-12)


def test_quantile_differences_are_counted_in_standard_deviations():
    real = np.arange(101.0)
    found = quantile_errors(real, real + 7, (0.1, 0.5))
    assert found.real.tolist() == [10, 50]
    assert found.synthetic.tolist() == [17, 57]
    assert found.largest == pytest.approx(7 / np.std(real))
    ones = np.ones(3)
    assert quantile_errors(ones, ones, (0.5,)).largest == 0
    assert quantile_errors(ones, ones + 1, (0.5,)).largest == np.inf
