"""Releases that measure some tables first and others, chosen by the result, again: the noise of both.

What both cost and their privacy together are claims of ``test_contract``.
"""

from collections.abc import Iterator

import numpy as np
import pytest

from dpcore.line.statistic import Noisy
from dpcore.releases.tables.compressed_microdata import CompressedMicrodata
from dpcore.releases.tables.microdata import Microdata
from dpcore.sampling.source import SeededSource
from tests.chance import FALSE_ALARM
from tests.dpcore.mechanisms.noise_laws import goodness_of_fit
from tests.dpcore.releases.contract import repeated_draws
from tests.dpcore.releases.tables import test_adaptive_microdata as adaptive
from tests.dpcore.releases.tables import test_compressed_microdata as compressed
from tests.dpcore.releases.tables.test_adaptive_microdata import NOISES

TwoRounds = Microdata | CompressedMicrodata

MADE = {"adaptive": adaptive.release, "compressed": compressed.release}
every_kind = pytest.mark.parametrize("kind", MADE)
every_noise = pytest.mark.parametrize("noise", NOISES)


def noise_of_rounds(of: TwoRounds) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """The noise of the first round and of the second, of many draws."""
    if isinstance(of, Microdata):
        exact = of.statistic(adaptive.tally())._values
        for row in repeated_draws(of, adaptive.tally(), 200, SeededSource(8)):
            first, again = row.reshape(2, -1) - exact
            yield first, again[~np.isnan(again)]
    else:
        for row in repeated_draws(of, compressed.tally(), 60, SeededSource(8)).astype(np.int64):
            exact = compressed.exact_rounds(of, Noisy(row))
            first, again = np.split(row, [len(exact[0])])
            yield first - exact[0], again - exact[1]


@every_kind
@every_noise
def test_both_rounds_have_the_stated_noise_and_neither_two_thirds_nor_three_halves_of_it(
    kind: str, noise: str
):
    made = MADE[kind](noise=noise)
    rounds = zip(*noise_of_rounds(made), strict=True)
    for found, law in zip(rounds, (made.mechanism.first, made.mechanism.again), strict=True):
        drawn = np.concatenate(found).astype(float)
        assert goodness_of_fit(drawn, law.event) > FALSE_ALARM
        assert goodness_of_fit(drawn, law.event, stretch=2 / 3) < 1e-9
        assert goodness_of_fit(drawn, law.event, stretch=3 / 2) < 1e-9
