"""A smooth density of numbers inside wide bins, which has the records' counts in the bins.

Three in a hundred people are taller than 185, in a bin that ends at 210.  If they were spread evenly
over it, as many people would be 205 as 186; the neighbouring bins show that the density falls.  Here
each bin is cut into small cells, and the logarithm of the density is as nearly a straight line as the
counts of the bins allow:

    minimise  - log likelihood of the bins' counts  +  SMOOTHNESS * integral of (log density)''^2

so the density has no jumps at edges.  In the first and the last bin, the logarithm is a straight
line: with the curvature of a heavy tail, it would rise again at the end.  Only the shape of the density
inside each bin is used: no record changes its bin.

Source: the penalised composite link model, P. H. C. Eilers, Statistical Modelling 7 (2007), 239-254;
as in S. Rizzi, J. Gampe and P. H. C. Eilers, American Journal of Epidemiology 182 (2015), 138-147.

>>> edges = np.array([0.0, 1.0, 2.0, 10.0])
>>> counts = np.array([4000, 2000, 2000])
>>> ends, cumulative = smooth_density(edges[:-1], edges[1:], np.diff(edges), counts)
>>> bool(0.85 < np.interp(5.0, ends, cumulative) < 0.99)  # 0.844 if the last bin were even
True
"""

from __future__ import annotations

import numpy as np

from dpcore.arrays import Floats, Integers

SMOOTHNESS = 3.0
"""The smoothness penalty on the log density, in units of the interquartile range."""

STRAIGHT = 1e4
"""The smoothness penalty in the first and the last bin, where the density is nearly exponential."""

TO_EVEN = 1e-6
"""A weak penalty towards an even density, for bins that the data do not determine."""

GAPS = 1e-3, 1e3
"""The smallest and largest distance of small cells, in interquartile ranges; beyond, digits are lost."""

MOST_BINS = 100

IN_BIN, IN_TAIL = 6, 32
"""The number of small cells of a bin as wide as its narrowest neighbour, and the most of any bin."""

ROUNDS = 50

LARGEST_STEP = 2.0
"""The largest change of the log density in one round."""


def smooth_density(
    lower: Floats, upper: Floats, widths: Floats, counts: Floats | Integers
) -> tuple[Floats, Floats]:
    """Edges (k + 1,) of small cells and cumulative shares (k + 1,) at them.

    Args:
        lower, upper: (bins,) ascending intervals; there may be gaps between them, which stay empty.
        widths: (bins,) of an even density, for example how many numbers each bin contains.
        counts: (bins,) not negative.
    """
    parts = _cut(lower, upper)
    edges = np.concatenate(parts)
    bins = np.repeat(np.arange(len(parts)), [len(part) - 1 for part in parts])
    inside = np.ones(len(edges) - 1, dtype=bool)  # not between the bins
    inside[np.cumsum([len(part) for part in parts])[:-1] - 1] = False
    length, centres = np.diff(edges)[inside], ((edges[1:] + edges[:-1]) / 2)[inside]
    size = length * (widths / (upper - lower))[bins]
    shares = np.zeros(len(edges) - 1)
    shares[inside] = size * np.exp(_fitted(centres, size, bins, counts))
    cumulative = np.r_[0.0, np.cumsum(shares)]
    return edges, cumulative / cumulative[-1]


def _cut(lower: Floats, upper: Floats) -> list[Floats]:
    """The edges of the small cells of each bin; in the outer bins cells grow with the distance."""
    width = upper - lower
    before, after = np.r_[np.inf, width[:-1]], np.r_[width[1:], np.inf]
    cells = np.clip(np.ceil(IN_BIN * width / np.minimum(before, after)), IN_BIN, IN_TAIL)
    parts = [
        np.linspace(low, high, int(number) + 1)
        for low, high, number in zip(lower, upper, cells, strict=True)
    ]
    for end, neighbour in ((0, 1), (-1, -2)) if len(parts) > 1 else ():
        first = width[neighbour] / IN_BIN
        if width[end] > first * IN_TAIL:
            away = np.r_[0.0, np.geomspace(first, width[end], IN_TAIL)]
            parts[end] = upper[0] - away[::-1] if end == 0 else lower[-1] + away
    return parts


def _fitted(centres: Floats, size: Floats, bins: Integers, counts: Floats | Integers) -> Floats:
    """The log density (k,) in small cells, fitted by Fisher scoring."""
    # The logarithm of an empty bin would be minus infinity.
    observed = np.asarray(counts, dtype=np.float64) + 0.5
    shared = np.bincount(bins, size)
    even: Floats = np.log(observed / shared)[bins]
    density = even
    bends = _bends(centres / _quartiles(observed / shared, centres, bins))
    outer = (bins[2:] == 0) | (bins[:-2] == len(counts) - 1)
    penalty = (bends.T * np.where(outer, STRAIGHT, SMOOTHNESS)) @ bends
    penalty += TO_EVEN * np.eye(len(size))
    of_bin = (bins == np.arange(len(counts))[:, None]).astype(np.float64)
    for _ in range(ROUNDS):
        mass = of_bin * (size * np.exp(density))
        expected = mass.sum(axis=1)
        weighted = mass.T / expected
        wanted = weighted @ (observed - expected + mass @ density) + TO_EVEN * even
        step = np.linalg.solve(weighted @ mass + penalty, wanted) - density
        density = density + step * min(1.0, LARGEST_STEP / max(np.abs(step).max(), 1e-300))
        if np.abs(step).max() < 1e-4:
            break
    # Only its shape is used, and its exponential must be finite.
    return np.asarray(density - density.max())


def _bends(centres: Floats) -> Floats:
    """The matrix (k - 2, k) from a function's values to its second derivatives times root distances."""
    gaps = np.clip(np.diff(centres), *GAPS)
    slopes = np.diff(np.eye(len(centres)), axis=0) / gaps[:, None]
    across = (gaps[1:] + gaps[:-1]) / 2
    return np.asarray(np.diff(slopes, axis=0) / np.sqrt(across)[:, None])


def _quartiles(density: Floats, centres: Floats, bins: Integers) -> float:
    """The approximate interquartile range, but at least the width of the smallest bin."""
    shares = np.cumsum(density[bins] * np.gradient(centres))
    lower, upper = np.interp([0.25, 0.75], shares / shares[-1], centres)
    return float(max(upper - lower, np.diff(centres).min()))
