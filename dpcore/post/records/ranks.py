"""Positions of records inside their bins that preserve rank correlations between columns.

Let a person's weight and the household's mean weight both be in [50, 75).  If they are drawn
independently inside these bins, numbers that are nearly equal in the survey are hardly correlated in
the records.  Here each column of numbers has a normal score that its code bounds, and the scores of all
columns together are a normal distribution: a Gaussian copula, of which the codes are a coarsening.

    codes --EM--> correlations of scores --Gibbs--> scores within the bounds of their codes
          --ranks in each bin--> positions

Only the codes are used, so the records contain no more than the noisy tables, and no code changes.  In
each bin the positions of all records are evenly spread, so a column keeps its distribution inside its
bins.  Ranks inside bins are assumed to be related in the same way as between bins.

Cells of a single number (point masses) and null put no bounds on scores if other cells of the column
are wider: people who earn nothing do not affect the correlations of the others' earnings.

Source: the Gaussian copula of ordinal variables, by Gibbs sampling within the bounds of their ranks:
P. D. Hoff, Annals of Applied Statistics 1 (2007), 265-283, section 3.

>>> generator = np.random.default_rng(1)
>>> x = generator.normal(size=(4000, 1)) + 0.3 * generator.normal(size=(4000, 2))
>>> codes = np.searchsorted([-0.7, 0.7], x)
>>> positions = positions_in_bins(codes, np.ones((2, 3), dtype=bool), generator)
>>> in_one_bin = (codes == 1).all(axis=1)
>>> bool(np.corrcoef(positions[in_one_bin].T)[0, 1] > 0.5)
True
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import ndtr, ndtri

from dpcore.arrays import Booleans, Floats, Integers

MOST_FITTED = 20_000
"""Correlations are fitted to at most this many records."""

ROUNDS = 60
"""Rounds of the EM algorithm; correlations are averaged over the second half."""

SWEEPS = 5
"""Sweeps of the Gibbs sampler over all records; from a start within the bounds, few are enough."""

QUICK = 15
"""Rounds of the EM algorithm if the start is near the result."""

SMALLEST = 1e-3
"""The smallest eigenvalue of the correlation matrix."""


def positions_in_bins(
    codes: Integers, wide: Sequence[Booleans], generator: np.random.Generator
) -> Floats:
    """Draw positions (rows, columns), from 0 to below 1, of records in the cells of their codes.

    Args:
        codes: (rows, columns) of columns whose cells are in order; a code beyond the cells is null.
        wide: for each column whether each of its cells (cells,) holds more than one number.
        generator: an ordinary one: nothing here is private.

    Returns:
        Positions; those in one cell are evenly spread.  If fewer than two columns have several
        occupied cells, all positions are independent.
    """
    rows, columns = codes.shape
    bounds = [_bounds(codes[:, c], wide[c]) for c in range(columns)]
    bounded = [c for c in range(columns) if np.isfinite(bounds[c]).any()]
    scores = generator.random((columns, rows))
    if rows > 1 and len(bounded) > 1 and any(wide[c].any() for c in bounded):
        lower, upper = np.stack([bounds[c] for c in bounded], axis=1)
        some = generator.permutation(rows)[:MOST_FITTED]
        correlations = _fitted(lower[:, some], upper[:, some], generator)
        found = _truncated(lower, upper, generator)
        for _ in range(SWEEPS):
            _sweep(found, lower, upper, correlations, generator)
        scores[bounded] = found
    spread = [_spread(codes[:, c], scores[c], generator) for c in range(columns)]
    return np.stack(spread, axis=1) if spread else np.empty((rows, 0))


def _bounds(codes: Integers, wide: Booleans) -> Floats:
    """The bounds (2, rows) of each record's score in a column, from the shares of its cells."""
    used = wide if wide.any() else np.ones(len(wide), dtype=bool)
    counts = np.where(used, np.bincount(codes, minlength=len(wide) + 1)[: len(wide)], 0)
    ends = ndtri(np.r_[0.0, np.cumsum(counts) / max(counts.sum(), 1)])
    own = np.where(codes < len(wide), codes, 0)
    inside = (codes < len(wide)) & used[own]
    return np.where(inside, [ends[own], ends[own + 1]], [[-np.inf], [np.inf]])


def _fitted(lower: Floats, upper: Floats, generator: np.random.Generator) -> Floats:
    """The correlations (columns, columns) of scores that lie between these bounds (columns, rows)."""
    columns = len(lower)
    scores = _truncated(lower, upper, generator)
    bounded = (np.isfinite(lower) | np.isfinite(upper)).astype(np.float64)
    correlations, found = np.eye(columns), np.zeros((columns, columns))
    for done in range(ROUNDS):
        _sweep(scores, lower, upper, correlations, generator)
        # A quick start from records that bound both columns; then EM over all records.
        correlations = _correlations(scores, bounded if done < QUICK else np.ones_like(bounded))
        if done >= ROUNDS // 2:
            found += correlations / (ROUNDS - ROUNDS // 2)
    return found


def _correlations(scores: Floats, bounded: Floats) -> Floats:
    """Correlations over the records that bound both columns (columns, rows), made positive definite."""
    own = scores * bounded
    number = np.maximum(bounded @ bounded.T, 1.0)
    mean, square = own @ bounded.T / number, (own * scores) @ bounded.T / number
    variance = np.maximum(square - mean**2, 1e-12)
    found = (own @ own.T / number - mean * mean.T) / np.sqrt(variance * variance.T)
    np.fill_diagonal(found, 1.0)
    values, vectors = np.linalg.eigh(np.clip(found, -1.0, 1.0))
    found = (vectors * np.maximum(values, SMALLEST)) @ vectors.T
    scale = np.sqrt(np.diag(found))
    return np.asarray(found / np.outer(scale, scale))


def _sweep(
    scores: Floats,
    lower: Floats,
    upper: Floats,
    correlations: Floats,
    generator: np.random.Generator,
) -> None:
    """Draw the scores (columns, rows) of each column in turn, given the others and its bounds."""
    precision = np.linalg.inv(correlations)
    for c in range(len(scores)):
        weights = -precision[c] / precision[c, c]
        weights[c] = 0.0
        mean, scale = weights @ scores, 1 / np.sqrt(precision[c, c])
        drawn = _truncated((lower[c] - mean) / scale, (upper[c] - mean) / scale, generator)
        # Rounding may have moved it beyond a bound.
        scores[c] = np.clip(mean + scale * drawn, lower[c], upper[c])


def _truncated(lower: Floats, upper: Floats, generator: np.random.Generator) -> Floats:
    """Standard normal numbers between bounds, finite also where both lie far in a tail."""
    right = lower > 0  # the distribution function is more precise in its lower tail
    low, high = ndtr(np.where(right, -upper, lower)), ndtr(np.where(right, -lower, upper))
    found = ndtri(low + generator.random(lower.shape) * (high - low))
    found = np.where(right, -found, found)
    nearest = np.where(right, lower, upper)
    return np.where(np.isfinite(found), found, np.where(np.isfinite(nearest), nearest, 0.0))


def _spread(codes: Integers, scores: Floats, generator: np.random.Generator) -> Floats:
    """Positions (rows,) from the ranks of the scores among the records of each code."""
    order = np.lexsort((scores, codes))
    counts = np.bincount(codes) if len(codes) else np.zeros(0, dtype=np.int64)
    first = np.cumsum(counts) - counts
    places = np.empty(len(codes))
    places[order] = np.arange(len(codes)) - first[codes[order]]
    spread = (places + generator.random(len(codes))) / counts[codes]
    return np.minimum(spread, np.nextafter(1.0, 0.0))
