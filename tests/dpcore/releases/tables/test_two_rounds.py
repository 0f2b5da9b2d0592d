"""Tables of wide columns first, and then tables of the groups that these suggest: the noise of both.

What both cost and their privacy together are claims of ``test_contract``.
"""

import numpy as np
import pytest

from dpcore.line.statistic import Noisy
from dpcore.sampling.source import SeededSource
from tests.chance import FALSE_ALARM
from tests.dpcore.mechanisms.noise_laws import goodness_of_fit
from tests.dpcore.releases.contract import repeated_draws
from tests.dpcore.releases.tables.test_compressed_microdata import (
    NOISES,
    exact_rounds,
    release,
    tally,
)


@pytest.mark.slow
@pytest.mark.parametrize("noise", NOISES)
def test_both_rounds_have_the_stated_noise_and_neither_two_thirds_nor_three_halves_of_it(
    noise: str,
):
    made, drawn = release(noise=noise), ([], [])
    for row in repeated_draws(made, tally(), 60, SeededSource(8)).astype(np.int64):
        exact = exact_rounds(made, Noisy(row))
        rounds = np.split(row, [len(exact[0])])
        for found, noisy, counted in zip(drawn, rounds, exact, strict=True):
            found.append(noisy - counted)
    for found, law in zip(drawn, (made.mechanism.first, made.mechanism.again), strict=True):
        values = np.concatenate(found).astype(float)
        assert goodness_of_fit(values, law.event) > FALSE_ALARM
        assert goodness_of_fit(values, law.event, stretch=2 / 3) < 1e-9
        assert goodness_of_fit(values, law.event, stretch=3 / 2) < 1e-9
