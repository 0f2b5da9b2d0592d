"""Errors of post-processed counts by simulation: the noise's law, and what is pooled."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import ks_2samp

from dpcore.mechanisms import DiscreteGaussian, DiscreteLaplace
from dpcore.post.tables.simulation import likely_counts
from dpcore.sampling.source import SeededSource
from papers.k_norm.mechanism import DiscreteKNorm
from papers.k_norm.sampler import k_norm_noise
from tests.chance import FALSE_ALARM
from tests.dpcore.mechanisms.noise_laws import goodness_of_fit
from tests.dpcore.releases.contract import CASES

NOISES = [
    DiscreteLaplace(1, Fraction(2), Fraction(4)),
    DiscreteLaplace(1, Fraction(2), Fraction(1, 3)),
    DiscreteGaussian(1, Fraction(2), Fraction(50)),
]


@pytest.mark.parametrize("noise", NOISES)
def test_simulated_noise_has_the_law_of_the_event(noise):
    drawn = noise.simulate(20_000, np.random.default_rng(3))
    assert goodness_of_fit(drawn, noise.event) > FALSE_ALARM
    assert goodness_of_fit(drawn + 1, noise.event) < 1e-9


def test_simulated_k_norm_noise_has_the_law_of_the_sampler():
    """Of one coordinate, and of the length, which the coordinates share."""
    noise = DiscreteKNorm(3, 3, 40, Fraction(60))
    drawn = noise.simulate(3 * 6000, np.random.default_rng(3)).reshape(-1, 3)
    exact = k_norm_noise(Fraction(60), 3, 6000, SeededSource(5))
    for measure in (lambda z: z[:, 0], lambda z: np.linalg.norm(z, axis=1)):
        assert ks_2samp(measure(drawn), measure(exact)).pvalue > FALSE_ALARM
        for stretch in (2 / 3, 3 / 2):
            assert ks_2samp(stretch * measure(drawn), measure(exact)).pvalue < 1e-9


def test_noise_of_another_law_is_not_simulated():
    with pytest.raises(ValueError, match="cannot be simulated"):
        CASES["minimax count"].release.mechanism.simulate(3, np.random.default_rng(3))


def test_likely_counts_lose_the_spread_that_noise_gave():
    generator = np.random.default_rng(1)
    exact = generator.integers(100, 300, 4000)
    noisy = exact + generator.normal(0, 60, 4000).round().astype(np.int64)
    likely = likely_counts(noisy, noisy, 60.0)
    assert likely.sum() == noisy.sum()
    assert exact.std() < likely.std() < 1.1 * exact.std(), "no less than is certain"
    assert noisy.std() > 1.3 * exact.std()
