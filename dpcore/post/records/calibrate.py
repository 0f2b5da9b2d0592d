"""Records that follow more tables than those that they were drawn from.

Two releases of one plan may count the same columns: records of all columns, and a table of health by
visits with a budget of its own, which is more precise.  Records keep their cells; how often each is
taken changes until they agree with the better tables too.

    weights --raking--> the tables, shrunken towards the records' own where they are noise
            --systematic sampling--> each record none, one or several times

Raking (Deming & Stephan 1940) changes the joint distribution as little as the tables allow, and no
record gets a combination of cells that it did not have: what rules exclude stays excluded.

>>> cells = np.repeat([0, 1], [60, 40])
>>> table = Target(cells, np.array([90.0, 10.0]), 1.0)
>>> chosen = calibrated(100, [table], np.random.default_rng(1))
>>> np.bincount(cells[chosen]).tolist()
[90, 10]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dpcore.arrays import Floats, Integers
from dpcore.post.records.denoise import log_likelihoods, shrink

SWEEPS = 30
MOST = 100.0
"""A record is taken at most about this many times, so that few do not stand for many."""

DOUBT = 4.0
"""By how much a table must be more likely than the records' own before they move, in log likelihood."""


class Target(NamedTuple):
    """A table that records should follow.

    ``cells`` (rows,): the cell of each record; ``table`` (size,): its noisy counts, unbiased, for as
    many records; ``variance``: of their noise.
    """

    cells: Integers
    table: Floats
    variance: float


def calibrated(rows: int, targets: Sequence[Target], generator: np.random.Generator) -> Integers:
    """(rows,) which of as many records to take, in random order; each may be there several times."""
    wanted = [_wanted(rows, target) for target in targets]
    weights = np.ones(rows)
    for _ in range(SWEEPS):
        for target, counts in zip(targets, wanted, strict=True):
            now = np.bincount(target.cells, weights, minlength=len(counts))
            factors = np.divide(counts, now, out=np.ones_like(counts), where=now > 0)
            weights *= factors[target.cells]
        weights = np.minimum(weights * (rows / max(weights.sum(), 1e-9)), MOST)
    order = np.lexsort([target.cells for target in targets])
    ends = np.cumsum(weights[order]) * (rows / weights.sum())
    chosen = np.searchsorted(ends, np.arange(rows) + generator.random(), side="right")
    return np.asarray(generator.permutation(order[np.minimum(chosen, rows - 1)]))


def _wanted(rows: int, target: Target) -> Floats:
    """(size,) counts between those of the records and the noisy ones, none negative."""
    own = np.bincount(target.cells, minlength=len(target.table)).astype(np.float64)
    model = np.maximum(own, 0.5)
    evidence = log_likelihoods(model, target.table, target.variance)
    evidence[:, 1:] -= DOUBT
    better = np.maximum(shrink(model, target.table, target.variance, evidence), 0.0)
    return np.asarray(better * (rows / max(better.sum(), 1e-9)))
