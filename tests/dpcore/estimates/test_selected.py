"""Intervals of selected numbers: both laws of noise stay within them."""

import numpy as np
import pytest

from dpcore.estimates.selected import deviations


@pytest.mark.parametrize("weights", [(1.0,), (1.0, 1.0, 1.0), (0.3, 0.9, -0.5)])
@pytest.mark.parametrize("gaussian", [True, False])
def test_noise_of_either_law_stays_within_its_deviations(gaussian, weights):
    random = np.random.default_rng(1)
    shape = (200_000, len(weights))
    noise = random.normal(size=shape) if gaussian else random.laplace(size=shape)
    total = noise @ np.array(weights) * (1 if gaussian else 0.5**0.5)
    stddev = float(np.linalg.norm(weights))
    for chance in (0.05, 0.001):
        outside = np.mean(np.abs(total) > deviations(chance, gaussian) * stddev)
        assert outside < chance + 4 * (chance / len(total)) ** 0.5
        if gaussian:
            assert outside > chance - 4 * (chance / len(total)) ** 0.5
