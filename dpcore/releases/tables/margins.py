"""Contingency margins: the measured tables, and records from all of them or along a tree."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, Self

import numpy as np

from dpcore.arrays import Integers
from dpcore.line.statistic import Noisy
from dpcore.post.records.tree import sample_tree, spanning_tree
from dpcore.post.records.weighted import WeightedRecords, fit_weighted
from dpcore.post.tables.margins import Attributes
from dpcore.releases.abilities import Tree, blocks_of
from dpcore.releases.base import post_processing_generator
from dpcore.releases.tables.fitted import FittedTables
from dpcore.releases.tables.measured import MeasuredTables


@dataclass(frozen=True)
class Margins(FittedTables):
    """Count tables, and records that follow all of them at once, or a tree.

    ``tree``: edges of a spanning tree, or the tree that the noisy tables suggest.
    """

    tree: tuple[tuple[int, int], ...] | Literal["auto"] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        names = self.domain.names
        joined = list(range(len(names)))
        for one, other in self.tree if isinstance(self.tree, tuple) else ():
            if not any({one, other} <= set(attrs) for attrs in self.sets):
                raise ValueError(f"tree: no set holds both {names[one]!r} and {names[other]!r}")
            if joined[one] == joined[other]:
                raise ValueError(f"tree: {names[one]!r} - {names[other]!r} closes a cycle")
            joined = [joined[one] if part == joined[other] else part for part in joined]

    @cached_property
    def measurement(self) -> MeasuredTables:
        return MeasuredTables(
            self.domain.shape, self.share, self.adjacency, self.sets, self.noise, self.aim
        )

    def sampler(self, rows: int, tree: Tree | None = None) -> Self:
        if tree == self.tree:
            return self
        if tree is None or isinstance(tree, str):
            return replace(self, tree=tree)
        names = self.domain.names
        for a, b in tree:
            if a not in names or b not in names or a == b:
                raise ValueError(f"tree: {a!r} - {b!r} are not two columns of the margins")
        return replace(self, tree=tuple((names.index(a), names.index(b)) for a, b in tree))

    def fit(self, noisy: Noisy, rows: int) -> WeightedRecords:
        return fit_weighted(
            self.domain.shape,
            self.noisy_margins(noisy),
            rows,
            post_processing_generator(noisy),
            total=self.total(noisy),
        )

    def _edges(self, noisy: Noisy) -> tuple[tuple[int, int], ...]:
        """The tree that records follow."""
        if isinstance(self.tree, tuple):
            return self.tree
        return tuple(spanning_tree(self.domain.shape, self.noisy_margins(noisy), self.total(noisy)))

    def followed(self, noisy: Noisy) -> tuple[Attributes, ...]:
        if self.tree is None:
            return self.sets
        return (*self._edges(noisy), *((place,) for place in range(len(self.domain.axes))))

    def records(
        self, noisy: Noisy, rows: int, generator: np.random.Generator
    ) -> Iterator[Integers]:
        if self.tree is None:
            return super().records(noisy, rows, generator)
        shape, margins = self.domain.shape, self.noisy_margins(noisy)
        edges, total = self._edges(noisy), self.total(noisy)
        return (
            sample_tree(shape, edges, margins, each, generator, total) for each in blocks_of(rows)
        )
