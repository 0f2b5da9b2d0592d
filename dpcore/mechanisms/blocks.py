"""A statistic in blocks; each has its own noise scale, and is measured whole or by differences alone.

If a block of axes (3, 4) is measured by differences, noise is added to all twelve cells and the result
is the (3 - 1)(4 - 1) differences to the last cell of either axis.  The differences determine the table
with both axes centred, and contain nothing about its sums.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcore.arrays import Floats, Integers
from dpcore.line.mechanism import AS_STATED, AdditiveNoise, Mechanism, Outputs, Round
from dpcore.line.statistic import Noisy, Statistic
from dpcore.sampling.source import RandomSource

MOST_AXES = 6
"""The largest number of axes in the proof of ``BlockGaussian``."""

BLOCK = 8e-4
"""Approximate CPU seconds of a short audit for each block, such as a pair of columns."""


@dataclass(frozen=True)
class Block:
    """One block of a statistic.

    ``size``: how many numbers it has; ``weight``: its relative precision (the noise variance is divided
    by it, and so is the scale of Laplace noise); ``axes``: if the block is measured by differences, the
    sizes of its axes, each at least 3 (then size = product of n - 1).
    """

    size: int
    weight: Fraction = Fraction(1)
    axes: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if not 0 < self.weight <= 1:
            raise ValueError("the weight of a block must lie between 0 and 1")
        if len(self.axes) > MOST_AXES or any(n < 3 for n in self.axes):
            raise ValueError(
                "differences are measured along at most 6 axes, each of at least 3 cells"
            )
        if self.axes and self.size != math.prod(n - 1 for n in self.axes):
            raise ValueError("a block of differences has n - 1 numbers along each axis")

    @property
    def cells(self) -> int:
        """The number of cells that noise is added to."""
        return math.prod(self.axes) if self.axes else self.size

    def seen(self, noise: Integers) -> Integers:
        """Turn noise on cells (times, cells) into noise on the statistic's numbers (times, size)."""
        if not self.axes:
            return noise
        return differences(noise.reshape(-1, *self.axes), 1).reshape(len(noise), self.size)

    def independent(self, numbers: Floats) -> Floats:
        """Select numbers (k, size) with independent noise."""
        # All differences along an axis contain the noise of its last cell: only one can be used.
        return numbers[:, :1] if self.axes else numbers

    def metric(self, numbers: Floats) -> Floats:
        """M y for numbers y (k, size), where y M y is the squared norm of the centred table."""
        if not self.axes:
            return numbers
        table = numbers.reshape(-1, *(n - 1 for n in self.axes))
        for axis, n in enumerate(self.axes, start=1):
            table = table - table.sum(axis=axis, keepdims=True) / n
        return table.reshape(len(numbers), self.size)

    def norm_squared(self, numbers: Integers) -> Fraction:
        """The squared norm of one block (size,), exactly."""
        # Tables are multiplied by the axes' sizes, so that centring them needs no fractions.
        count = math.prod(self.axes)
        scaled = reduce(
            lambda table, axis: self.axes[axis] * table - table.sum(axis=axis, keepdims=True),
            range(len(self.axes)),
            numbers.astype(object).reshape([n - 1 for n in self.axes] or [self.size]),
        )
        return Fraction(int((scaled.ravel() * numbers.astype(object)).sum()), count)


@dataclass(frozen=True)
class BlockNoise(Mechanism):
    """Noise on blocks by the law ``of_block``, for one statistic or several concatenated ones."""

    blocks: tuple[Block, ...]

    side_by_side = True
    additive = True
    comparable = True

    @abstractmethod
    def of_block(self, weight: Fraction, size: int = 1) -> AdditiveNoise:
        """The noise on ``size`` cells of a block with this weight."""

    @abstractmethod
    def block_chances(self, block: Block, noise: Floats, factors: Floats) -> Floats:
        """``Round.logs`` for noise (n, size) on one block."""

    def stddev(self, weight: Fraction) -> float:
        """The standard deviation of the noise in a cell of a block with this weight."""
        return self.of_block(weight).stddev

    def draw(self, statistic: Statistic, source: RandomSource) -> Noisy:
        def sample(weight: Fraction, count: int) -> Integers:
            nothing = Statistic(np.zeros(count, dtype=np.int64))
            return self.of_block(weight, count).draw(nothing, source).values

        noise = block_noise(self.blocks, self._times(self.size), sample)
        return Noisy(statistic.values + noise.ravel(), reproducible=source.reproducible)

    def simulate(self, size: int, generator: np.random.Generator) -> Integers:
        return block_noise(
            self.blocks,
            self._times(size),
            lambda weight, count: self.of_block(weight).simulate(count, generator),
        ).ravel()

    def rounds_of(
        self, outputs: Outputs, exact: Statistic, factors: Floats = AS_STATED
    ) -> list[Round]:
        # As floats: squares may not fit into 64 bits.
        numbers = (outputs - exact.values).astype(np.float64)
        return [
            Round(self.block_chances(block, noise, factors), block.independent(noise))
            for block, noise in in_blocks(self.blocks, numbers)
        ]

    @property
    def audit_seconds(self) -> float:
        return super().audit_seconds + BLOCK * len(self.blocks)

    def _times(self, size: int) -> int:
        return size // sum(block.size for block in self.blocks)


def differences(table: Integers, first: int = 0) -> Integers:
    """Replace each axis, from axis number ``first`` on, by its differences from its last cell."""
    for axis in range(first, table.ndim):
        last = np.take(table, [-1], axis=axis)
        table = np.take(table, range(table.shape[axis] - 1), axis=axis) - last
    return table


def centred(differing: Floats) -> Floats:
    """The centred table (n, ...) that has the differences (n - 1, ...)."""
    table = np.asarray(differing, dtype=np.float64)
    for axis in range(table.ndim):
        # The last cell differs from itself by 0.
        table = np.concatenate([table, np.zeros_like(np.take(table, [0], axis=axis))], axis=axis)
        table = table - table.mean(axis=axis, keepdims=True)
    return table


def block_noise(
    blocks: Sequence[Block], times: int, sample: Callable[[Fraction, int], Integers]
) -> Integers:
    """Noise (times, sizes) on all blocks; ``sample(weight, number)`` draws it for ``number`` cells."""
    starts = np.cumsum([0, *(block.size for block in blocks)])
    result = np.empty((times, int(starts[-1])), dtype=np.int64)
    # Blocks of the same weight are drawn together: a plan may have hundreds of small ones.
    for weight in sorted({block.weight for block in blocks}):
        alike = [i for i, block in enumerate(blocks) if block.weight == weight]
        ends = np.cumsum([blocks[i].cells for i in alike])
        drawn = sample(weight, times * int(ends[-1])).reshape(times, -1)
        for i, part in zip(alike, np.split(drawn, ends[:-1], axis=1), strict=True):
            result[:, starts[i] : starts[i + 1]] = blocks[i].seen(part)
    return result


def in_blocks(
    blocks: Sequence[Block], numbers: NDArray[Any]
) -> Iterable[tuple[Block, NDArray[Any]]]:
    """Pair each block with its numbers (..., size), a slice of all numbers (..., sizes)."""
    ends = np.cumsum([block.size for block in blocks])[:-1]
    return zip(blocks, np.split(numbers, ends, axis=-1), strict=True)
