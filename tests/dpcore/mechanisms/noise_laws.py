"""Whether noise has the law that an event states."""

import math

import numpy as np
from scipy import stats

from dpcore.arrays import Floats
from dpcore.line.mechanism import Event
from dpcore.mechanisms.laplace import LaplaceEvent, log_cdf
from dpcore.mechanisms.random_laplace import RandomLaplaceEvent
from dpcore.mechanisms.stability import StabilityEvent


def goodness_of_fit(noise: Floats, event: Event, stretch: float = 1.0) -> float:
    """The p-value of a chi-square test of noise against the event's law, stretched by a factor."""
    cuts = np.unique(np.quantile(noise, np.linspace(0, 1, 41)[1:-1], method="lower"))
    expected = np.diff(noise_cdf(event, cuts, stretch), prepend=0.0, append=1.0) * noise.size
    counts = np.diff(np.searchsorted(np.sort(noise), cuts, "right"), prepend=0, append=noise.size)
    statistic = float(((counts - expected) ** 2 / np.maximum(expected, 1e-3)).sum())
    return float(stats.chi2.sf(statistic, len(cuts)))


def noise_cdf(event: Event, z: Floats, stretch: float = 1.0) -> Floats:
    """P(Z <= z) for whole numbers z, from the definition of the law."""
    if isinstance(event, LaplaceEvent | RandomLaplaceEvent | StabilityEvent):
        return np.exp(log_cdf(z, float(event.scale) * stretch))
    sigma = math.sqrt(event.variance) * stretch
    if sigma > 100:  # the lattice is far finer than the noise
        return stats.norm.cdf((z + 0.5) / sigma)
    support = np.arange(-math.ceil(12 * sigma), math.ceil(12 * sigma) + 1)
    weights = np.exp(-0.5 * (support / sigma) ** 2)
    return np.r_[0.0, np.cumsum(weights)][np.searchsorted(support, z, "right")] / weights.sum()
