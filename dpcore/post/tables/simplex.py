"""Tables made non-negative with a given total, and rounded to whole numbers.

Noise makes some cells negative.  ``project_to_simplex`` finds the nearest table (least squares) that
is non-negative and has the known total; ``round_to_total`` then rounds it to whole numbers without
changing the total.

>>> import numpy as np
>>> nearest = project_to_simplex(np.array([6.2, 4.1, -1.3]), total=10)
>>> nearest.round(6).tolist()
[6.05, 3.95, 0.0]
>>> round_to_total(nearest, 10).tolist()
[6, 4, 0]
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from dpcore.arrays import Floats, Integers


def project_to_simplex(values: ArrayLike, total: ArrayLike) -> Floats:
    """The nearest non-negative vector with the given sum, for each vector along the last axis.

    ``values``: (..., d), any sign; ``total``: one, or (...); returns (..., d).  Exact, by
    sorting: the answer is max(values - theta, 0), where theta makes the sum right; with the values
    in descending order, the positive cells are the longest head whose smallest value still exceeds
    the head's theta (Held, Wolfe & Crowder 1974; Duchi et al. 2008, Figure 1).
    """
    vectors = np.asarray(values, dtype=np.float64)
    totals = _checked_totals(total)
    if vectors.ndim == 0 or vectors.shape[-1] == 0:
        raise ValueError(f"values must hold at least one cell, not have shape {vectors.shape}")
    if not np.all(np.isfinite(vectors)):
        raise ValueError("values must be finite")
    # A common shift does not change the answer; it keeps the cumulative sums small.
    vectors = vectors - vectors.max(axis=-1, keepdims=True)
    descending = -np.sort(-vectors, axis=-1)
    heads = np.arange(1, vectors.shape[-1] + 1)
    thetas = (np.cumsum(descending, axis=-1) - totals) / heads
    # The condition holds for a head and fails for all longer ones; the first cell always belongs to
    # the head (if total=0 it stays zero), so the number of places where it holds is the length.
    positive = np.maximum(np.sum(descending > thetas, axis=-1, keepdims=True), 1)
    theta = np.take_along_axis(thetas, positive - 1, axis=-1)
    return np.asarray(np.maximum(vectors - theta, 0.0))


def round_to_total(values: ArrayLike, total: ArrayLike) -> Integers:
    """Non-negative integers in proportion to ``values`` with the sum ``total``, exactly.

    Each vector along the last axis is rounded by largest remainders (Hamilton's method): each cell gets
    the whole part of its share of the total, and the cells with the largest remainders get one more;
    among equal remainders the first.  ``values``: (..., d), not negative; all zero means equal shares;
    ``total``: one, or (...).  Every cell is less than one away from its share.
    """
    shares = np.asarray(values, dtype=np.float64)
    totals = _checked_totals(total)
    if np.any(totals != np.rint(totals)):
        raise ValueError(f"total must be a whole number, not {total!r}")
    if shares.size == 0:
        raise ValueError("values must hold at least one cell")
    if not np.all(np.isfinite(shares)) or np.any(shares < 0):
        raise ValueError("values must be finite and not negative")
    largest = shares.max(axis=-1, keepdims=True)
    # Dividing by the largest first keeps the sum of very large or very small values finite.
    weights = np.divide(shares, largest, out=np.ones_like(shares), where=largest > 0)
    quotas = weights * (totals / weights.sum(axis=-1, keepdims=True))
    # A share such as 3 - 1e-13 is a whole 3 in exact arithmetic; halves of large totals are not.
    near = np.rint(quotas)
    quotas = np.where(np.abs(quotas - near) <= np.maximum(1e-9, 1e-14 * near), near, quotas)
    whole = np.floor(quotas)
    result = whole.astype(np.int64)
    missing = totals.astype(np.int64) - result.sum(axis=-1, keepdims=True)
    order = np.argsort(whole - quotas, axis=-1, kind="stable")
    ranks = np.empty_like(order)
    np.put_along_axis(ranks, order, np.arange(shares.shape[-1]), axis=-1)
    return np.asarray(result + (ranks < missing))


def _checked_totals(total: ArrayLike) -> Floats:
    """The totals as (..., 1); they must be finite and not negative."""
    totals = np.asarray(total, dtype=np.float64)[..., None]
    if not np.all(np.isfinite(totals)) or np.any(totals < 0):
        raise ValueError(f"total must be finite and not negative, not {total!r}")
    return totals
