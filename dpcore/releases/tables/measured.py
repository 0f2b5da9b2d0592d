"""The measurement of count tables over several sets of columns, in one joint draw.

An equal split measures each of the k tables whole.  Replacing a record changes each in at most two
cells, by one, and two records that differ in every column do so in all tables at once: the joint L1
sensitivity is exactly 2k and the joint L2 sensitivity sqrt(2k).  Adding or removing a
record changes one cell of each: k and sqrt(k).  (A table whose columns all have one category cannot
change; it only makes the bound conservative.)

Most workloads are better served by measuring the residuals of all tables once each, at precisions that
an ``aim`` determines (``allocation``; ``sensitivity`` has their joint sensitivity).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from dpcore.accounting.budget import Budget
from dpcore.arrays import Floats, Integers
from dpcore.domain.adjacency import Adjacency
from dpcore.line.statistic import Noisy
from dpcore.mechanisms import BlockGaussian, BlockLaplace, DiscreteGaussian, DiscreteLaplace
from dpcore.mechanisms.block_gaussian import block_variance, coordinates, seen_badly
from dpcore.mechanisms.blocks import Block, centred, differences
from dpcore.post.tables.margins import Attributes, Margin, Residual
from dpcore.releases.tables.allocation import Aim, Allocation, allocate, equal_split, measured

TableNoise = Literal["discrete-laplace", "discrete-gaussian"]


@dataclass(frozen=True)
class MeasuredTables:
    """Count tables over ``sets`` of positions in a domain of this shape, each ascending.

    ``aim``: the aim of the precisions; None if all tables get the same.  ``bought``: the noise, if the
    share also pays for another draw; ``times``: for each table, the factor that multiplies its counts
    before that noise is added.
    """

    shape: tuple[int, ...]
    share: Budget
    adjacency: Adjacency
    sets: tuple[Attributes, ...]
    noise: TableNoise
    aim: Aim | None = None
    bought: DiscreteLaplace | DiscreteGaussian | None = None
    times: tuple[int, ...] = ()

    @cached_property
    def cells(self) -> int:
        """The number of cells of all tables together."""
        return sum(math.prod(self.shape[a] for a in attrs) for attrs in self.sets)

    @cached_property
    def allocation(self) -> Allocation:
        """The measured blocks: all tables equally, or an allocation that is better for the aim."""
        shape, norm = self.shape, self._norm
        if self.aim is None:
            return equal_split(shape, self.sets)
        whole: frozenset[Attributes] = frozenset()
        while True:
            found = allocate(shape, self.sets, self.aim, self.adjacency, norm, whole)
            noise = self._noise_of(found)
            if not any(block.axes for block in noise):
                return found
            sensitivity = found.sensitivity(self.adjacency, norm)
            variance = block_variance(self.share, noise, sensitivity)
            among = coordinates(noise)
            badly = {
                block.attributes
                for block, its in zip(found.blocks, noise, strict=True)
                if seen_badly(its, variance, among)
            }
            if not badly:
                return found
            # Each round adds at least one residual that is measured whole, so this ends.
            whole |= badly

    @property
    def _norm(self) -> Literal["l1", "l2"]:
        return "l2" if self.noise == "discrete-gaussian" else "l1"

    def _noise_of(self, allocation: Allocation) -> tuple[Block, ...]:
        """The noise in each block of the statistic."""
        noise = []
        for block in allocation.blocks:
            sizes = [self.shape[a] for a in block.attributes]
            # The difference of two cells has independent noise; more cells need correlated noise.
            axes = tuple(n for n in sizes if n > 2) if block.centred else ()
            size = math.prod(n - 1 if block.centred else n for n in sizes)
            noise.append(Block(size, block.weight, axes))
        return tuple(noise)

    @cached_property
    def mechanism(self) -> DiscreteLaplace | DiscreteGaussian | BlockLaplace | BlockGaussian:
        if self.bought is not None:
            return self.bought
        sensitivity = self.allocation.sensitivity(self.adjacency, self._norm)
        noise = self._noise_of(self.allocation)
        if self.allocation.equal:
            kind = DiscreteGaussian if self._norm == "l2" else DiscreteLaplace
            return kind.within(self.share, sum(block.size for block in noise), sensitivity)
        kinds = BlockGaussian if self._norm == "l2" else BlockLaplace
        return kinds.within(self.share, noise, sensitivity)

    def counted(self, table: Callable[[Attributes], Integers]) -> Integers:
        """The counted numbers of all blocks, from the tables over their attributes."""
        found = []
        for block, times in zip(self.allocation.blocks, self._times, strict=True):
            counts = table(block.attributes)
            found.append((differences(counts) if block.centred else counts).ravel() * times)
        return np.concatenate(found)

    @property
    def _times(self) -> tuple[int, ...]:
        return self.times or (1,) * len(self.allocation.blocks)

    def measured(self, noisy: Noisy) -> list[Margin | Residual]:
        """The measurements, each with the variance of its noise."""
        found, start = [], 0
        blocks = zip(self.allocation.blocks, self.variances.tolist(), self._times, strict=True)
        for block, variance, times in blocks:
            shape = [self.shape[a] - block.centred for a in block.attributes]
            values = noisy.values[start : start + math.prod(shape)].astype(np.float64)
            table = values.reshape(shape) / times
            if block.centred:
                table = centred(table)
            found.append(measured(block, table, self.shape, variance))
            start += values.size
        return found

    @cached_property
    def variances(self) -> Floats:
        """The variances (blocks,) of the noise on the counted numbers."""
        mechanism, blocks = self.mechanism, self.allocation.blocks
        if not isinstance(mechanism, BlockGaussian | BlockLaplace):
            return mechanism.stddev**2 / np.square(self._times, dtype=np.float64)
        weights = {block.weight for block in blocks}
        of_weight = {weight: mechanism.stddev(weight) ** 2 for weight in weights}
        return np.array([of_weight[block.weight] for block in blocks])
