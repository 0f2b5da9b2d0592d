"""Linear regressions of two tables compared: coefficients, and the overlap of their intervals.

    overlap = mean of the parts of both 95% confidence intervals that lie in their intersection

(Karr et al., 2006, The American Statistician 60).
"""

from __future__ import annotations

import numpy as np

from dpcore.arrays import Floats

NORMAL = 1.96
"""Standard errors of half a 95% interval."""


def overlap(one: tuple[float, float], other: tuple[float, float]) -> float:
    """Of two coefficients with their standard errors; 0 for disjoint intervals, 1 for equal ones.

    >>> overlap((0.0, 1.0), (0.0, 1.0)), overlap((0.0, 1.0), (0.0, 2.0)), overlap((0.0, 1.0), (4.0, 1.0))
    (1.0, 0.75, 0.0)
    """
    if not np.isfinite([*one, *other]).all():
        return 0.0
    ends = [(value - NORMAL * error, value + NORMAL * error) for value, error in (one, other)]
    common = min(high for _, high in ends) - max(low for low, _ in ends)
    lengths = [high - low for low, high in ends]
    if common <= 0 or min(lengths) <= 0:
        return 0.0
    return float(sum(common / length for length in lengths) / 2)


def explained(y: Floats, design: Floats) -> float:
    """The share of the variance of ``y`` (n,) that a design (n, k) explains; NaN is null."""
    known = np.isfinite(design).all(axis=1) & np.isfinite(y)
    if known.sum() < 0.5 * len(y) or np.std(y[known]) == 0:
        return 0.0
    scaled = design[known] / np.maximum(np.abs(design[known]).max(axis=0), 1e-300)
    fit = np.linalg.lstsq(scaled, y[known], rcond=None)[0]
    return 1 - float(np.var(y[known] - scaled @ fit) / np.var(y[known]))


def least_squares(y: Floats, design: Floats) -> tuple[Floats, Floats]:
    """Coefficients (k,) without the intercept, and standard errors.

    NaN where a column is constant, or a combination of those before it.
    """
    known = np.isfinite(design).all(axis=1) & np.isfinite(y)
    found, errors = np.full((2, design.shape[1]), np.nan)
    y, design = y[known], design[known]
    if len(y) <= design.shape[1] + 1:
        return found, errors
    centred = design - design.mean(axis=0)
    scale = np.maximum(centred.std(axis=0), 1e-300)
    diagonal = np.abs(np.diag(np.linalg.qr(centred / scale, mode="r"))) / np.sqrt(len(y))
    used = (diagonal > 1e-6) & (scale > 1e-12)
    if not used.any():
        return found, errors
    q, r = np.linalg.qr(centred[:, used] / scale[used])
    residual = y - y.mean() - q @ (q.T @ y)
    variance = float(residual @ residual) / (len(y) - used.sum() - 1)
    inverse = np.linalg.inv(r)
    found[used] = inverse @ (q.T @ y) / scale[used]
    errors[used] = np.sqrt(variance * (inverse**2).sum(axis=1)) / scale[used]
    return found, errors
