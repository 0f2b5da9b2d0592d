"""Systematic sampling: draws with given probabilities and less variance than independent draws.

To draw m values from a distribution, lay the values out as intervals of [0, 1) and take those at the
m points (u + i)/m, with one uniform u (Madow & Madow 1944).  The number of draws of each value is then
within one of its expectation:

    probabilities   a .50            b .22      c .28
                    [----------------|-------|---------)
    m = 4, u = .6      ^        ^        ^        ^         a, a, b, c

>>> import numpy as np
>>> probabilities = np.array([[0.5, 0.22, 0.28]])
>>> drawn = draw_systematically(np.zeros(50, dtype=int), probabilities, np.random.default_rng(7))
>>> np.bincount(drawn).tolist()
[25, 11, 14]
"""

from __future__ import annotations

import numpy as np

from dpcore.arrays import Floats, Integers


def draw_systematically(
    groups: Integers, weights: Floats, generator: np.random.Generator
) -> Integers:
    """A value for every record, drawn from the distribution of its group.

    ``groups``: (rows,) group of each record, 0..g-1; ``weights``: (g, values), not negative, not
    necessarily normalised.  A group without any weight draws from the sum of all groups, or uniformly
    if that is zero too.  Returns (rows,) values, in random order within each group.
    """
    common = weights.sum(axis=0)
    if not np.any(common > 0):
        common = np.ones_like(common)
    usable = np.where(weights.sum(axis=1, keepdims=True) > 0, weights, common)
    cumulative = np.cumsum(usable, axis=1)
    cumulative /= cumulative[:, -1:]
    offsets = generator.random(len(usable))
    order = generator.permutation(len(groups))
    order = order[np.argsort(groups[order], kind="stable")]
    ordered = groups[order]
    members = np.bincount(ordered, minlength=len(usable))
    positions = np.arange(len(ordered)) - (np.cumsum(members) - members)[ordered]
    points = (positions + offsets[ordered]) / members[ordered]
    # One sorted list for all groups: group g occupies the interval [g, g + 1).
    ladder = (cumulative + np.arange(len(usable))[:, None]).ravel()
    values = np.searchsorted(ladder, ordered + points, side="right") - ordered * usable.shape[1]
    # Rounding may push a point past either end of its group: keep it within values of positive weight.
    first = np.argmax(usable > 0, axis=1)
    last = usable.shape[1] - 1 - np.argmax(usable[:, ::-1] > 0, axis=1)
    result = np.empty(len(groups), dtype=np.int64)
    result[order] = np.clip(values, first[ordered], last[ordered])
    return result
