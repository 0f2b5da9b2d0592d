"""Distances of synthetic records from real ones: for public test tables, never for publication.

These distances are computed from real records without noise, so they reveal something about them.
Use them for public tables, or show them only to people who may see the survey.

    total variation of a w-way margin = sum over cells |share of real - share of synthetic| / 2

It lies between 0 (the tables agree) and 1 (they share no cell), and is the largest difference in
the share of any set of cells.  ``margin_distances`` gives it for all sets of w columns, and
``margin_errors`` its mean and maximum.  Numeric columns are also compared by their quantiles and rank
correlations, without cells.

>>> import numpy as np
>>> real = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
>>> synthetic = np.array([[0, 0], [0, 0], [1, 1], [1, 1]])
>>> margin_errors(real, synthetic, (2, 2), 1), margin_errors(real, synthetic, (2, 2), 2)
(MarginErrors(mean=0.0, worst=0.0), MarginErrors(mean=0.5, worst=0.5))
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from dpcore.arrays import Floats, Integers

LARGEST_DENSE = 2**22
"""Tables of more cells than this are compared through their occupied cells."""


class MarginErrors(NamedTuple):
    """Mean and worst total variation over all margins of one width."""

    mean: float
    worst: float


def margin_errors(
    real: Integers, synthetic: Integers, sizes: Sequence[int], ways: int
) -> MarginErrors:
    """Total variation over all margins of ``ways`` columns; see ``margin_distances``."""
    errors = list(margin_distances(real, synthetic, sizes, ways).values())
    return MarginErrors(float(np.mean(errors)), float(np.max(errors)))


def margin_distances(
    real: Integers, synthetic: Integers, sizes: Sequence[int], ways: int
) -> Mapping[tuple[int, ...], float]:
    """Total variation of the margin of every ``ways`` columns, exactly, by their positions.

    ``real``: (n, k) and ``synthetic``: (m, k) codes with 0 <= codes[:, a] < sizes[a], n and m
    positive.
    """
    if not 1 <= ways <= len(sizes):
        raise ValueError(f"ways must lie between 1 and the {len(sizes)} columns, not {ways}")
    one, other = _columns(real, sizes, "real"), _columns(synthetic, sizes, "synthetic")
    both = np.concatenate([one, other], axis=1)
    weights = np.repeat([1.0 / one.shape[1], -1.0 / other.shape[1]], [one.shape[1], other.shape[1]])
    distances = {}
    for chosen in combinations(range(len(sizes)), ways):
        cells, count = _cells(both, chosen, sizes)
        excess = np.bincount(cells, weights, minlength=count)
        distances[chosen] = float(np.abs(excess).sum() / 2)
    return distances


def rank_correlations(values: Floats) -> Floats:
    """(k, k) Spearman correlations of the columns of ``values`` (n, k); NaN is null.

    Ranks are taken among a column's non-null values, ties averaged; two columns are compared over the
    records that have both values.  If a column is constant there, the correlation is 0.
    """
    from scipy.stats import rankdata  # slow to import, and only an evaluation ranks records

    ranks = rankdata(values, axis=0, nan_policy="omit")
    there = (~np.isnan(values)).astype(np.float64)
    centred = np.where(there > 0, ranks - len(values) / 2, 0.0)
    count = np.maximum(there.T @ there, 1)
    mean = centred.T @ there / count
    covariance = centred.T @ centred / count - mean * mean.T
    variance = (centred**2).T @ there / count - mean**2
    scale = np.sqrt(variance * variance.T)
    defined = scale > 1e-9 * len(values) ** 2
    return np.divide(covariance, scale, out=np.zeros_like(scale), where=defined)


class QuantileErrors(NamedTuple):
    """``real`` and ``synthetic`` quantiles of one column, and their largest difference.

    ``largest`` is in standard deviations of the real values; infinite if these are all equal and the
    quantiles differ.
    """

    real: Floats
    synthetic: Floats
    largest: float


def quantile_errors(real: Floats, synthetic: Floats, levels: Sequence[float]) -> QuantileErrors:
    """Quantiles of ``real`` (n,) and ``synthetic`` (m,) values, n and m positive, none of them NaN."""
    ours, theirs = (np.quantile(values, levels) for values in (real, synthetic))
    gap, spread = float(np.abs(theirs - ours).max()), float(np.std(real))
    return QuantileErrors(ours, theirs, gap / spread if spread else math.inf if gap else 0.0)


def _columns(codes: Integers, sizes: Sequence[int], name: str) -> Integers:
    """(k, n) columns of checked codes."""
    table = np.asarray(codes)
    if table.ndim != 2 or table.shape[1] != len(sizes) or len(table) == 0:
        raise ValueError(f"{name} must have shape (rows, {len(sizes)}), not {table.shape}")
    if np.any(table < 0) or np.any(table >= np.asarray(sizes)):
        raise ValueError(f"{name} must have codes between 0 and the size of their column minus one")
    return np.ascontiguousarray(table.T, dtype=np.int64)


def _cells(columns: Integers, chosen: Sequence[int], sizes: Sequence[int]) -> tuple[Integers, int]:
    """(n,) cell numbers of records in the table of the chosen columns, and the number of cells.

    Row-major while the table is small; beyond ``LARGEST_DENSE`` the occupied cells are renumbered, so
    that no number exceeds the records times the size of one column.
    """
    cells, count = np.zeros(columns.shape[1], dtype=np.int64), 1
    for column in chosen:
        cells, count = cells * sizes[column] + columns[column], count * sizes[column]
        if count > LARGEST_DENSE:
            occupied, cells = np.unique(cells, return_inverse=True)
            count = len(occupied)
    return cells, count
