"""The population that is assumed before there is a draw: typical distributions of columns about people.

    categories                  the k-th in the list has a share in proportion to k^-1.5
    a few other numbers         their frequency falls linearly from the first to the last
    counts of events            half are zero, the others exponential: the range is 25 means, or 12 if
                                it has at most 16 numbers
    amounts                     most are near zero: Gamma of shape 2, the range is eight means
    other numbers               most are in the middle: normal, the range is six standard deviations

Bounds of a questionnaire are wide, so a column fills a small part of them, and errors of models grow
with the inverse of its variance: equally frequent cells would promise far too small errors.  In nine
public surveys the range is 6 standard deviations of ages, and 10 to 140 of amounts.  For events of at
most 16 numbers, it is 5 to 18.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from scipy.special import ndtr

from dpcore.arrays import Floats
from dpcore.domain.axes import MOST_EXAMINED, Axis, Bins, Categories, at_most, in_order

Shape = Literal["events", "amounts", "around"]

EVENTS, FEW_EVENTS, AMOUNTS, AROUND = 25, 12, 8, 6
"""The range between the bounds: in means, but for ``AROUND`` in standard deviations."""

FEW = 16
"""The largest range of a few numbers."""

NONE = 0.5
"""The share of people without any event."""

AT_A_POINT, NULL = 0.2, 0.1
"""The share of each value that has a cell of its own, and the share of nulls."""


def typical_shares(axis: Axis, shape: Shape) -> Floats:
    """The share (size,) of each cell of a column; ``shape`` says how its numbers are distributed.

    A grid with more than ``MOST_EXAMINED`` cells is divided into that many equal cells first.

    >>> from dpcore.domain.axes import Categories
    >>> typical_shares(Categories("insured", ("no", "yes")), "around").round(2).tolist()
    [0.74, 0.26]
    """
    axis = at_most(axis, MOST_EXAMINED)
    if isinstance(axis, Categories):
        number = len(axis.categories)
        ranks = np.arange(1.0, number + 1)
        shares = ranks[::-1] if in_order(axis) else ranks**-1.5
        points: Sequence[int] = ()
    else:
        edges = axis.edge(np.arange(axis.cells + 1)).astype(np.float64)
        at = (edges - edges[0]) / (edges[-1] - edges[0])
        few = axis.integer and edges[-1] - edges[0] <= FEW
        below = _below(at, shape, few=few)
        own = [] if isinstance(axis, Bins) else [0.0] * len(axis.points)
        shares = np.r_[np.maximum(np.diff(below), 0.0), own]  # rounding may make them negative
        if shape == "events":
            shares *= (1 - NONE) / shares.sum()
            shares[0] += NONE
        points = axis.points if isinstance(axis, Bins) else range(axis.cells, len(shares))
    at_points = min(AT_A_POINT * len(points), 0.5)
    shares[list(points)] = 0
    shares *= (1 - at_points) / shares.sum()
    shares[list(points)] = at_points / max(len(points), 1)
    return np.asarray(np.r_[shares * (1 - NULL), NULL]) if axis.nullable else np.asarray(shares)


def _below(at: Floats, shape: Shape, few: bool) -> Floats:
    """The distribution function at given positions in the range, up to shift and scale."""
    if shape == "events":
        return np.asarray(-np.exp(-(FEW_EVENTS if few else EVENTS) * at))
    if few:
        return at * (2.2 - at)
    if shape == "amounts":
        return np.asarray(-(1 + 2 * AMOUNTS * at) * np.exp(-2 * AMOUNTS * at))
    return np.asarray(ndtr(AROUND * (at - 0.5)))
