"""Positions inside bins keep the ranks of correlated columns, and nothing else changes."""

import numpy as np
import pytest
from scipy import stats

from dpcore.accounting.budget import Budget
from dpcore.domain.axes import Bins
from dpcore.domain.domain import Domain
from dpcore.post.records.ranks import positions_in_bins
from dpcore.releases.counts.histogram import Histogram
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


def test_point_masses_and_null_hide_no_relation_of_the_others():
    """Half of x is zero, whatever y is, and some of it is null (5); the rest is nearly y."""
    exact = normal(0.995)
    codes = np.searchsorted(CUTS, exact) + np.array([1, 0])
    random = np.random.default_rng(3).random(ROWS)
    codes[random < 0.5, 0] = 0
    codes[random > 0.9, 0] = 6
    found = positions(codes, np.r_[False, WIDE], WIDE)
    inside = (codes == [3, 2]).all(axis=1)
    own = stats.spearmanr(*exact[inside].T).statistic
    assert stats.spearmanr(*found[inside].T).statistic == pytest.approx(own, abs=0.2)
    assert own > 0.5


@pytest.mark.parametrize("rows", [0, 1, 2, 3, 50])
@pytest.mark.parametrize("same", [True, False])
def test_few_records_and_columns_that_determine_each_other(rows, same):
    codes = np.zeros((rows, 3), dtype=np.int64)
    if not same:
        codes += np.arange(rows)[:, None] % 6  # also null
    found = positions(codes, WIDE, WIDE, np.zeros(5, dtype=bool))
    assert found.shape == (rows, 3)
    assert np.all((found >= 0) & (found < 1))


def test_one_column_alone_is_independent():
    codes = np.searchsorted(CUTS, normal(0.5))[:, :1]
    assert positions(codes, WIDE).shape == (ROWS, 1)
    assert (
        positions_in_bins(np.empty((5, 0), dtype=np.int64), [], np.random.default_rng(1)).size == 0
    )


def test_records_of_a_release_follow_the_ranks_that_its_bins_show():
    """Numbers that are nearly equal in the survey are so in the records, at alpha 2."""
    exact = np.clip(np.exp(normal(0.97, rows=20_000) * 0.5) * 50, 0, 299)
    edges = (0.0, 25.0, 40.0, 50.0, 60.0, 75.0, 100.0, 150.0, 300.0)
    domain = Domain(tuple(Bins(name, edges) for name in ("person", "household")))
    codes = np.searchsorted(edges, exact, side="right") - 1
    release = Histogram("both", domain, len(codes), Budget.of("2"))
    noise = release.mechanism.simulate(domain.size, np.random.default_rng(2))
    counts = np.bincount(domain.pack(codes), minlength=domain.size) + np.rint(noise).astype(
        np.int64
    )
    made = domain.unpack(np.repeat(np.arange(domain.size), np.maximum(counts, 0)))
    columns = decode_records(domain, made, {}, np.random.default_rng(3))
    found = np.corrcoef(columns["person"], columns["household"])[0, 1]
    random = np.random.default_rng(4).random(made.shape)
    alone = np.asarray(edges)[made.T] + random.T * np.diff(edges)[made.T]
    assert found > np.corrcoef(alone)[0, 1] + 0.03
    assert found == pytest.approx(np.corrcoef(exact.T)[0, 1], abs=0.04)
