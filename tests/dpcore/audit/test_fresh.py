"""Noise that is used again is found, in every mechanism that draws several times; right noise passes."""

import numpy as np
import pytest
from scipy import stats

from dpcore.audit.draws import ReleaseDraws
from dpcore.audit.fresh import MOST_ROUNDS, Signs
from dpcore.audit.releases import covered
from dpcore.audit.width import audit_noise
from dpcore.sampling.source import SeededSource
from tests.dpcore.releases.contract import CASES

SEVERAL = (
    "gaussian margins",
    "gaussian compressed microdata",
    "optimised margins",
    "optimised gaussian margins",
    "descent",
    "gradient classifier",
    "smooth mean",
)
"""Cases whose outputs have independent noise on several numbers."""


def signs_of(*rounds: np.ndarray) -> Signs:
    signs = Signs()
    signs.add(rounds)
    return signs


@pytest.mark.parametrize("name", SEVERAL)
def test_noise_of_every_round_is_fresh(name: str):
    """False alarms: one in a million at each."""
    release = CASES[name].release
    tables = [ReleaseDraws(release, pair) for pair in covered(release, 1)]
    _, fresh, _ = audit_noise(tables, 200, 2e-6, SeededSource(1))
    assert fresh is not None
    assert fresh.passed
    assert fresh.pairs > 0


@pytest.mark.parametrize(
    "again",
    [
        lambda noise: noise,
        lambda noise: -noise,
        lambda noise: noise[:, ::-1],
        lambda noise: 3 * np.roll(noise, 1, axis=1),
        lambda noise: np.where(np.arange(len(noise))[:, None] % 2, noise, np.nan),
    ],
)
def test_a_second_round_of_the_same_noise_is_found(again):
    noise = np.rint(np.random.default_rng(1).laplace(scale=9, size=(200, 3)))
    fresh = np.random.default_rng(2).normal(size=(200, 3))
    assert signs_of(noise, fresh).bound(1e-6).passed
    assert not signs_of(noise, fresh, again(noise)).bound(1e-6).passed


def test_noise_is_accused_no_more_often_than_stated():
    """400 times at 5%: the tolerance is exceeded by chance once in a million."""
    generator = np.random.default_rng(3)
    accused = sum(
        not signs_of(np.rint(generator.normal(size=(60, 4)))).bound(0.05).passed for _ in range(400)
    )
    assert accused <= stats.binom.ppf(1 - 1e-6, 400, 0.05)


def test_nothing_is_said_of_a_single_number_or_of_no_noise():
    assert signs_of(np.ones((10, 1))).bound(0.05) is None
    assert signs_of(np.zeros((10, 3))).bound(0.05) is None
    assert Signs().bound(0.05) is None


def test_of_thousands_of_rounds_a_thousand_are_compared():
    """As a table of 200 columns has: all pairs of 20,000 rounds would need gigabytes."""
    rounds = np.random.default_rng(4).normal(size=(3_000, 60, 2))
    assert signs_of(*rounds).bound(1e-6).pairs == MOST_ROUNDS * (MOST_ROUNDS + 1) // 2
    assert signs_of(*rounds).bound(1e-6).passed
    assert not signs_of(*np.repeat(rounds[::1000], 1000, axis=0)).bound(1e-6).passed
