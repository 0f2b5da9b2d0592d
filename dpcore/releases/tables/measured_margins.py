"""What margins measure: count tables over several sets of columns, from one joint draw.

An equal split measures each of the k tables whole.  Replacing a record changes each in at most two
cells, by one, and two records that differ in every column do so in all tables at once: the joint L1
sensitivity is exactly 2k and the joint L2 sensitivity sqrt(2k) (METHODS d).  One that is added or
removed changes one cell of each: k and sqrt(k).  (A table whose columns all have one category cannot
change; it only makes the bound safe.)

Most workloads are better served by measuring the residuals of all tables once each, at precisions that
an ``aim`` decides (``allocation``; their joint sensitivity is ``sensitivity``'s).

What was measured is the least squares estimate of all tables, in which they agree with each other and
with n, where it is public: its exact variances do not depend on the draw.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import chain
from typing import Literal

import numpy as np

from dpcore.arrays import Floats, Integers
from dpcore.domain.domain import Domain, size_text
from dpcore.domain.tally import Tally
from dpcore.line.statistic import Exact, Noisy
from dpcore.mechanisms import BlockGaussian, BlockLaplace, DiscreteGaussian, DiscreteLaplace
from dpcore.mechanisms.block_gaussian import block_variance, coordinates, seen_badly
from dpcore.mechanisms.blocks import Block, centred, differences
from dpcore.post.tables.consistency import Agreement
from dpcore.post.tables.margins import Attributes, Margin, Residual
from dpcore.releases.counts.unit import TableOfCounts
from dpcore.releases.tables.allocation import (
    MOST_WAYS,
    Aim,
    Allocation,
    agreed_variances,
    allocate,
    equal_split,
    measured,
)

LARGEST_TOTAL = 2**24
"""The most cells that the tables of one release may have together."""


@dataclass(frozen=True)
class MeasuredMargins(TableOfCounts):
    """Count tables over ``sets`` of positions in the domain, each ascending."""

    sets: tuple[tuple[int, ...], ...] = ()
    noise: Literal["discrete-laplace", "discrete-gaussian"] = "discrete-laplace"

    aim: Aim | None = None
    """What the precisions are chosen for; None: all tables are measured alike."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.cells > LARGEST_TOTAL:
            raise ValueError(
                f"{size_text(self.cells)} cells in {len(self.sets)} tables are too many; use fewer ways,"
                " fewer columns or wider bins"
            )
        held = set(chain.from_iterable(self.sets))
        missing = [name for i, name in enumerate(self.domain.names) if i not in held]
        if missing:
            raise ValueError(f"sets: no set holds the columns {missing}")

    @cached_property
    def domains(self) -> tuple[Domain, ...]:
        """The domain of each table."""
        return self._domains(self.sets)

    def sets_of(self, noisy: Noisy) -> tuple[Attributes, ...]:
        """The tables of one draw, which may choose more than ``sets``."""
        return self.sets

    def domains_of(self, noisy: Noisy | None) -> tuple[Domain, ...]:
        return self.domains if noisy is None else self._domains(self.sets_of(noisy))

    def _domains(self, sets: Sequence[Attributes]) -> tuple[Domain, ...]:
        return tuple(Domain(tuple(self.domain.axes[a] for a in attrs)) for attrs in sets)

    @cached_property
    def cells(self) -> int:
        """The cells of all tables together."""
        return sum(math.prod(self.domain.shape[a] for a in attrs) for attrs in self.sets)

    @cached_property
    def allocation(self) -> Allocation:
        """What is measured: all tables alike, or what serves the aim better."""
        shape, norm = self.domain.shape, self._norm
        if self.aim is None:
            return equal_split(shape, self.sets)
        whole: frozenset[Attributes] = frozenset()
        while True:
            found = allocate(shape, self.sets, self.aim, self.adjacency, norm, whole)
            blocks = self._blocks(found)
            if not any(block.axes for block in blocks):
                return found
            variance = block_variance(self.share, blocks, self._sensitivity(found))
            among = coordinates(blocks)
            badly = {
                part.attributes
                for part, block in zip(found.parts, blocks, strict=True)
                if seen_badly(block, variance, among)
            }
            if not badly:
                return found
            whole |= badly

    @property
    def _norm(self) -> Literal["l1", "l2"]:
        return "l2" if self.noise == "discrete-gaussian" else "l1"

    def _sensitivity(self, allocation: Allocation) -> Fraction:
        """In L1, or the square in L2."""
        norm = self.adjacency.squared if self._norm == "l2" else self.adjacency.sensitivity
        return norm(moved=allocation.moved, present=allocation.present)

    def _blocks(self, allocation: Allocation) -> tuple[Block, ...]:
        """How noise falls on each part of the statistic."""
        blocks = []
        for part in allocation.parts:
            sizes = [self.domain.shape[a] for a in part.attributes]
            axes = tuple(n for n in sizes if n > 2) if part.centred else ()
            size = math.prod(n - 1 if part.centred else n for n in sizes)
            blocks.append(Block(size, part.weight, axes))
        return tuple(blocks)

    @cached_property
    def mechanism(self) -> DiscreteLaplace | DiscreteGaussian | BlockLaplace | BlockGaussian:
        sensitivity = self._sensitivity(self.allocation)
        if self.allocation.equal:
            kind = DiscreteGaussian if self._norm == "l2" else DiscreteLaplace
            return kind.within(self.share, self.cells, sensitivity)
        blocks = self._blocks(self.allocation)
        kinds = BlockGaussian if self._norm == "l2" else BlockLaplace
        return kinds.within(self.share, blocks, sensitivity)

    def statistic(self, tally: Tally) -> Exact:
        names = self.domain.names

        def table(attributes: Attributes) -> Integers:
            counts = tally.margin(tuple(names[a] for a in attributes))
            return counts.reshape([self.domain.shape[a] for a in attributes])

        return Exact(self._counted(table))

    def _counted(self, table: Callable[[Attributes], Integers]) -> Integers:
        """What is counted of all parts, by the tables over their attributes."""
        found = []
        for part in self.allocation.parts:
            counts = table(part.attributes)
            found.append((differences(counts) if part.centred else counts).ravel())
        return np.concatenate(found)

    def measured(self, noisy: Noisy) -> list[Margin | Residual]:
        """What was measured, each with the variance of its noise."""
        found, start = [], 0
        for part, variance in zip(self.allocation.parts, self._variances.tolist(), strict=True):
            shape = [self.domain.shape[a] - part.centred for a in part.attributes]
            values = noisy.values[start : start + math.prod(shape)].astype(np.float64)
            table = values.reshape(shape)
            if part.centred:
                table = centred(table)
            found.append(measured(part, table, self.domain.shape, variance))
            start += values.size
        return found

    @cached_property
    def _variances(self) -> Floats:
        """(parts,) of the noise on what is counted."""
        mechanism, parts = self.mechanism, self.allocation.parts
        if not isinstance(mechanism, BlockGaussian | BlockLaplace):
            return np.full(len(parts), mechanism.stddev**2)
        weights = {part.weight for part in parts}
        of_weight = {weight: mechanism.stddev(weight) ** 2 for weight in weights}
        return np.array([of_weight[part.weight] for part in parts])

    def cell_variances(self, tables: Sequence[Attributes]) -> Floats:
        """(tables,) the variance of a cell of each in agreement, which does not depend on the draw."""
        parts = self.allocation.parts
        if max(map(len, self.sets)) > MOST_WAYS:  # too many subsets to list
            return np.array([self.of_nothing.margin(attributes).variance for attributes in tables])
        known = self.adjacency.public_rows
        return agreed_variances(self.domain.shape, tables, parts, self._variances, known)

    def agreement(self, noisy: Noisy) -> Agreement:
        """What was measured, as tables that agree, also with the number of records if that is public."""
        total = float(self.rows) if self.adjacency.public_rows else None
        return Agreement(self.domain.shape, self.measured(noisy), total)

    @cached_property
    def of_nothing(self) -> Agreement:
        """The agreement of nothing: variances do not depend on the draw."""
        return self.agreement(Noisy(np.zeros(self.mechanism.size, dtype=np.int64)))

    def consistent_margins(self, noisy: Noisy) -> list[Margin]:
        """The tables adjusted so that they agree with each other, and with the rows if public."""
        agreement = self.agreement(noisy)
        return [agreement.margin(attributes) for attributes in self.sets_of(noisy)]

    def noisy_margins(self, noisy: Noisy) -> list[Margin]:
        """The tables as models are fitted to them: as drawn, or where residuals were, in agreement."""
        drawn = self.measured(noisy)
        if self.allocation.equal:
            return [each for each in drawn if isinstance(each, Margin)]
        return self.consistent_margins(noisy)

    def total(self, noisy: Noisy) -> int:
        """The number of records: the public one, or an estimate from all tables, at least one."""
        if self.adjacency.public_rows:
            return self.rows
        return max(round(float(self.agreement(noisy).margin(()).table)), 1)
