"""Two numbers in a fixed order that are often in the same bin, such as admission and discharge.

If numbers were drawn in their bins until they are in order, the first would be too early in each month
and the second too late, and stays of three days on average would become eight.  But their positions are
not free: if admissions and discharges are both uniform over a month, then as many people are in hospital
on every day as on the first, and the codes give this number.  So here each column keeps its known
distribution inside its bins, despite the order, and the joint distribution is otherwise as even as
possible:

    P(x in part p of bin i, y in part q of bin j  |  i, j)  is proportional to  u[i, p] v[j, q] S[p, q]

S is the share of pairs of numbers in these parts that are in order.  The parts of a bin have equal
probability by the column's density, and the weights u and v give each part equally many records:
iterative proportional fitting, whose result has the greatest entropy.  Records that the order does not
restrict have weights too, and keep their ranks inside the bin.

The ratio of weights is at most e^(2 * LARGEST).  So even two columns in a single bin, whose
densities allow no difference, differ by about a twelfth of the bin.

Source: I. Csiszar, Annals of Probability 3 (1975), 146-158.

>>> generator = np.random.default_rng(1)
>>> start = generator.integers(0, 300, 4000)
>>> codes = np.stack([start, start + generator.geometric(1 / 3, 4000)], axis=1) // 30
>>> def number(column, cells, positions):
...     return 30 * cells + np.floor(30 * positions)
>>> def in_order(low, high):
...     return low < high
>>> everyone = np.ones(4000, dtype=bool)
>>> ends = positions_in_order(codes, (11, 11), number, in_order, everyone, generator)
>>> low, high = (number(None, codes[:, c], ends[:, c]) for c in (0, 1))
>>> bool(2 < np.mean(high - low) < 4)
True
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from dpcore.arrays import Booleans, Floats, Integers

PARTS = 32
"""The number of equally probable parts of a bin."""

POINTS = 4
"""The number of points in each part at which numbers are compared."""

ROUNDS, CLOSE = 200, 1e-3
"""The most rounds of fitting, and the relative deviation of parts at which it stops earlier."""

LARGEST = 6.0
"""The largest logarithm of a weight."""

TRIES = 8
"""How often numbers are drawn again from parts in which some are out of order."""

MOST_PAIRS = 2_000
"""The most pairs of bins with numbers out of order; with more pairs, bins are too narrow to matter."""

Number = Callable[[int, Integers, Floats], Floats]
"""The numbers of a column, 0 or 1, in cells (k,) at positions (k,) from 0 to below 1."""


class _Pair(NamedTuple):
    """Records in one cell of each column; ``share``: (PARTS, PARTS) of the pairs of numbers in order."""

    cells: tuple[int, int]
    rows: Integers
    share: Floats

    def joint(self, weights: tuple[Floats, Floats]) -> Floats:
        """The probability (PARTS, PARTS) of each pair of parts."""
        low, high = (weights[side][cell] for side, cell in enumerate(self.cells))
        found = low[:, None] * self.share * high
        return np.asarray(found / found.sum())


def positions_in_order(
    codes: Integers,
    sizes: tuple[int, int],
    number: Number,
    in_order: Callable[[Floats, Floats], Booleans],
    ordered: Booleans,
    generator: np.random.Generator,
    positions: Floats | None = None,
) -> Floats:
    """Draw positions (rows, 2) in cells; only very few are out of order.

    Args:
        codes: (rows, 2) cells of both columns, none of them null.
        sizes: How many cells each column has.
        number: The numbers at positions in cells.
        in_order: Whether two numbers (k,) may occur in one record.
        ordered: (rows,) which records must be in order.
        positions: (rows, 2) of the records whose cells ensure the order; by default drawn.
    """
    found = generator.random(codes.shape) if positions is None else positions.copy()
    pairs = _pairs(codes, sizes, number, in_order, np.flatnonzero(ordered)) if ordered.any() else []
    if not pairs:
        return found
    bound = np.zeros(len(codes), dtype=bool)
    bound[np.concatenate([pair.rows for pair in pairs])] = True
    weights = _weights(codes, sizes, pairs, bound)
    for side, of in enumerate(weights):
        ends = np.pad(np.cumsum(of / of.sum(axis=1, keepdims=True), axis=1), ((0, 0), (1, 0)))
        for cell in np.unique(codes[~bound, side]):
            rows = np.flatnonzero(~bound & (codes[:, side] == cell))
            ranks = np.argsort(np.argsort(found[rows, side]))
            level = (ranks + generator.random(len(rows))) / len(rows)
            found[rows, side] = np.interp(level, ends[cell], np.linspace(0.0, 1.0, PARTS + 1))
    out = bound
    for _ in range(TRIES):
        for pair in pairs:
            rows = pair.rows[out[pair.rows]]
            chances = np.cumsum(pair.joint(weights))
            drawn = np.searchsorted(chances, generator.random(len(rows)) * chances[-1], "right")
            parts = np.stack(np.divmod(np.minimum(drawn, PARTS**2 - 1), PARTS), axis=1)
            found[rows] = (parts + generator.random(parts.shape)) / PARTS
        rows = np.flatnonzero(out)
        low, high = (number(side, codes[rows, side], found[rows, side]) for side in (0, 1))
        out = np.zeros_like(bound)
        out[rows[~in_order(low, high)]] = True
    return np.minimum(found, np.nextafter(1.0, 0.0))


def _pairs(
    codes: Integers,
    sizes: tuple[int, int],
    number: Number,
    in_order: Callable[[Floats, Floats], Booleans],
    rows: Integers,
) -> list[_Pair]:
    """The pairs of cells in which some numbers are out of order; none if they are too many."""
    together = codes[rows, 0] * sizes[1] + codes[rows, 1]
    order = np.argsort(together, kind="stable")
    kinds, starts, counts = np.unique(together[order], return_index=True, return_counts=True)
    middles = (np.arange(PARTS * POINTS) + 0.5) / (PARTS * POINTS)
    cells = np.stack(np.divmod(kinds, sizes[1]), axis=1)
    ends = [
        [
            number(side, cells[:, side], np.full(len(cells), end))
            for end in (middles[0], middles[-1])
        ]
        for side in (0, 1)
    ]
    # If these numbers are in order, so are all numbers between them.
    fine = np.all([in_order(low, high) for low in ends[0] for high in ends[1]], axis=0)
    if (~fine).sum() > MOST_PAIRS:
        return []
    found = []
    for place in np.flatnonzero(~fine):
        of = [number(side, np.full(len(middles), cells[place, side]), middles) for side in (0, 1)]
        grid = np.meshgrid(*of, indexing="ij")
        share = in_order(grid[0].ravel(), grid[1].ravel())
        share = share.reshape(PARTS, POINTS, PARTS, POINTS).mean(axis=(1, 3))
        if share.any():
            among = rows[order[starts[place] : starts[place] + counts[place]]]
            found.append(_Pair((int(cells[place, 0]), int(cells[place, 1])), among, share))
    return found


def _weights(
    codes: Integers, sizes: tuple[int, int], pairs: list[_Pair], bound: Booleans
) -> tuple[Floats, Floats]:
    """Weights (cells, PARTS) for both columns, which give all parts of a cell equally many records."""
    all_of = [np.bincount(codes[:, side], minlength=sizes[side]) for side in (0, 1)]
    free = [np.bincount(codes[~bound, side], minlength=sizes[side]) for side in (0, 1)]
    weights = np.ones((sizes[0], PARTS)), np.ones((sizes[1], PARTS))
    for _ in range(ROUNDS):
        furthest = 0.0
        for side in (0, 1):
            own = weights[side]
            had = free[side][:, None] * own / own.sum(axis=1, keepdims=True)
            for pair in pairs:
                had[pair.cells[side]] += len(pair.rows) * pair.joint(weights).sum(axis=1 - side)
            wanted = all_of[side][:, None] / PARTS
            ratio = np.where(had > 0, wanted / np.where(had > 0, had, 1.0), 1.0)
            logs = np.log(own) + np.log(np.maximum(ratio, 1e-9))
            # A common factor changes nothing; centred logarithms are clipped least.
            logs -= (logs.max(axis=1, keepdims=True) + logs.min(axis=1, keepdims=True)) / 2
            new = np.exp(np.clip(logs, -LARGEST, LARGEST))
            furthest = max(furthest, float(np.abs(np.log(new / own)).max()))
            own[:] = new
        if furthest < CLOSE:
            break
    return weights
