r"""Noisy tables at every level of a tree of regions, adjusted to agree with least variance.

Every node u has a table of cells, measured with noise of variance s in each; a node's table is the sum
of its children's.  Generalised least squares takes two passes (Hay, Rastogi, Miklau & Suciu 2010;
Honaker 2015), cell by cell and in time linear in the leaves.  With y the measurement of a node, S and V
the sum of its children's z and of their variances C, and G = 1/(V + s):

    upward      z = S + V p         p = G (y - S)            variance    C = s G V
    downward    h = S + V l         l = p + s G l_parent

A leaf has z = y and C = s, or 0 and 0 if its cell is impossible; there h = z + C l_parent.  Above the
root l is 0.  The levels above reduce the variance of h, which follows in the same way:

    var h = C - C^2 w_parent        w = G + (s G)^2 w_parent

For a weighted sum of the h of any nodes, let e be the variance, and b the covariance with a node's
table, from the part of the tree up to this node.  The node's own weight a adds 2 a b + a^2 V to e and a
V to b; its measurement reduces e by G b^2, and multiplies b by s G.

**Known totals.**  If the totals over all cells are known at every node of one level, each of them is a
measurement without noise.  With c the sum of C over the cells, a node then has

    z + C t,   t = (total - sum of z) / c        l_parent + t - (sum of C l_parent) / c   from above

The cells of such a node are correlated, and so are those of all nodes above:
``dpcore.post.tables.crown``.

The estimates are unbiased and have the least variance of all linear ones.

>>> from dpcore.domain.axes import Categories
>>> from dpcore.domain.domain import Domain
>>> states = Regions(Domain((Categories("state", ("A", "B")),)), np.array([0, 1]))
>>> fit = TreeSquares(states, cells=1, variance=1.0)
>>> root, leaves = fit.estimates([np.array([[13.0]]), np.array([[4.0], [6.0]])])
>>> root.round(6).tolist(), leaves.ravel().round(6).tolist()
([[12.0]], [5.0, 7.0])
>>> round(fit.sum_variance({0: np.ones((1, 1))}), 6)
0.666667
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpcore.arrays import Booleans, Floats
from dpcore.domain.regions import Regions
from dpcore.post.tables.crown import Crown


@dataclass(frozen=True, eq=False)
class TreeSquares:
    """Least squares over a tree, from public values.

    Args:
        cells: the number of cells of each node's table.
        variance: of each measurement.
        first: the first level that is measured; the levels above are known.
        possible: (leaves, cells), False for impossible cells; None if all cells are possible.
        known: the level at which totals over cells are known, if any.
        unknown: (nodes,) True for nodes of that level without a known total; None if all are known.
    """

    regions: Regions
    cells: int
    variance: float
    first: int = 0
    possible: Booleans | None = None
    known: int | None = None
    unknown: Booleans | None = None

    @property
    def top(self) -> int:
        """The level below which cells are uncorrelated."""
        return self.known or 0

    def estimates(self, noisy: Sequence[Floats], totals: Floats | None = None) -> list[Floats]:
        """The estimates h (nodes, cells) of all levels, from y of each measured level.

        ``totals``: (nodes,) of the known level; any number for a node whose total is not known.
        """
        regions, up = self.regions, []
        z = np.array(noisy[-1], dtype=np.float64)
        if self.possible is not None:  # measurements there are noise only
            z[~self.possible] = 0.0
        leaves = z
        for level in range(regions.depth - 1, self.top - 1, -1):
            sums = regions.gathered(level + 1, z)
            _, below, gain = self._steps[level]
            pull = np.zeros_like(sums)
            if level >= self.first:
                pull += gain * (noisy[level - self.first] - sums)
            z = sums + below * pull
            up.append((sums, pull))
        found: list[Floats] = []
        taken = np.zeros((1, 1))
        if self.known is not None:
            assert totals is not None
            shift = _part(totals - z.sum(axis=1), self._known_variance)
            if self.known:
                found, above = self._crown.estimates(z + self._own * shift, noisy)
                taken = above - _part(np.sum(self._own * above, axis=1), self._known_variance)
            taken = taken + shift
        for level in range(self.top, regions.depth):
            sums, pull = up[regions.depth - 1 - level]
            _, below, gain = self._steps[level]
            pull += self._kept(level, gain) * taken
            found.append(sums + below * pull)
            taken = pull[regions.parents[level + 1]]
        return [*found, leaves + self._leaf * taken]

    @cached_property
    def variances(self) -> tuple[Floats, ...]:
        """The variances of h on all levels: (nodes, cells), or (nodes, 1) if equal in all cells."""
        found, taken = [], np.zeros((1, 1))
        if self.known is not None:
            taken = np.broadcast_to(_part(1.0, self._known_variance), self._own.shape)
            if self.known:
                found = list(self._crown.variances)
                taken = taken + self._crown.taken
        for level in range(self.top, self.regions.depth):
            own, _, gain = self._steps[level]
            found.append(own - own**2 * taken)
            taken = (gain + self._kept(level, gain) ** 2 * taken)[self.regions.parents[level + 1]]
        return (*found, self._leaf - self._leaf**2 * taken)

    def sum_variance(self, weights: Mapping[int, Floats]) -> float:
        """The variance of a weighted sum of h, with weights (nodes, cells) for some levels."""
        regions, e = self.regions, 0.0
        deepest = max([self.top, *weights])
        b = np.zeros((regions.sizes[deepest], self.cells))
        for level in range(deepest, self.top - 1, -1):
            inner = level < regions.depth
            below = self._steps[level][1] if inner else self._leaf
            if level < deepest:
                b = regions.gathered(level + 1, b)
            if level in weights:
                e += float(np.sum(weights[level] * (2 * b + weights[level] * below)))
                b = b + weights[level] * below
            if inner and level >= self.first:
                gain = self._steps[level][2]
                e -= float(np.sum(gain * b**2))
                b = self._kept(level, gain) * b
        if self.known is not None:
            both = b.sum(axis=1)
            share = _part(both, self._known_variance)
            e -= float(share[:, 0] @ both)
            if self.known:
                e += self._crown.sum_variance(b - self._own * share, weights)
        return max(e, 0.0)

    @cached_property
    def _leaf(self) -> Floats:
        if self.possible is None:
            return np.full((self.regions.sizes[-1], 1), self.variance)
        return np.where(self.possible, self.variance, 0.0)

    @cached_property
    def _steps(self) -> dict[int, tuple[Floats, Floats, Floats]]:
        """The matrices C, V and G of each inner level from ``top`` on."""
        steps, own = {}, self._leaf
        for level in range(self.regions.depth - 1, self.top - 1, -1):
            below = self.regions.gathered(level + 1, own)
            if level >= self.first:
                gain = 1 / (below + self.variance)
                own = self.variance * gain * below
            else:
                gain, own = np.zeros_like(below), below
            steps[level] = own, below, gain
        return steps

    def _kept(self, level: int, gain: Floats) -> Floats | float:
        """The factor s G by which a level's measurement reduces corrections from the levels above."""
        return self.variance * gain if level >= self.first else 1.0

    @property
    def _own(self) -> Floats:
        """The variances C (nodes, cells) of the level ``top``."""
        own = self._leaf if self.top == self.regions.depth else self._steps[self.top][0]
        return np.broadcast_to(own, (len(own), self.cells))

    @cached_property
    def _known_variance(self) -> Floats:
        """The variance c (nodes,) of each total as an estimate; infinite if the total is unknown."""
        free = np.asarray(self._own.sum(axis=1))
        return free if self.unknown is None else np.where(self.unknown, np.inf, free)

    @cached_property
    def _crown(self) -> Crown:
        return Crown(
            self.regions, self.variance, self.first, self.top, self._own, self._known_variance
        )


def _part(numbers: Floats | float, of: Floats) -> Floats:
    """The quotients (k, 1), with 0 where the divisor is 0."""
    shares = np.zeros(len(of))
    np.divide(numbers, of, out=shares, where=of > 0)
    return shares[:, None]
