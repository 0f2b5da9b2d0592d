"""A public tree of regions, and how records are counted at its nodes.

A leaf is a combination of codes, one for each of the hierarchy's columns from the largest region to
the smallest; a node of a level is the beginning of a leaf's combination.  So a county "001" in two
states is two nodes, and no node has two parents.  Nodes of a level are in the order of the columns'
categories, and the children of a node follow one another:

    level 0     0                     the root
    level 1     A       B             state
    level 2     A1  A2  B1  B3  B4    county            starts[2] = [0, 2]    parents[2] = [0 0 1 1 1]

A record whose combination is not listed counts at the root and in the last node of every other level,
outside all regions; a tree that lists every combination has no such node.  So every record counts in
exactly one node of each level.

>>> from dpcore.domain.axes import Categories
>>> places = Domain((Categories("state", ("A", "B")), Categories("county", (1, 2, 3, 4))))
>>> regions = Regions(places, np.array([0, 1, 4, 6, 7]))
>>> regions.sizes, regions.outside, regions.leaf_of(np.array([4, 5])).tolist()
((1, 3, 6), True, [2, 5])
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import TypeVar

import numpy as np

from dpcore.arrays import Floats, Integers
from dpcore.domain.domain import Domain

Numbers = TypeVar("Numbers", Integers, Floats)


@dataclass(frozen=True, eq=False)
class Regions:
    """A tree over the columns of ``domain``; ``leaves``: (k,) ascending cells that are regions."""

    domain: Domain
    leaves: Integers

    def __post_init__(self) -> None:
        if not len(self.leaves):
            raise ValueError("members: no region is listed")
        if np.any(np.diff(self.leaves) <= 0) or not 0 <= self.leaves[0] <= self.leaves[-1] < (
            self.domain.size
        ):
            raise ValueError("members: a region is listed twice, or is not a combination of values")

    @property
    def depth(self) -> int:
        """The number of levels below the root."""
        return len(self.domain.axes)

    @property
    def outside(self) -> bool:
        """Whether a record may lie outside all regions."""
        return len(self.leaves) < self.domain.size

    @cached_property
    def nodes(self) -> tuple[Integers, ...]:
        """For each level the (k,) cells of its regions on the first columns, ascending."""
        shape = self.domain.shape
        return tuple(
            np.unique(self.leaves // prod(shape[level:])) for level in range(self.depth + 1)
        )

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """The number of nodes of each level, including the node outside all regions."""
        return (1, *(len(nodes) + self.outside for nodes in self.nodes[1:]))

    @cached_property
    def starts(self) -> tuple[Integers, ...]:
        """For each level, where the children of each node of the level above begin; [0] for the root."""
        starts = [np.zeros(1, dtype=np.int64)]
        for above, nodes, size in zip(self.nodes, self.nodes[1:], self.domain.shape, strict=False):
            first = np.searchsorted(nodes // size, above)
            # Below level 1 the node outside all regions has one child, the next such node.
            alone = self.outside and len(starts) > 1
            starts.append(np.append(first, len(nodes)) if alone else first)
        return tuple(starts)

    @cached_property
    def parents(self) -> tuple[Integers, ...]:
        """For each level, the parent (k,) of each node; the root is its own parent."""
        return (
            np.zeros(1, dtype=np.int64),
            *(
                np.repeat(np.arange(len(starts)), np.diff(starts, append=size))
                for starts, size in zip(self.starts[1:], self.sizes[1:], strict=True)
            ),
        )

    def leaf_of(self, cells: Integers) -> Integers:
        """The leaf (k,) of each combination of codes, a cell (k,) of the domain."""
        found = np.minimum(np.searchsorted(self.leaves, cells), len(self.leaves) - 1)
        return np.where(self.leaves[found] == cells, found, len(self.leaves))

    def gathered(self, level: int, values: Numbers) -> Numbers:
        """Sum values (k, ...) of a level over the children of each node of the level above."""
        return np.asarray(np.add.reduceat(values, self.starts[level], axis=0))
