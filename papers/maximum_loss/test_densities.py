import math

import numpy as np
import pytest
from scipy import stats

from dpcore.audit import Simulated
from dpcore.sampling.source import SeededSource
from papers.maximum_loss.densities import loss_at, pair_loss, tdde, tkde
from papers.maximum_loss.maximum_loss import maximum_loss
from tests.chance import most_failures

GENERATOR = np.random.default_rng(1)


def test_tkde_is_the_gaussian_kernel_estimate_cut_at_the_floor():
    for sample in (GENERATOR.normal(size=300), GENERATOR.normal(size=(300, 2))):
        points = sample[:7] + 0.1
        scipys = stats.gaussian_kde(sample.T)
        bandwidth = 0.3
        naive = [
            np.mean(
                [
                    math.exp(-np.sum((np.atleast_1d(t - x)) ** 2) / (2 * bandwidth**2))
                    for x in sample
                ]
            )
            / (bandwidth * math.sqrt(2 * math.pi)) ** scipys.d
            for t in points
        ]
        np.testing.assert_allclose(tkde(sample, points, bandwidth), naive)
        assert tkde(sample, points, bandwidth, floor=10.0).tolist() == [10.0] * 7


def test_tdde_is_the_share_of_a_value_cut_at_the_floor():
    sample = np.array([1.0, 2.0, 2.0, 4.0])
    assert tdde(sample, np.array([2.0, 3.0, 4.0]), 0.1).tolist() == [0.5, 0.1, 0.25]


def laplace(alpha: float) -> Simulated:
    return Simulated(
        "laplace", (0.0, 1.0), lambda x, size, g: x + g.laplace(scale=1 / alpha, size=size)
    )


def response(alpha: float) -> Simulated:
    honest = 1 / (1 + math.exp(-alpha))
    return Simulated(
        "response", (0, 1), lambda x, size, g: np.where(g.random(size) < honest, x, 1 - x)
    )


@pytest.mark.slow
def test_the_asymptotic_bound_holds_about_as_often_as_it_says():
    """In 95%; ``most_failures`` states how often chance exceeds it."""
    pair, truth = laplace(1.0), 1.0
    found = [maximum_loss([pair], 8_000, 20_000, SeededSource(s)) for s in range(30)]
    assert sum(f.lower_bound > truth for f in found) <= most_failures(30, 0.05)
    assert np.mean([f.estimate for f in found]) == pytest.approx(truth, abs=0.05)
    assert np.mean([f.lower_bound for f in found]) > 0.8 * truth


def test_the_worst_of_several_pairs_is_chosen():
    pairs = [response(0.2), response(1.5), response(0.5)]
    found = maximum_loss(pairs, 5_000, 20_000, SeededSource(1))
    assert found.pair == 1
    assert 1.3 < found.lower_bound < 1.55


def test_samples_without_a_finite_number_have_no_loss():
    absent = np.full(10, np.nan)
    assert pair_loss(absent, absent).loss == 0
    constant = np.zeros(1000)
    found = pair_loss(constant, constant)
    assert loss_at(constant, constant, found, 0.95) == (0.0, 0.0)


def test_outputs_of_several_numbers_are_refused():
    pair = Simulated("two", (0, 1), lambda x, size, g: g.random((size, 2)))
    with pytest.raises(ValueError, match="single numbers"):
        maximum_loss([pair], 100, 100, SeededSource(1))


@pytest.mark.slow
def test_the_loss_function_of_laplace_noise_is_a_slope_between_two_plateaus():
    near, far = (x + GENERATOR.laplace(size=100_000) for x in (0.0, 1.0))
    curve = pair_loss(near, far)
    truth = np.abs(np.abs(curve.points) - np.abs(curve.points - 1))
    known = np.isfinite(curve.losses) & (np.abs(curve.points - 0.5) < 2)
    assert np.count_nonzero(known) > 30
    assert np.abs(curve.losses - truth)[known].max() < 0.15
    assert curve.loss == np.nanmax(curve.losses) == curve.losses[curve.points == curve.point][0]
