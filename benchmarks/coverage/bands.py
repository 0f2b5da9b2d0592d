"""Coverage of a density's intervals, from its noise alone.

The noise in the coefficients is the same whatever the records are, so that thousands of draws can be
had without publishing each: enough to tell 88 from 90 per cent, which a hundred bundles are not.
"""

from __future__ import annotations

import numpy as np

from dpcore.releases.base import TWO_SIDED
from dpcore.releases.density import Density
from dpcore.sampling.source import SeededSource
from dpcore.statistic import Noisy

FACTORS = 4
"""The factor of a band is itself simulated, for each release anew: this many are tried."""


def band_coverage(release: Density, draws: int, seed: int = 0) -> dict[str, float]:
    """The share of points and of whole bands that hold, each with its doubt (one standard error)."""
    nothing, source = np.zeros(release.mechanism.size, dtype=np.int64), SeededSource(seed)
    errors = np.sqrt(release.grid_variance(release.printed))
    factors = np.array([release.band_factor(Noisy(nothing + k)) for k in range(FACTORS)])
    at_points, at_once = np.zeros(draws), np.zeros(draws)
    for i in range(draws):
        theta = release.coefficients(release.mechanism.draw(nothing, None, source))
        deviations = np.abs(release.printed.density(theta) - 1) / errors
        at_points[i] = np.mean(deviations <= TWO_SIDED)
        at_once[i] = np.mean(deviations.max() <= factors)
    return {
        "each": float(at_points.mean()),
        "doubt of each": float(at_points.std() / draws**0.5),
        "simultaneous": float(at_once.mean()),
        "doubt of simultaneous": float(at_once.std() / draws**0.5),
    }
