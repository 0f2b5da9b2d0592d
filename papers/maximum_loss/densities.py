"""The privacy loss as a difference of log densities (Askin, Kutta & Dette 2022).

For a discrete or continuous mechanism the loss of a pair of inputs is a supremum over single points
instead of all outcomes (their Theorem 1):

    loss(t) = | ln f(t) - ln f'(t) |          alpha = sup over t and over pairs of neighbours

Densities are estimated by ``tkde`` (kernel) or ``tdde`` (frequency), both raised to a floor, which
limits the error of logarithms.  ``pair_loss`` maximises the estimated loss over t, and ``loss_at``
measures it again at this point on fresh draws, with a confidence bound.

The bound is asymptotic and for pure alpha; the bound of ``dpcore.audit.bounds`` always holds.  Kinks of
a density bias its kernel estimate by the order of the bandwidth, so points where the losses by
bandwidths h and 2h disagree are not searched.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from dpcore.arrays import Floats

MOST_ATOMS = 512
"""A sample with no more distinct values than this comes from a discrete law."""

POINTS = 200

ENOUGH = 100
"""The loss is searched where a value or bandwidth has this many draws; its error is then about 14%."""

_BLOCK = 2**21


def tkde(sample: Floats, points: Floats, bandwidth: float, floor: float = 0.0) -> Floats:
    """Truncated kernel density estimate with a Gaussian kernel: (k,) values, at least ``floor``.

    ``sample``: (n,) or (n, d); ``points``: (k,) or (k, d); AKD 2022, Algorithm 1.
    """
    sample, points = (a.reshape(len(a), -1) for a in (sample, points))
    size, dimensions = sample.shape
    total = np.zeros(len(points))
    step = max(1, _BLOCK // (max(1, len(points)) * dimensions))
    for start in range(0, size, step):
        gaps = (points[:, None, :] - sample[None, start : start + step, :]) / bandwidth
        total += np.exp(-0.5 * np.sum(gaps**2, axis=2)).sum(axis=1)
    norm = size * (bandwidth * math.sqrt(2 * math.pi)) ** dimensions
    return np.asarray(np.maximum(total / norm, floor))


def tdde(sample: Floats, points: Floats, floor: float = 0.0) -> Floats:
    """Truncated discrete density estimate: for each of ``points`` (k,), the share of ``sample`` (n,)
    that equals it, or ``floor`` if that is larger."""
    ordered = np.sort(sample)
    counts = np.searchsorted(ordered, points, "right") - np.searchsorted(ordered, points, "left")
    return np.asarray(np.maximum(counts / len(sample), floor))


def rule_of_thumb(*samples: Floats) -> float:
    """Bandwidth 1.06 s n^(-1/5), s the smaller of the standard deviation and IQR / 1.349."""
    widths = []
    for sample in samples:
        quarters = np.quantile(sample, [0.25, 0.75])
        spread = min(float(sample.std()), float(quarters[1] - quarters[0]) / 1.349)
        widths.append(spread or float(sample.std()))
    return float(1.06 * max(min(widths), 1e-300) * min(map(len, samples)) ** -0.2)


@dataclass(frozen=True, eq=False)
class LossCurve:
    """The estimated loss function of a pair: ``losses`` (k,) at ascending ``points`` (k,).

    NaN where it is not searched; ``bandwidth`` None: the law is discrete.
    """

    points: Floats
    losses: Floats
    bandwidth: float | None = None

    @property
    def loss(self) -> float:
        """The largest estimated loss."""
        return float(np.nanmax(self.losses, initial=0.0))

    @property
    def point(self) -> float:
        """The point where the largest estimated loss is attained."""
        return float(self.points[np.argmax(np.nan_to_num(self.losses))])


def pair_loss(near: Floats, far: Floats) -> LossCurve:
    """The estimated loss between two samples of scores (n,), and its maximum (AKD's DPL).

    Discrete laws are searched over all observed values, continuous ones over a grid between the outer
    half per cent.  The floor is ``ENOUGH`` draws at a value or in one bandwidth: with fewer, a logarithm
    is mostly noise.
    """
    together = np.concatenate([near, far])
    together = together[np.isfinite(together)]
    if len(together) == 0:
        return LossCurve(np.zeros(1), np.zeros(1))
    values = np.unique(together)
    size = min(len(near), len(far))
    if len(values) <= MOST_ATOMS:
        least = ENOUGH / size
        logs = [np.log(tdde(side, values, least)) for side in (near, far)]
        return LossCurve(values, _losses(logs, math.log(least)))
    low, high = np.quantile(together, [0.005, 0.995])
    width, points = rule_of_thumb(near, far), np.linspace(low, high, POINTS)
    least = ENOUGH / (size * width)
    near, far = near[np.isfinite(near)], far[np.isfinite(far)]
    fine, coarse = (
        [np.log(tkde(side, points, factor * width, least)) for side in (near, far)]
        for factor in (1, 2)
    )
    losses, coarser = _losses(fine, math.log(least)), np.abs(coarse[0] - coarse[1])
    noise = np.sqrt((np.exp(-fine[0]) + np.exp(-fine[1])) / (2 * math.sqrt(math.pi) * size * width))
    # A difference above three standard errors is bias near a kink.
    losses = np.where(np.abs(losses - coarser) <= 3 * noise + 0.02, losses, np.nan)
    return LossCurve(points, losses, width)


def _losses(logs: Sequence[Floats], floor: float) -> Floats:
    """The losses |ln f - ln f'|; NaN where both densities are at the floor."""
    losses, above = np.abs(logs[0] - logs[1]), [side > floor for side in logs]
    most = losses[above[0] & above[1]].max(initial=0.0)
    # With one side at the floor the loss is only bounded from below: it counts if it is the largest.
    known = (above[0] & above[1]) | ((above[0] | above[1]) & (losses > most))
    return np.where(known, losses, np.nan)


def loss_at(near: Floats, far: Floats, found: LossCurve, level: float) -> tuple[float, float]:
    """The loss at a given point on fresh scores (N,), and its asymptotic lower bound.

    Discrete: standard error sqrt((1/f + 1/f' - 2) / N).  Continuous: sqrt(int K^2 (1/f + 1/f') /
    (N h)) with an undersmoothed h, so that the bias is of smaller order (AKD 2022, section IV).
    """
    size, point = min(len(near), len(far)), np.array([found.point])
    if found.bandwidth is None:
        densities = [float(tdde(side, point, 1.0 / size)[0]) for side in (near, far)]
        variance = (1 / densities[0] + 1 / densities[1] - 2) / size
    else:
        width = found.bandwidth * size**-0.03
        sides = [side[np.abs(side - found.point) < 40 * width] for side in (near, far)]
        shares = [len(part) / len(side) for part, side in zip(sides, (near, far), strict=True)]
        densities = [
            max(share and float(tkde(part, point, width)[0]) * share, 1.0 / (size * width))
            for part, share in zip(sides, shares, strict=True)
        ]
        kernel = 1 / (2 * math.sqrt(math.pi))
        variance = kernel * (1 / densities[0] + 1 / densities[1]) / (size * width)
    estimate = abs(math.log(densities[0]) - math.log(densities[1]))
    error = math.sqrt(max(variance, 0.0))
    return estimate, max(0.0, estimate - float(special.ndtri(level)) * error)
