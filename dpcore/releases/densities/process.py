"""A kernel density plus one draw of a Gaussian process, on a public grid and interpolated from it.

The function is the kernel estimate itself, over one to three numeric columns scaled to [0, 1],

    f_D(x) = (1/n) sum over records a of  prod over axes of  height_i phi_a(x_i),

neither reflected at the bounds nor cut at zero.  The release is f_D + s G, where G is a Gaussian
process with the chosen covariance (``kernels``; Hall, Rinaldo & Wasserman 2013, sections 4.1 and 4.2),
at all points of a public grid at once.

**What is private, and at what sensitivity.**  On the grid T_1 x ... x T_d a record is the tensor
product U(a) of integer vectors U_i(a_i), which are rounded whitened bumps and depend on the record's
cell alone (``whitening``).  The statistic is the sum of U(a) over the records, in
64-bit integers without any rounding, and replacing a record moves it by

    |U(a) - U(b)| <= 2^bits (distance + 2 slack),

where ``distance`` is the distance in the Hilbert space of the kernel, and ``slack`` bounds the rounding
error of a tensor product of vectors of norm at most one.  One draw adds discrete Gaussian noise of one
variance to this integer vector.  The result has the covariance s^2 K, not s K as the paper prints.

If the number of records (with a value) is private, a record has one more coordinate, w 2^bits, whose sum
is the number of records in these units; adding or removing a record moves the vector by at most 2^bits
sqrt((1 + slack)^2 + w^2).  With H the height of the kernel, the error of a uniform density of noisy mass
is least at w^2 = 1/H, where it is (H + 1)/H times the error with a known mass.

**Between the grid's points** the published function is the kernel interpolant of the noisy values.
It is post-processing: later queries cost nothing, and the same query has the same answer.
``papers.online_function.online`` is for points that no grid reaches.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcore.arrays import Floats, Integers, wide
from dpcore.domain.tally import Tally
from dpcore.line.statistic import Exact, Noisy
from dpcore.mechanisms import DiscreteGaussian
from dpcore.releases.densities.answered import AnsweredRelease
from dpcore.releases.densities.banded import MOST_DIMENSIONS, require_lines
from dpcore.releases.densities.kernels import KERNELS, Kernel, KernelName, distance
from dpcore.releases.densities.whitening import JITTER, MOST_POINTS, Whitening

LARGEST_GRID = 2**16
LARGEST_AXIS = 2**25
"""The most numbers in the public vectors U_i of one axis: its cells times its points."""

_BLOCK = 2**22
"""The number of values in a block of records."""


@dataclass(frozen=True)
class GridProcess(AnsweredRelease):
    """A noisy function on a public grid; ``kernel``: covariance of the noise; ``bandwidths``: h of each
    axis, in units of its range; ``points``: number of grid points along each axis."""

    finer = "a larger bandwidth or fewer columns"

    kernel: KernelName = "gaussian"
    bandwidths: tuple[float, ...] = ()
    points: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        require_lines(self.domain.axes, self.bandwidths)
        if len(self.points) != len(self.bandwidths):
            raise ValueError("points: one number, or one for each column")
        if not all(1 <= m <= MOST_POINTS for m in self.points):
            raise ValueError(f"points: must lie between 1 and {MOST_POINTS} for each column")
        if math.prod(self.points) > LARGEST_GRID:
            raise ValueError(f"points: make a grid of more than {LARGEST_GRID} points; use fewer")
        for axis, m in zip(self.axes, self.points, strict=True):
            if axis.size * m > LARGEST_AXIS:
                raise ValueError(
                    f"columns: {axis.name} has {axis.size:.3g} values, which are too many for {m}"
                    " points; use narrower bounds or a coarser grid"
                )
        super().__post_init__()

    @property
    def bits(self) -> int:
        """Bits of precision in the vector of one axis: the most that the sum over the records allows."""
        d = len(self.bandwidths)
        return max(8, min(22, 30 // d, (60 - self.most_rows.bit_length()) // d))

    @cached_property
    def kernels(self) -> tuple[Kernel, ...]:
        return tuple(KERNELS[self.kernel](h) for h in self.bandwidths)

    @cached_property
    def whitenings(self) -> tuple[Whitening, ...]:
        return tuple(
            Whitening(kernel, (np.arange(m) + 0.5) / m)
            for kernel, m in zip(self.kernels, self.points, strict=True)
        )

    @cached_property
    def longest(self) -> float:
        """An upper bound for the length of U, divided by 2^bits for each axis."""
        return math.prod(1 + whitening.slack(self.bits) for whitening in self.whitenings)

    @property
    def largest_statistic(self) -> int:
        return self.most_rows * math.ceil(math.ldexp(self.longest, self.bits * len(self.points)))

    @cached_property
    def sensitivity(self) -> float:
        """The Euclidean sensitivity of the sum of U, divided by 2^bits for each axis."""
        moved = distance(self.kernels) + 2 * (self.longest - 1)
        present = math.hypot(self.longest, self.mass_steps / self.whole)
        moved = self.between_records(moved, present)
        return self.adjacency.sensitivity(moved=moved, present=present) * (1 + 1e-12)

    @property
    def whole(self) -> int:
        """The integer steps in a vector of length one."""
        return 1 << (self.bits * len(self.points))

    @property
    def height(self) -> float:
        """The largest contribution of a record to the function, times the number of records."""
        return math.prod(kernel.height for kernel in self.kernels)

    @property
    def mass_steps(self) -> int:
        """w in integer steps: the contribution of a record to the last number."""
        weight = min(1.0, 1 / math.sqrt(self.height))
        return max(1, int(self.whole * weight)) if self.counts_mass else 0

    @cached_property
    def mechanism(self) -> DiscreteGaussian:
        steps = Fraction(self.sensitivity) * self.whole
        return self.gaussian(math.prod(self.points) + self.counts_mass, steps * steps)

    @cached_property
    def _vectors(self) -> list[Integers]:
        """The integer vectors U_i of every cell, (cells of the axis, points) for each axis."""
        return [
            whitening.integers((np.arange(axis.size) + 0.5) / axis.size, self.bits)
            for whitening, axis in zip(self.whitenings, self.axes, strict=True)
        ]

    def statistic(self, tally: Tally) -> Exact:
        return Exact(self.numbers(tally))

    def numbers(self, tally: Tally) -> Integers:
        """The exact statistic: private."""
        tally = self.with_values(tally)
        all_counts = wide(tally.counts, self.most_rows)
        codes = tally.domain.unpack(tally.cells)
        total = np.zeros(math.prod(self.points), all_counts.dtype)
        rest = len(total) // self.points[0]
        step = max(1, _BLOCK // max(self.points[0], rest))
        for start in range(0, len(codes), step):
            block, counts = codes[start : start + step], all_counts[start : start + step]
            # Whole numbers below 2^53 are exact in floating point, however they are summed.
            small = int(counts.sum()) < 2 ** (52 - self.bits * len(self.points))
            kind = np.dtype(np.float64) if small else all_counts.dtype
            first, *others = (u[block[:, i]].astype(kind) for i, u in enumerate(self._vectors))
            product: NDArray[Any] = np.ones((len(block), 1), dtype=kind)
            for other in others:
                product = (product[:, :, None] * other[:, None, :]).reshape(len(block), -1)
            weighted = first * counts[:, None].astype(kind)
            total += (weighted.T @ product).ravel().astype(np.int64 if small else kind)
        if self.counts_mass:
            number = np.array([int(all_counts.sum()) * self.mass_steps], dtype=total.dtype)
            total = np.concatenate([total, number])
        most = self.largest_statistic
        return np.clip(total, -most, most).astype(np.int64)

    @property
    def unit(self) -> float:
        """The factor from whitened steps to a density relative to a uniform one."""
        return self.height / self.rows / self.whole

    @property
    def length(self) -> float:
        """The Euclidean length of the weights of whitened noise at a point of the grid."""
        return math.pow(1 + JITTER, len(self.points) / 2)

    @property
    def stddev(self) -> float:
        """The standard deviation of the noise at every point, relative to a uniform density."""
        return self.mechanism.stddev * self.unit * self.length

    @property
    def mass_stddev(self) -> float:
        steps = self.mass_steps * self.rows
        return self.mechanism.stddev / steps if steps else 0.0

    def noisy_mass(self, noisy: Noisy) -> float:
        return int(noisy.values[-1]) / self.mass_steps / self.rows

    def whitened(self, noisy: Noisy) -> Floats:
        """The noisy whitened vector in the grid's shape, relative to a uniform density, times mass."""
        return np.asarray(noisy.values[: math.prod(self.points)].reshape(self.points) * self.unit)

    def on_grid(self, noisy: Noisy) -> Floats:
        """f_D + s G at the public points, in the grid's shape and the units of ``whitened``."""
        return along_axes([w.factor for w in self.whitenings], self.whitened(noisy))


def default_points(bandwidths: tuple[float, ...]) -> tuple[int, ...]:
    """Four points per bandwidth along each axis, or fewer if the largest grid requires it."""
    most = (512, 128, 40)[min(len(bandwidths), MOST_DIMENSIONS) - 1]
    return tuple(min(most, max(16, math.ceil(4 / max(h, 0.002)))) for h in bandwidths)


def at_points(rows: Sequence[Floats], tensor: Floats) -> Floats:
    """For each point (k,), the sum over the tensor times the product of the axes' rows (k, m)."""
    axes = "abc"[: len(rows)]
    sums = axes + "".join(f",k{axis}" for axis in axes) + "->k"
    return np.asarray(np.einsum(sums, tensor, *rows, optimize=True))


def along_axes(matrices: Sequence[Floats], tensor: Floats) -> Floats:
    """Apply each matrix along its own axis of the tensor."""
    for i, matrix in enumerate(matrices):
        tensor = np.moveaxis(np.tensordot(matrix, tensor, axes=(1, i)), 0, i)
    return tensor
