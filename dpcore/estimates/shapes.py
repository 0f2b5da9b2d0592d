"""The shape of each numeric column: how it is distributed, rounded, and heaped on single values."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from dpcore.arrays import Floats

BARS = 40
"""At most this many bars of a histogram."""

POINTS = 160
"""Points of a distribution function."""

MANY = 30
"""A column of more values in the real table has atoms; of fewer, all values are."""

ATOM = 0.01
"""The least share of real records that have the value of an atom."""

TOWER = 0.1
"""The least share of real records of an atom that the bars leave out."""

HEAPED = 0.1
"""A step is named if this share more of the values are its multiples than if they were spread evenly."""


LEAST_MULTIPLES = 5
"""Different values other than 0 that are multiples of a step."""


@dataclass(frozen=True)
class Rounding:
    """``decimals``: places that all values have, None if more than six; ``multiples``: share of the
    values other than 0 that are multiples of the step; ``atoms``: share that are its atoms."""

    decimals: int | None
    multiples: float
    atoms: float


@dataclass(frozen=True, eq=False)
class Curves:
    """What a plot shows: shares of the records in the bars between ``edges`` (k + 1,), and of those at
    most ``points``; ``left_out``: values that would tower above the bars, with both shares."""

    edges: Floats
    points: Floats
    bars: tuple[Floats, Floats]
    at_most: tuple[Floats, Floats]
    left_out: tuple[tuple[float, float, float], ...]


@dataclass(frozen=True)
class Shape:
    """One numeric column, null left out.

    ``distance``: largest difference of the distribution functions; ``step``: the number of which more
    real values are multiples than by chance, or the last decimal; ``atoms``: how many values have at
    least one in a hundred real records (0 where there are few values); ``worst_atom`` has the largest
    difference of shares, which are ``worst_shares``.
    """

    distance: float
    step: float
    atoms: int
    real: Rounding
    synthetic: Rounding
    worst_atom: float | None
    worst_shares: tuple[float, float] | None
    curves: Curves = field(repr=False)


def compared_shapes(real: Floats, synthetic: Floats) -> Shape:
    """The shapes of ``real`` (n,) and ``synthetic`` (m,) values, n and m positive, none of them NaN."""
    step, (values, counts) = _step(real), np.unique(real, return_counts=True)
    atoms = values[counts >= ATOM * len(real)] if len(values) > MANY else values[:0]
    shares = np.array([[np.mean(t == atom) for atom in atoms] for t in (real, synthetic)])
    worst = int(np.argmax(np.abs(shares[0] - shares[1]))) if len(atoms) else None
    both = np.unique(np.concatenate([real, synthetic]))
    distance = np.abs(_at_most(real, both) - _at_most(synthetic, both)).max()
    rounded = [
        Rounding(decimals(t), _multiples(t, step), float(found.sum()))
        for t, found in zip((real, synthetic), shares, strict=True)
    ]
    return Shape(
        float(distance),
        step,
        len(atoms),
        rounded[0],
        rounded[1],
        None if worst is None else float(atoms[worst]),
        None if worst is None else (float(shares[0][worst]), float(shares[1][worst])),
        _curves(real, synthetic, atoms[shares[0] >= TOWER]),
    )


def decimals(values: Floats) -> int | None:
    """Places after the decimal point that all values have at most; None if more than six.

    >>> decimals(np.array([1.0, 2.25])), decimals(np.array([1 / 3])), decimals(np.array([]))
    (2, None, 0)
    """
    for places in range(7):
        if np.all(
            np.abs(values - np.round(values, places)) <= 1e-13 * np.maximum(np.abs(values), 1)
        ):
            return places
    return None


def _step(values: Floats) -> float:
    """The step of which most more values are multiples than by chance."""
    places = decimals(values)
    last = 10.0 ** -(6 if places is None else places)
    several = np.unique(values[values != 0])
    if places is None:
        return last
    steps = [last * factor * 10**power for power in range(6) for factor in (1, 5)][1:]
    # A single value is an atom, whatever its multiples.
    steps = [step for step in steps if _multiples(several, step) * len(several) >= LEAST_MULTIPLES]
    excess = {step: _multiples(values, step) - last / step for step in steps}
    best = max(excess, key=lambda step: excess[step], default=last)
    return best if excess.get(best, 0.0) >= HEAPED else last


def _multiples(values: Floats, step: float) -> float:
    """The share of the values other than 0 that are multiples of the step."""
    quotient = values[values != 0] / step
    return float(np.mean(np.abs(quotient - np.round(quotient)) <= 1e-6)) if len(quotient) else 1.0


def _at_most(values: Floats, points: Floats) -> Floats:
    """(k,) shares of the values that are at most each point."""
    return np.searchsorted(np.sort(values), points, side="right") / len(values)


def _curves(real: Floats, synthetic: Floats, towers: Floats) -> Curves:
    """Over the middle 99% of the real values; what lies beyond is in no bar."""
    low, high = (float(np.quantile(real, level)) for level in (0.005, 0.995))
    if low == high:
        low, high = low - 0.5, high + 0.5
    whole = decimals(real) == 0
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
    return Curves(
        edges,
        points,
        (shares[0], shares[1]),
        (_at_most(real, points), _at_most(synthetic, points)),
        tuple(left_out),
    )
