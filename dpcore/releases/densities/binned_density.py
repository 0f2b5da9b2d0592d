"""A pure-alpha density by linear binning (METHODS c).

Records are shared out linearly among wide cells, the cells get discrete Laplace noise, and the
coefficients are corrected for the sharing; exact integers throughout.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product

import numpy as np

from dpcore.arrays import Floats, Integers
from dpcore.domain import Tally
from dpcore.mechanisms import DiscreteLaplace
from dpcore.releases.densities.basis import Basis
from dpcore.releases.densities.cosines import Cosines
from dpcore.releases.densities.density import Density
from dpcore.statistic import Exact, Noisy

PARTS = 1024
"""A record is shared out among cells in whole parts, so that the statistic is made of integers."""


@dataclass(frozen=True)
class BinnedDensity(Density):
    """Discrete Laplace noise on linearly binned cells, deconvolved and damped: pure alpha."""

    @cached_property
    def cells(self) -> tuple[int, ...]:
        """Wide cells along each axis: G = ceil(1.25 / h), as METHODS c recommends.

        A grid that is not half as fine again is used as it is: sharing would blur more than it saves.
        """
        wide = [math.ceil(1.25 / h) for h in self.bandwidths]
        return tuple(
            size if size < 1.5 * cells else cells
            for size, cells in zip(self.domain.shape, wide, strict=True)
        )

    @cached_property
    def basis(self) -> Basis:
        return Cosines(self.cells, self.bandwidths, self.cells, self.counts_mass)

    @cached_property
    def mechanism(self) -> DiscreteLaplace:
        # A record has PARTS parts in all; replacing it moves at most all of them.
        sensitivity = self.adjacency.sensitivity(moved=Fraction(2 * PARTS), present=Fraction(PARTS))
        return DiscreteLaplace.within(self.share, math.prod(self.cells), sensitivity)

    def parts(self, codes: Integers) -> tuple[Integers, Integers]:
        """How a record at each fine cell (k, axes) is shared out: wide cells and parts (k, 2^d).

        Non-negative parts that add up to PARTS, by a public rule that acts on each record alone.
        """
        sides = [
            _linear_sides(codes[:, i], fine, wide)
            for i, (fine, wide) in enumerate(zip(self.domain.shape, self.cells, strict=True))
        ]
        cells, weights = [], []
        for corner in product((0, 1), repeat=len(self.cells)):
            cell = np.zeros(len(codes), dtype=np.int64)
            weight = np.ones(len(codes))
            for i, side in enumerate(corner):
                lower, upper, share = sides[i]
                cell = cell * self.cells[i] + (upper if side else lower)
                weight = weight * (share if side else 1 - share)
            cells.append(cell)
            weights.append(weight)
        ends = np.rint(np.cumsum(np.stack(weights, axis=1), axis=1) * PARTS).astype(np.int64)
        ends[:, -1] = PARTS
        return np.stack(cells, axis=1), np.diff(ends, axis=1, prepend=0)

    @property
    def largest_statistic(self) -> int:
        return self.most_rows * PARTS

    def statistic(self, tally: Tally) -> Exact:
        cells, parts = self.parts(tally.domain.unpack(tally.cells))
        totals = np.zeros(math.prod(self.cells), dtype=np.int64)
        np.add.at(totals, cells, parts * tally.counts[:, None])
        return Exact(totals)

    @cached_property
    def correction(self) -> Floats:
        """(coefficients,) damping over the factor that linear binning put on each frequency."""
        kept = np.ones(self.basis.size)
        for i, (fine, wide) in enumerate(zip(self.domain.shape, self.cells, strict=True)):
            kept *= _kept_by_sharing(fine, wide)[self.basis.frequencies[:, i]]
        return np.asarray(self.basis.lambdas / kept)

    def coefficients(self, noisy: Noisy) -> Floats:
        weights = noisy.values.reshape(self.cells) / (PARTS * self.rows)
        return self.correction * self.basis.means(weights)

    @cached_property
    def coefficient_variances(self) -> Floats:
        # The basis is orthogonal over the cells, with squared norm the number of cells.
        noise = (self.mechanism.stddev / (PARTS * self.rows)) ** 2 * math.prod(self.cells)
        return noise * self.correction**2


def _linear_sides(codes: Integers, fine: int, wide: int) -> tuple[Integers, Integers, Floats]:
    """Along one axis: the wide cells on both sides of fine cells (k,), and the upper one's share."""
    position = (codes + 0.5) / fine * wide - 0.5
    left = np.floor(position)
    # Reflection: what would fall beyond an end comes back to the last cell.
    lower = np.clip(left, 0, wide - 1).astype(np.int64)
    upper = np.clip(left + 1, 0, wide - 1).astype(np.int64)
    return lower, upper, position - left


def _kept_by_sharing(fine: int, wide: int) -> Floats:
    """(wide,) the factor that linear sharing puts on cos(pi j x), j = 0, 1, ..., on average.

    A record at x is counted with the linear interpolation of the cosine between the centres of the
    wide cells; the factor is how much of the cosine this has over the centres of the fine cells.
    It is sinc(j / (2 wide))^2 (METHODS c) for a very fine grid, and 1 where the grids are the same.
    """
    fine = min(fine, 32 * wide)  # from here on a finer grid changes the factor by 0.1% at most
    lower, upper, share = _linear_sides(np.arange(fine), fine, wide)
    factors = np.ones(wide)
    for j in range(1, wide):
        exact = np.cos(np.pi * j * ((np.arange(fine) + 0.5) / fine))
        coarse = np.cos(np.pi * j * ((np.arange(wide) + 0.5) / wide))
        between = coarse[lower] + share * (coarse[upper] - coarse[lower])
        factors[j] = 2 * float(exact @ between) / fine
    return factors
