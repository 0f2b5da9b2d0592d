"""The errors of counts that were computed from unbiased estimates, and intervals around them.

(count - exact)^2 is (count - estimate)^2 plus a term from the noise in estimate.  The first is known;
only the second, which is small, is simulated by repeating noise and post-processing on likely counts.
So the errors of an imperfect fit are included (covariance penalties, Efron 2004).  Cells with about the
same count are pooled, whatever their table.  A table that is fitted worse than others, such as a table
of three columns by a model of pairs, gets the errors of its own cells.  No stated error is below the
simulated one.

>>> counts, estimates = np.array([0, 9]), np.array([-3.0, 9.5])
>>> again = [(np.array([0, 8]), np.array([-1.0, 8.0])), (np.array([0, 10]), np.array([1.0, 10.0]))]
>>> unbiased = np.array([0.0, 6.0]), np.array([3.0, 13.0])
>>> found = count_errors(counts, estimates, np.full(2, 2.0), unbiased, counts, [2], again)
>>> [each.round(1).tolist() for each in found]
[[2.2, 2.2], [0.0, 6.0], [3.0, 13.0]]
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from dpcore.arrays import Floats, Integers
from dpcore.post.tables.count_interval import Accepted, count_interval
from dpcore.post.tables.simulation import pooled_means

MOST_REPEATS = 20

LEAST_STDDEV = 1e-6
"""With less noise than this an estimate is exact, and so is its count."""


def repeats(cells: int, simulated: int) -> int:
    """How often this number of cells is drawn again, to simulate about ``simulated`` errors."""
    return int(np.clip(simulated // cells, 1, MOST_REPEATS))


def count_errors(
    counts: Integers,
    estimates: Floats | Integers,
    stddevs: Floats,
    unbiased: tuple[Floats | Integers, Floats | Integers],
    start: Integers,
    sizes: Sequence[int],
    again: Iterable[tuple[Integers, Floats | Integers]],
) -> tuple[Floats, Floats, Floats]:
    """Root mean squared errors (k,) of counts, and both ends of 90% intervals for the exact counts.

    ``estimates``: unbiased numbers with noise of these ``stddevs``; ``unbiased``: the ends of their
    intervals.  ``sizes``: the number of cells of each table; the tables are concatenated.  ``again``:
    counts and estimates that are simulated with ``start`` as the exact counts.
    """
    noisy = stddevs > LEAST_STDDEV
    errors, lower, upper = np.zeros((3, len(counts)))
    lower[:] = upper[:] = counts
    if not noisy.any():
        return errors, lower, upper
    scales, counts, estimates = stddevs[noisy], counts[noisy], estimates[noisy]
    ends = unbiased[0][noisy], unbiased[1][noisy]
    exact = start[noisy] / scales
    pairs = [(fitted[noisy] / scales, estimated[noisy] / scales) for fitted, estimated in again]
    simulated = np.stack([fitted for fitted, _ in pairs])
    repeated = (simulated - exact) ** 2
    added = repeated - np.stack([(fitted - estimated) ** 2 for fitted, estimated in pairs])
    seen, at = ((counts - estimates) / scales) ** 2, counts / scales

    def squares(level: Floats) -> tuple[Floats, Floats]:
        known = pooled_means(seen, at, level) + pooled_means(added, simulated, level)
        return known, pooled_means(repeated, simulated, level)

    def width(level: Floats) -> Floats:
        known, alone = squares(level)
        return np.asarray(np.sqrt(np.maximum(1.0, known / np.maximum(alone, 1e-12))))

    tables = np.repeat(np.arange(len(sizes)), sizes)[noisy]
    pooled = np.maximum(*squares(at))
    own = _wider(tables, seen + added.mean(axis=0), pooled)
    errors[noisy] = np.sqrt(own * pooled) * scales
    accepted = Accepted.of(np.tile(exact, len(pairs)), simulated.ravel(), width)
    lower[noisy], upper[noisy] = count_interval(
        counts, errors[noisy], estimates, scales, ends, accepted
    )
    return errors, lower, upper


def _wider(tables: Integers, own: Floats, pooled: Floats) -> Floats:
    """Ratio of the squared errors of each cell's table to the pooled ones; at least 1."""
    found, stated = np.bincount(tables, own), np.bincount(tables, pooled)
    return np.asarray(np.maximum(1.0, found / np.maximum(stated, 1e-12))[tables])
