"""Attributes of groups, determined by a detailed attribute: a person's trade determines the sector.

A table of 200 trades by income may be mostly noise when a table of 8 sectors by income is not, so the
groups are measured as well.  In records, if the detail changes, so does its group.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from dpcore.arrays import Floats, Integers
from dpcore.post.tables.margins import Margin


class Nested(NamedTuple):
    """Attribute ``group`` has value ``of[i]`` wherever attribute ``detail`` has value i."""

    group: int
    detail: int
    of: tuple[int, ...]


def groups_followed(codes: Integers, nested: Iterable[Nested]) -> Integers:
    """The records (rows, k) with every group set to the group of the detail."""
    followed = codes.copy()
    for each in nested:
        followed[:, each.group] = np.asarray(each.of)[followed[:, each.detail]]
    return followed


def tied(attributes: Iterable[int], nested: Iterable[Nested]) -> bool:
    """Whether some of these attributes are groups of another one, or of the same detail."""
    details = {each.group: each.detail for each in nested}
    roots = [details.get(attribute, attribute) for attribute in attributes]
    return len(set(roots)) < len(roots)


def untied(roots: Iterable[Hashable], ways: int) -> int:
    """The number of sets of ``ways`` attributes in which none follows from another.

    ``roots``: for each attribute, the detail that determines it, or itself.

    >>> untied(["age", "trade", "trade", "sex"], 2)
    5
    """
    numbers = [1] + [0] * ways
    for alike in Counter(roots).values():
        numbers = [1, *(n + alike * fewer for fewer, n in pairwise(numbers))]
    return numbers[ways]


def with_groups(
    sets: Iterable[tuple[int, ...]], nested: Sequence[Nested]
) -> tuple[tuple[int, ...], ...]:
    """The sets of attributes, and also each set with details replaced by groups.

    >>> with_groups([(0, 1), (1, 2)], [Nested(group=3, detail=1, of=(0, 0, 1))])
    ((0, 1), (0, 3), (1, 2), (2, 3))
    """
    found: dict[tuple[int, ...], None] = {}
    for attributes in sets:
        alike = [attributes]
        for place, attribute in enumerate(attributes):
            groups = [each.group for each in nested if each.detail == attribute]
            alike += [(*a[:place], g, *a[place + 1 :]) for a in alike for g in groups]
        found |= dict.fromkeys(tuple(sorted(each)) for each in alike)
    return tuple(found)


def beside_groups(
    margin: Margin, drawn: set[int], nested: Iterable[Nested], sizes: Sequence[int]
) -> Margin:
    """The table of a detail and those of its groups that are in ``drawn``.

    The detail can then be drawn given these groups.  In a group without counts all values are equally
    likely.
    """
    for each in nested:
        attributes, table, variance = margin
        if each.detail in attributes and each.group in drawn - set(attributes):
            # Small, so that it matters only in a group without counts.
            least = np.maximum(table, 1e-9 * max(float(np.max(table)), 1.0))
            shape = [1] * table.ndim
            shape[attributes.index(each.detail)] = len(each.of)
            held = np.asarray(each.of)[:, None] == np.arange(sizes[each.group])
            spread: Floats = least[..., None] * held.reshape(*shape, -1)
            margin = Margin((*attributes, each.group), spread, variance)
    return margin
