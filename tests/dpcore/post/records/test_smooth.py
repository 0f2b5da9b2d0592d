"""Inside wide bins numbers follow a smooth density that has the counts of the bins."""

import numpy as np
import pytest
from scipy import stats

from dpcore.domain.axes import Bins
from dpcore.domain.domain import Domain
from dpcore.post.records.smooth import smooth_density
from dpcore.synthesis.decode import decode_records

ROWS = 20_000


def inside_bins(edges: np.ndarray, law, counts: np.ndarray) -> tuple[float, float]:
    """Total variation to the law inside the bins, smooth and even, over the law's own bins."""
    ends, cumulative = smooth_density(edges[:-1], edges[1:], np.diff(edges), counts)
    at = np.unique(np.r_[edges, np.linspace(edges[0], edges[-1], 4000)])
    bins = np.searchsorted(edges, at[1:]) - 1
    exact = np.diff(law.cdf(at))

    def distance(shares: np.ndarray) -> float:
        own = np.bincount(bins, exact)[bins] / np.bincount(bins, shares)[bins]
        return float(np.abs(shares * own - exact).sum() / 2)

    return distance(np.diff(np.interp(at, ends, cumulative))), distance(np.diff(at))


@pytest.mark.parametrize("noise", [0, 100])
@pytest.mark.parametrize(
    ("edges", "law"),
    [
        ([140, 155, 165, 175, 185, 210], stats.norm(171, 9)),
        ([0, 25, 40, 50, 60, 75, 100, 500], stats.lognorm(0.5, scale=55)),
        ([0, 5e3, 1e4, 2e4, 35e3, 6e4, 1e5, 1e7], stats.lognorm(0.7, scale=3e4)),
        ([0, 15, 25, 35, 45, 55, 65, 75, 95], stats.gamma(4, scale=11)),
        ([0, 10, 20, 30], stats.expon(scale=5)),
        ([0, 25, 50, 75, 100, 150, 200, 1000], stats.lomax(2.5, scale=100)),
    ],
)
def test_it_is_nearer_to_the_law_than_even_bins(edges, law, noise):
    edges = np.asarray(edges, dtype=float)
    counts = ROWS * np.diff(law.cdf(edges))
    counts += noise * np.random.default_rng(1).standard_normal(len(counts))
    smooth, even = inside_bins(edges, law, np.maximum(counts, 0))
    assert smooth < even / 2


@pytest.mark.parametrize("counts", [[0, 0, 0], [5, 0, 0], [0, 0, 5], [1, 10**9, 0]])
@pytest.mark.parametrize("edges", [[0, 1, 2, 3], [-1e12, 0, 1e-6, 1e12], [0, 1e-300, 1, 2]])
def test_any_counts_give_a_distribution(counts, edges):
    edges = np.asarray(edges, dtype=float)
    ends, cumulative = smooth_density(
        edges[:-1], edges[1:], np.diff(edges), np.asarray(counts, float)
    )
    assert (ends[0], ends[-1]) == (edges[0], edges[-1])
    assert np.all(np.diff(ends) >= 0)
    assert np.all(np.diff(cumulative) >= 0)
    assert (cumulative[0], cumulative[-1]) == (0, pytest.approx(1))
    assert np.isin(edges, ends).all()


def test_point_masses_and_gaps_take_no_part():
    """Half of all records are zero: the bins beside it fall as if there were none."""
    axis = Bins("x", (-10.0, -2.0, 0.0, 0.0, 2.0, 10.0))
    codes = np.repeat([0, 1, 3, 4], [1000, 4000, 4000, 1000])
    more = np.r_[codes, np.full(10_000, 2)]
    x, with_zeros = (
        decode_records(Domain((axis,)), of[:, None], {}, np.random.default_rng(1))["x"]
        for of in (codes, more)
    )
    np.testing.assert_array_equal(with_zeros[: len(codes)], x)
    assert not with_zeros[len(codes) :].any()
    assert np.median(x[codes == 0]) > -4
    assert np.median(x[codes == 4]) < 4
