"""The errors of counts of fitted records, by repeating noise and fit on what was fitted.

(count - exact)^2 is (count - estimate)^2 plus what the noise in the unbiased estimate adds.  The first
is known and only the second, which is small, is simulated; so a fit that leaves something out is noticed
(covariance penalties, Efron 2004).  No stated error is below that of the simulation.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dpcore.arrays import Floats, Integers
from dpcore.post.tables.count_interval import Accepted, count_interval
from dpcore.post.tables.simulation import pooled_means

SIMULATED = 1000
"""Errors are simulated for at least this many cells: fitting records takes its time."""

MOST_REPEATS = 20


def count_errors(
    counts: Integers,
    estimates: Floats,
    scales: Floats,
    unbiased: tuple[Floats, Floats],
    again: Callable[[], tuple[Integers, Floats]],
) -> tuple[Floats, Floats, Floats]:
    """Root mean squared errors (k,) of ``counts`` (k,), and both ends of 90% intervals around them.

    ``estimates`` (k,) are unbiased, with standard deviations ``scales`` (k,) and the ends ``unbiased``
    of 90% intervals.  ``again`` gives the counts and estimates of one more draw, had these counts been
    the exact ones.
    """
    added, errors, levels = [], [], []
    for _ in range(int(np.clip(SIMULATED // counts.size, 1, MOST_REPEATS))):
        fitted, estimated = again()
        errors.append(((fitted - counts) / scales) ** 2)
        added.append(errors[-1] - ((fitted - estimated) / scales) ** 2)
        levels.append(fitted / scales)
    seen, at = ((counts - estimates) / scales) ** 2, counts / scales
    simulated = np.stack(levels)

    def squares(level: Floats) -> tuple[Floats, Floats]:
        known = pooled_means(seen, at, level) + pooled_means(np.stack(added), simulated, level)
        return known, pooled_means(np.stack(errors), simulated, level)

    def width(level: Floats) -> Floats:
        known, repeated = squares(level)
        return np.asarray(np.sqrt(np.maximum(1.0, known / np.maximum(repeated, 1e-12))))

    error = np.sqrt(np.maximum(*squares(at))) * scales
    accepted = Accepted.of(np.tile(at, len(levels)), simulated.ravel(), width)
    return error, *count_interval(counts, error, estimates, scales, unbiased, accepted)
