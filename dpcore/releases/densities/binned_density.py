"""A pure-alpha density by binning.

Records are divided smoothly among cells (``splines``), the cells get discrete Laplace noise, and the
coefficients are corrected for the division; all arithmetic is in exact integers.  More records or alpha
give more cells, so that the worst-case error of binning stays small compared with the noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from dpcore.arrays import Floats, Integers, wide
from dpcore.domain.tally import Tally
from dpcore.line.statistic import Noisy
from dpcore.mechanisms import DiscreteLaplace
from dpcore.mechanisms.laplace import laplace_scale
from dpcore.releases.densities.basis import Basis
from dpcore.releases.densities.density import Density
from dpcore.releases.densities.splines import DEGREE, best_cells, kept, most_cells, shares, strange
from dpcore.sampling.discrete_laplace import laplace_stddev

MOST_BITS = 30
"""A record is divided into at most 2^30 whole parts, so that all sums are of integers."""

_BLOCK = 2**18
"""The number of occupied cells that are divided at a time."""


@dataclass(frozen=True)
class BinnedDensity(Density):
    """Discrete Laplace noise on smoothly binned cells, deconvolved and damped: pure alpha."""

    @property
    def whole(self) -> int:
        """Parts per record: a power of two that keeps the largest table below 2^60 parts."""
        return 1 << max(1, min(MOST_BITS, 60 - self.most_rows.bit_length()))

    @cached_property
    def cells(self) -> tuple[int, ...]:
        """The number of cells along each axis, from public values only."""
        scale = laplace_scale(self._sensitivity, self.share.pure_alpha)
        stddev = laplace_stddev(scale) / self.whole / self.rows
        return best_cells(self.functions, self.answered.shape, self.bandwidths, stddev)

    @property
    def most_numbers(self) -> int:
        return most_cells(self.answered.shape, self.bandwidths)

    @cached_property
    def basis(self) -> Basis:
        limits = tuple(len(self.functions.line(cells, 1.0)) for cells in self.cells)
        return self.functions(self.cells, self.bandwidths, limits, self.counts_mass)

    @property
    def _sensitivity(self) -> Fraction:
        # A record has ``whole`` parts, or none without a value; replacing it changes at most 2
        # ``whole``.
        moved, present = Fraction(2 * self.whole), Fraction(self.whole)
        return self.adjacency.sensitivity(moved=moved, present=present)

    @cached_property
    def mechanism(self) -> DiscreteLaplace:
        return DiscreteLaplace.within(self.share, math.prod(self.cells), self._sensitivity)

    def parts(self, codes: Integers) -> tuple[Integers, Integers]:
        """How a record in each fine cell (k, axes) is divided: its cells and its parts (k, corners).

        The parts are non-negative and add up to ``whole``, by a public rule that acts on each record
        alone.
        """
        cells, weights = np.zeros((len(codes), 1), dtype=np.int64), np.ones((len(codes), 1))
        for i, (fine, size) in enumerate(zip(self.answered.shape, self.cells, strict=True)):
            where, share = shares(codes[:, i], fine, size, self.periodic)
            cells = (cells[:, :, None] * size + where[:, None, :]).reshape(len(codes), -1)
            weights = (weights[:, :, None] * share[:, None, :]).reshape(len(codes), -1)
        # Rounding cumulated shares, not the shares themselves, makes the parts add up to the whole.
        ends = np.rint(np.cumsum(weights, axis=1) * self.whole).astype(np.int64)
        ends[:, -1] = self.whole
        return cells, np.maximum(np.diff(ends, axis=1, prepend=0), 0)

    @property
    def one_record(self) -> int:
        return self.whole

    @property
    def largest_statistic(self) -> int:
        return self.most_rows * self.whole

    def numbers(self, tally: Tally) -> Integers:
        tally = self.with_values(tally)
        counts = wide(tally.counts, self.most_rows)
        totals = np.zeros(math.prod(self.cells), dtype=counts.dtype)
        for start in range(0, len(counts), _BLOCK):
            block = slice(start, start + _BLOCK)
            cells, parts = self.parts(tally.domain.unpack(tally.cells[block]))
            np.add.at(totals, cells, parts * counts[block, None])
        # Moving numbers to the nearest ones in range increases no difference between tables.
        return np.minimum(totals, self.largest_statistic).astype(np.int64)

    def _along_axes(self, factors: Callable[[type[Basis], int, int], Floats]) -> Iterator[Floats]:
        """The factors (coefficients,) of ``splines``, as products over the axes."""
        for i, (fine, cells) in enumerate(zip(self.answered.shape, self.cells, strict=True)):
            yield factors(self.functions, fine, cells)[self.basis.frequencies[:, i]]

    @cached_property
    def correction(self) -> Floats:
        """The damping (coefficients,) divided by the factor that binning put on each frequency."""
        return np.asarray(self.basis.lambdas / math.prod(self._along_axes(kept)))

    @property
    def binning(self) -> float:
        """A bound of the error from division and from rounding to whole parts, in the worst case."""
        added = math.prod(1 + s for s in self._along_axes(strange)) - 1
        corners = math.prod(
            1 if fine == cells else DEGREE + 1
            for fine, cells in zip(self.answered.shape, self.cells, strict=True)
        )
        # Rounding changes each of a record's numbers by at most one part.
        in_parts = 0 if corners == 1 else corners / self.whole
        return float(self.basis.heights @ (self.basis.lambdas * added + self.correction * in_parts))

    def coefficients(self, noisy: Noisy) -> Floats:
        weights = noisy.values.reshape(self.cells) / (self.whole * self.rows)
        return self.correction * self.basis.means(weights)

    @cached_property
    def coefficient_variances(self) -> Floats:
        # The basis is orthogonal over the cells, with squared norm the number of cells.
        noise = (self.mechanism.stddev / (self.whole * self.rows)) ** 2 * math.prod(self.cells)
        return noise * self.correction**2
