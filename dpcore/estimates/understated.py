"""How much too small standard errors are if synthetic records are analysed like a survey.

Such standard errors include sampling, but not noise.  The slope of one column on another is a weighted
sum of the cells of their table, so both parts of its error are known:

    sampling^2 = sum w^2 p / n,        privacy^2 = variance of sum w count / n^2,
    understated by sqrt(1 + privacy^2 / sampling^2)

with shares p, n records, and w = (x - mean x) (y - mean y - slope (x - mean x)) / variance of x.

>>> from dpcore.post.tables.margins import Margin
>>> table = np.array([[300.0, 200.0], [100.0, 400.0]])
>>> noisy = Agreement((2, 2), [Margin((0, 1), table, 30.0**2)], 1000.0)
>>> understated(noisy, [np.arange(2.0)] * 2, 1000).round(1).tolist()
[2.4]
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from dpcore.arrays import Floats
from dpcore.post.tables.consistency import Agreement


def understated(agreement: Agreement, scores: Sequence[Floats], rows: float) -> Floats:
    """For each pair of columns that were measured together, the factor by which errors are too small.

    ``scores``: for each attribute, the numeric value of each cell; ``rows``: the survey's number of
    records.
    """
    found = [
        (1 + slope.privacy / slope.sampling) ** 0.5 for slope in slopes(agreement, scores, rows)
    ]
    return np.array(found)


class Slope(NamedTuple):
    """The slope of one column on another: its derivative ``weights`` by the cells of their table, and
    both parts of its variance."""

    pair: tuple[int, int]
    weights: Floats
    sampling: float
    privacy: float


def slopes(agreement: Agreement, scores: Sequence[Floats], rows: float) -> Iterator[Slope]:
    """The slopes of all pairs of columns that were measured together, if the first one varies."""
    for pair in combinations(range(len(scores)), 2):
        if agreement.covers(pair):
            table = agreement.margin(pair).table
            shares = np.maximum(table, 0.0) / max(float(np.maximum(table, 0.0).sum()), 1e-300)
            weights = _weights(shares, scores[pair[0]], scores[pair[1]])
            sampling = float(np.sum(weights**2 * shares)) / rows
            if sampling > 0:
                privacy = agreement.combination_variance({pair: weights}) / rows**2
                yield Slope(pair, weights, sampling, privacy)


def _weights(shares: Floats, x: Floats, y: Floats) -> Floats:
    """The derivative of the slope of y on x by the share of each cell; zero if x is constant."""
    x = (x - shares.sum(axis=1) @ x)[:, None]
    y = y - shares.sum(axis=0) @ y
    spread = float(np.sum(shares * x**2))
    if spread <= 0:
        return np.zeros(shares.shape)
    slope = float(np.sum(shares * x * y)) / spread
    return np.asarray(x * (y - slope * x) / spread)
