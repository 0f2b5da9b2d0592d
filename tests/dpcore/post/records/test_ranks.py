"""Positions inside bins keep the ranks of correlated columns, and nothing else changes."""

import numpy as np
import pytest
from scipy import stats

from dpcore.domain.axes import Bins
from dpcore.domain.domain import Domain
from dpcore.post.records.ranks import positions_in_bins
from dpcore.synthesis.column import ColumnDensity
from dpcore.synthesis.decode import decode_records

ROWS = 8000
CUTS = np.array([-1.5, -0.5, 0.2, 1.0])
WIDE = np.ones(5, dtype=bool)


def normal(correlation: float, seed: int = 0, rows: int = ROWS) -> np.ndarray:
    covariance = [[1, correlation], [correlation, 1]]
    return np.random.default_rng(seed).multivariate_normal([0, 0], covariance, rows)


def positions(codes: np.ndarray, *wide: np.ndarray, seed: int = 1) -> np.ndarray:
    return positions_in_bins(codes, wide, np.random.default_rng(seed))


@pytest.mark.parametrize("correlation", [-0.9, -0.4, 0.0, 0.6, 0.95])
def test_scores_between_bins_and_inside_them_are_related_alike(correlation):
    exact = normal(correlation)
    codes = np.searchsorted(CUTS, exact)
    found = positions(codes, WIDE, WIDE)
    ends = np.r_[0, np.cumsum(np.bincount(codes[:, 0])) / ROWS]
    scores = [
        stats.norm.ppf(np.clip(ends[c] + p * np.diff(ends)[c], 1e-4, 1 - 1e-4))
        for c, p in zip(codes.T, found.T, strict=True)
    ]
    assert np.corrcoef(scores)[0, 1] == pytest.approx(correlation, abs=0.04)
    inside = (codes == 2).all(axis=1)
    own = stats.spearmanr(*exact[inside].T).statistic
    assert stats.spearmanr(*found[inside].T).statistic == pytest.approx(own, abs=0.12)


def test_the_records_of_each_cell_are_evenly_spread():
    codes = np.searchsorted(CUTS, normal(0.8))
    found = positions(codes, WIDE, WIDE)
    assert np.all((found >= 0) & (found < 1))
    for c in range(2):
        for code in range(5):
            inside = np.sort(found[codes[:, c] == code, c])
            even = np.arange(len(inside)) / len(inside)
            assert np.all(inside >= even)
            assert np.all(inside <= even + 1 / len(inside))


def test_a_density_inside_the_bins_still_holds():
    axes = tuple(Bins(name, (-9.0, *CUTS, 9.0)) for name in "xy")
    codes = np.searchsorted(CUTS, normal(0.9))
    edges = np.linspace(-9, 9, 200)
    density = ColumnDensity(edges, stats.norm.cdf(edges))
    columns = decode_records(
        Domain(axes), codes, {"x": density, "y": density}, np.random.default_rng(1)
    )
    assert stats.kstest(columns["x"], "norm").statistic < 0.02
    assert np.corrcoef(columns["x"], columns["y"])[0, 1] > 0.87
    for i, name in enumerate("xy"):
        np.testing.assert_array_equal(np.searchsorted(CUTS, columns[name]), codes[:, i])


@pytest.mark.parametrize("rows", [0, 1, 2, 3, 50])
@pytest.mark.parametrize("same", [True, False])
def test_few_records_and_columns_that_determine_each_other(rows, same):
    codes = np.zeros((rows, 3), dtype=np.int64)
    if not same:
        codes += np.arange(rows)[:, None] % 6  # also null
    found = positions(codes, WIDE, WIDE, np.zeros(5, dtype=bool))
    assert found.shape == (rows, 3)
    assert np.all((found >= 0) & (found < 1))
