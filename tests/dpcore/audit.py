"""A lower bound on the privacy loss of a mechanism, from samples alone, and the laws of its noise.

The bound (METHODS n, finite samples): choose an event S on one sample, count how often it happens
on fresh ones.  (alpha, beta)-DP means P(S) <= e^alpha P'(S) + beta, so with Clopper-Pearson limits

    alpha >= ln((lower limit of P(S) - beta) / upper limit of P'(S))      except with chance `error`.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from scipy.special import logsumexp

from dpcore.audit.scores import stated_ratio
from dpcore.events import (
    Event,
    ExponentialEvent,
    GaussianEvent,
    LaplaceEvent,
    RandomLaplaceEvent,
    SampledEvent,
    SmoothLaplaceEvent,
    TableEvent,
)

Floats = NDArray[np.float64]


def log_ratio(
    event: Event, draws: Floats, near: Floats, far: Floats, threshold: float = math.nan
) -> Floats:
    """(times,) log of how much likelier each draw (times, size) is from ``near`` than from ``far``.

    Absent cells (NaN) were at most the threshold.  Only a good score: any score gives a valid bound.
    """
    if isinstance(event, ExponentialEvent):
        logs = [-side.reshape(event.selections, -1) / float(event.scale) for side in (near, far)]
        ratios = np.subtract(*(log - logsumexp(log, axis=1, keepdims=True) for log in logs))
        return ratios[np.arange(len(ratios)), draws.astype(int)].sum(axis=1)
    if isinstance(event, GaussianEvent):
        centre, width = (near + far) / 2, float(event.variance)
        return (draws - centre) @ (near - far) / width
    if isinstance(event, SampledEvent):
        (score,) = stated_ratio(event, near, far)
        return score(draws)
    if isinstance(event, SmoothLaplaceEvent):
        return draws[:, 0] * ((near - far) @ np.arange(len(near)))
    if isinstance(event, TableEvent):  # a higher count makes higher answers likelier
        return draws @ (near - far)
    scale = float(event.scale)
    present = (np.abs(draws - far) - np.abs(draws - near)) / scale
    absent = log_cdf(scale, threshold - near) - log_cdf(scale, threshold - far)
    return np.where(np.isnan(draws), absent, present).sum(axis=1)


def log_cdf(scale: float, z: Floats) -> Floats:
    """log P(Z <= z) of discrete Laplace noise, z a whole number."""
    a = math.exp(-1 / scale)
    upper = np.log1p(-(a ** (np.maximum(z, 0) + 1)) / (1 + a))
    return np.where(np.asarray(z) >= 0, upper, np.minimum(z, 0) / scale - math.log1p(a))


def lower_bound(
    search: tuple[Floats, Floats], fresh: tuple[Floats, Floats], beta: float, error: float
) -> float:
    """A number that alpha is not below, except with probability ``error``.

    ``search`` and ``fresh``: scores of draws from two neighbouring tables; S is "the score is at
    least s", with the s that looks best on the search sample.
    """
    cuts = np.unique(np.quantile(np.concatenate(search), np.linspace(0, 1, 400)))
    best = max(cuts, key=lambda cut: _bound(search, cut, beta, 0.01))
    return _bound(fresh, best, beta, error)


def _bound(scores: tuple[Floats, Floats], cut: float, beta: float, error: float) -> float:
    # Scores are sums of floats; equal ones must not be torn apart by their rounding.
    hits = [int(np.count_nonzero(side >= cut - 1e-9)) for side in scores]
    low = stats.beta.ppf(error / 2, hits[0], len(scores[0]) - hits[0] + 1) if hits[0] else 0.0
    rest = len(scores[1]) - hits[1]
    high = stats.beta.ppf(1 - error / 2, hits[1] + 1, rest) if rest else 1.0
    return math.log((low - beta) / high) if low > beta else -math.inf


def goodness_of_fit(noise: Floats, event: Event, stretch: float = 1.0) -> float:
    """The p-value of a chi-square test of noise against the event's law, stretched by a factor."""
    cuts = np.unique(np.quantile(noise, np.linspace(0, 1, 41)[1:-1], method="lower"))
    expected = np.diff(noise_cdf(event, cuts, stretch), prepend=0.0, append=1.0) * noise.size
    counts = np.diff(np.searchsorted(np.sort(noise), cuts, "right"), prepend=0, append=noise.size)
    statistic = float(((counts - expected) ** 2 / np.maximum(expected, 1e-3)).sum())
    return float(stats.chi2.sf(statistic, len(cuts)))


def noise_cdf(event: Event, z: Floats, stretch: float = 1.0) -> Floats:
    """P(Z <= z) for whole numbers z, from the definition of the law."""
    if isinstance(event, LaplaceEvent | RandomLaplaceEvent):
        return np.exp(log_cdf(float(event.scale) * stretch, z))
    sigma = math.sqrt(event.variance) * stretch
    if sigma > 100:  # the lattice is far finer than the noise
        return stats.norm.cdf((z + 0.5) / sigma)
    support = np.arange(-math.ceil(12 * sigma), math.ceil(12 * sigma) + 1)
    weights = np.exp(-0.5 * (support / sigma) ** 2)
    return np.r_[0.0, np.cumsum(weights)][np.searchsorted(support, z, "right")] / weights.sum()
