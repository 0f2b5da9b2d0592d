"""The levels above known totals in a tree of regions, where the cells of a node covary.

It is the least squares of ``dpcore.post.tables.tree`` with matrices over cells in place of numbers:

    p = G (y - S)        G = (V + s I)^-1        C = s G V        w = G + s^2 G w_parent G

At the level of the known totals C is diag(v) - v v'/c, with c the sum of v.  These levels must have few
nodes, because each node above the known level has one matrix.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpcore.arrays import Floats
from dpcore.domain.regions import Regions


@dataclass(frozen=True, eq=False)
class Crown:
    """The levels above ``known``.

    ``own``: (nodes, cells) v of that level; ``free``: (nodes,) c, infinite if a total is not known.
    """

    regions: Regions
    variance: float
    first: int
    known: int
    own: Floats
    free: Floats

    def estimates(self, z: Floats, noisy: Sequence[Floats]) -> tuple[list[Floats], Floats]:
        """The estimates h of the levels above, and l of the parent of each node of the known level."""
        up = []
        for level in range(self.known - 1, -1, -1):
            sums = self.regions.gathered(level + 1, z)
            _, below, gain = self._steps[level]
            pull = np.zeros_like(sums)
            if level >= self.first:
                pull = _times(gain, noisy[level - self.first] - sums)
            z = sums + _times(below, pull)
            up.append((sums, pull))
        found, above = [], np.zeros((1, self.own.shape[1]))
        for level in range(self.known):
            sums, pull = up[self.known - 1 - level]
            _, below, gain = self._steps[level]
            pull = pull + self.variance * _times(gain, above)
            found.append(sums + _times(below, pull))
            above = pull[self.regions.parents[level + 1]]
        return found, above

    @cached_property
    def variances(self) -> tuple[Floats, ...]:
        """The variances (nodes, cells) of h on the levels above."""
        found = []
        for level in range(self.known):
            own, taken = self._steps[level][0], self._taken[level][self.regions.parents[level]]
            found.append(np.diagonal(own - own @ taken @ own, axis1=1, axis2=2))
        return tuple(found)

    @cached_property
    def taken(self) -> Floats:
        """The reduction (nodes, cells) of each variance at the known level by the levels above.

        (x w x') for x = (row of the identity) - v/c.
        """
        rows = []
        for (v, c), w in zip(self._children, self._taken[self.known], strict=True):
            share = np.divide(v, c, out=np.zeros_like(v), where=c > 0)
            across = share @ w
            rows.append(np.diagonal(w) - 2 * across + np.sum(across * share, axis=1)[:, None])
        return np.concatenate(rows)

    def sum_variance(self, b: Floats, weights: Mapping[int, Floats]) -> float:
        """The change of the variance of a weighted sum due to the levels above."""
        e = 0.0
        for level in range(self.known - 1, -1, -1):
            _, below, gain = self._steps[level]
            b = self.regions.gathered(level + 1, b)
            if level in weights:
                spread = _times(below, weights[level])
                e += float(np.sum(weights[level] * (2 * b + spread)))
                b = b + spread
            if level >= self.first:
                drawn = _times(gain, b)
                e -= float(np.sum(b * drawn))
                b = self.variance * drawn
        return e

    @property
    def _children(self) -> Iterator[tuple[Floats, Floats]]:
        """The vectors v and sums c of the children of each node just above the known level."""
        ends = self.regions.starts[self.known][1:]
        return zip(np.split(self.own, ends), np.split(self.free[:, None], ends), strict=True)

    @cached_property
    def _steps(self) -> dict[int, tuple[Floats, Floats, Floats]]:
        """The matrices C, V and G, each (nodes, cells, cells), of every level above."""
        steps, one = {}, np.eye(self.own.shape[1])
        below: Floats = np.stack([_sum_of_known(v, c) for v, c in self._children])
        for level in range(self.known - 1, -1, -1):
            gain = np.asarray(np.linalg.inv(below + self.variance * one), dtype=np.float64)
            product: Floats = np.matmul(gain, below)
            # The product is symmetric but for rounding.
            own = self.variance / 2 * (product + product.swapaxes(1, 2))
            steps[level] = own, below, gain
            below = self.regions.gathered(level, own)
        return steps

    @cached_property
    def _taken(self) -> tuple[Floats, ...]:
        """For each level, the matrices w of the parents of its nodes."""
        found = [np.zeros((1, self.own.shape[1], self.own.shape[1]))]
        for level in range(self.known):
            gain, above = self._steps[level][2], found[-1][self.regions.parents[level]]
            found.append(gain + self.variance**2 * gain @ above @ gain)
        return tuple(found)


def _sum_of_known(v: Floats, c: Floats) -> Floats:
    """The sum of diag(v) - v v'/c over the rows of v and c."""
    scaled = np.divide(v, np.sqrt(c), out=np.zeros_like(v), where=c > 0)
    return np.asarray(np.diag(v.sum(axis=0)) - scaled.T @ scaled)


def _times(matrices: Floats, vectors: Floats) -> Floats:
    """The products (k, m) of matrices (k, m, m) and vectors (k, m)."""
    return np.asarray((matrices @ vectors[:, :, None])[:, :, 0])
