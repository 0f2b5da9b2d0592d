"""Records that belong together, such as the members of a household: what they have in common.

For every column, two members of one group are compared: how often they agree, and how far the table of
both their values is from that of the real pairs, in total variation.  That distance is 0 only if pairs
of members are as in the real table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from dpcore.arrays import Integers
from dpcore.estimates.distances import margin_distances
from tasks.evaluate.tables import TablePair

MOST_MEMBERS = 30
"""In a larger group, only members at most this many places from each other are compared."""


@dataclass(frozen=True)
class Pairs:
    """One column over pairs of members: the shares that agree, and the distance of their tables."""

    agree_in_real: float
    agree_in_synthetic: float
    agree_if_independent: float
    total_variation: float


@dataclass(frozen=True)
class Groups:
    """Groups by a key: how many, the total variation of their sizes, and their pairs by column."""

    key: str
    real: int
    synthetic: int
    sizes: float
    pairs: Mapping[str, Pairs]


def compared_groups(pair: TablePair) -> Groups | None:
    """What members of a group have in common; None without a key, or without any pair."""
    if pair.key is None or pair.groups is None:
        return None
    real, synthetic, cells = pair.codes
    ours, theirs = pair.groups
    sizes = [np.bincount(np.bincount(groups)) for groups in (ours, theirs)]
    most = max(map(len, sizes))
    shares = [np.pad(found, (0, most - len(found)))[1:] / found[1:].sum() for found in sizes]
    first, second = _members(ours), _members(theirs)
    pairs = {}
    for i, name in enumerate(pair.columns):
        if not len(first) or not len(second):
            break
        one, other = real[first, i], synthetic[second, i]  # (pairs, 2) codes
        frequent = np.bincount(real[:, i], minlength=cells[i]) / len(real)
        pairs[name] = Pairs(
            float((one[:, 0] == one[:, 1]).mean()),
            float((other[:, 0] == other[:, 1]).mean()),
            float(frequent @ frequent),
            margin_distances(one, other, (cells[i], cells[i]), 2)[0, 1],
        )
    distance = float(np.abs(shares[0] - shares[1]).sum() / 2)
    return Groups(pair.key, int(ours.max()) + 1, int(theirs.max()) + 1, distance, pairs)


def _members(groups: Integers) -> Integers:
    """(p, 2) positions of every two members of one group, in both orders."""
    order = np.argsort(groups, kind="stable")
    found = [np.empty((0, 2), dtype=np.int64)]
    for step in range(1, min(int(np.bincount(groups).max()), MOST_MEMBERS + 1)):
        one, other = order[:-step], order[step:]
        together = groups[one] == groups[other]
        both = np.column_stack([one[together], other[together]])
        found += [both, both[:, ::-1]]
    return np.concatenate(found)
