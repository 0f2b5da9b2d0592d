"""How the values of a numeric column are distributed in a real and in a synthetic table."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from dpcore.arrays import Floats

BARS = 40
"""At most this many bars of a histogram."""

POINTS = 160
"""Points of a distribution function."""

MANY = 30
"""Only a column with more different real values than this may have values left out of its bars."""

TOWER = 0.1
"""The least share of the real records with a value that the bars leave out."""


@dataclass(frozen=True, eq=False)
class PlottedShape:
    """What a plot shows: shares of records in the bars between ``edges`` (k + 1,), and at most
    ``points``; ``left_out``: values that would tower above the bars, with both shares."""

    edges: Floats
    points: Floats
    bars: tuple[Floats, Floats]
    at_most: tuple[Floats, Floats]
    left_out: tuple[tuple[float, float, float], ...]


@dataclass(frozen=True)
class Shape:
    """One numeric column, null left out; ``distance``: the largest difference of the distribution
    functions."""

    distance: float
    curves: PlottedShape = field(repr=False)


def compared_shapes(real: Floats, synthetic: Floats) -> Shape:
    """The shapes of ``real`` (n,) and ``synthetic`` (m,) values, n and m positive, none of them NaN."""
    values, counts = np.unique(real, return_counts=True)
    towers = values[counts >= TOWER * len(real)] if len(values) > MANY else values[:0]
    both = np.unique(np.concatenate([real, synthetic]))
    distance = np.abs(_at_most(real, both) - _at_most(synthetic, both)).max()
    return Shape(float(distance), _curves(real, synthetic, towers))


def _at_most(values: Floats, points: Floats) -> Floats:
    """(k,) shares of the values that are at most each point."""
    return np.searchsorted(np.sort(values), points, side="right") / len(values)


def _curves(real: Floats, synthetic: Floats, towers: Floats) -> PlottedShape:
    """Curves over the middle 99% of the real values; the other values are in no bar."""
    low, high = (float(np.quantile(real, level)) for level in (0.005, 0.995))
    if low == high:
        low, high = low - 0.5, high + 0.5
    whole = bool(np.all(real == np.round(real)))
    width = max(np.ceil((high - low + 1) / BARS), 1.0) if whole else (high - low) / BARS
    # Whole numbers lie in the middle of their bar; the last bar holds the upper end.
    edges = np.arange(low - 0.5 * whole, high + (0.5 if whole else 0.25) * width + whole, width)
    edges[-1] = max(edges[-1], high)
    points = np.linspace(edges[0], edges[-1], POINTS)
    tables = real, synthetic
    shares = [np.histogram(t[~np.isin(t, towers)], edges)[0] / len(t) for t in tables]
    left_out = [
        (float(v), float(np.mean(real == v)), float(np.mean(synthetic == v))) for v in towers
    ]
    return PlottedShape(
        edges,
        points,
        (shares[0], shares[1]),
        (_at_most(real, points), _at_most(synthetic, points)),
        tuple(left_out),
    )
