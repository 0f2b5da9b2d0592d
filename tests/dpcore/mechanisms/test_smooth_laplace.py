"""The sum and the level that smooth noise publishes each have the noise that its theorem is about."""

from fractions import Fraction

import numpy as np
import pytest

from dpcore.mechanisms import DiscreteLaplace
from dpcore.sampling.source import SeededSource
from tests.chance import FALSE_ALARM
from tests.dpcore.mechanisms.noise_laws import goodness_of_fit
from tests.dpcore.releases.contract import CASES, repeated_draws, tally_of

CASE = CASES["smooth mean"]
DRAWS = repeated_draws(
    CASE.release, tally_of(CASE.release.domain, CASE.near), 30_000, SeededSource(14)
)


@pytest.mark.parametrize("published", ["sum", "level"])
def test_the_noise_has_the_stated_scale_and_neither_two_thirds_nor_three_halves_of_it(published):
    smooth, codes = CASE.release.mechanism, np.array(CASE.near)
    cells, counts = np.unique(codes, return_counts=True)
    level = smooth.level(counts, cells)
    exact, scale = {
        "sum": (codes.sum(), smooth.scale(level)),
        "level": (level, 1 / smooth.level_alpha),
    }[published]
    noise = DRAWS[:, ["sum", "level"].index(published)] - exact
    event = DiscreteLaplace(1, Fraction(1), scale).event
    assert goodness_of_fit(noise, event) > FALSE_ALARM
    assert goodness_of_fit(noise, event, stretch=2 / 3) < 1e-9
    assert goodness_of_fit(noise, event, stretch=3 / 2) < 1e-9
