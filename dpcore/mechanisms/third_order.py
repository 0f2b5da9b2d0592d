"""What noisy tables of pairs imply of three columns together, if nothing more relates them.

Three pairs leave open how three columns go together.  Of all tables with these pairs, the one of the
largest entropy has no interaction of three: iterative proportional fitting finds it, from a table of
equal cells (Deming & Stephan 1940).  Noise in a pair is no dependence, so each pair is first shrunk
towards the product of its margins, by the part of their distance that noise explains (James & Stein).

>>> import numpy as np
>>> even = np.full((1, 2, 2), 50.0)
>>> implied_triples(even, even, even).tolist()
[[[[25, 25], [25, 25]], [[25, 25], [25, 25]]]]
"""

from __future__ import annotations

import numpy as np

from dpcore.arrays import Floats, Integers

SWEEPS = 5
"""Fits to each pair: after a few the table hardly changes."""

LEAST = 1e-9
"""Of the records in a cell that looks empty, so that tables can be divided."""


def independent(counts: Floats) -> tuple[Floats, Floats]:
    """The products of the margins of tables (k, rows, columns), and squared distances (k,) from them."""
    rows, columns = counts.sum(axis=2, keepdims=True), counts.sum(axis=1, keepdims=True)
    product = rows * columns / np.maximum(counts.sum(axis=(1, 2), keepdims=True), 1.0)
    return product, ((counts - product) ** 2).sum(axis=(1, 2))


def freedom(shape: tuple[int, ...]) -> int:
    """How many cells' worth of noise lie between a table and the product of its margins."""
    return (shape[0] - 1) * (shape[1] - 1)


def shrunk_pairs(noisy: Integers, variance: float) -> Floats:
    """Positive tables (k, rows, columns) of the dependence in noisy ones that noise does not explain."""
    counts = noisy.astype(np.float64)
    product, distance = independent(counts)
    noise = variance * freedom(counts.shape[1:])
    kept = np.maximum(1.0 - noise / np.maximum(distance, 1e-9), 0.0)[:, None, None]
    totals = np.maximum(counts.sum(axis=(1, 2), keepdims=True), 1.0)
    table = np.maximum(product + kept * (counts - product), 0.0) + LEAST * totals
    return np.asarray(table * (totals / table.sum(axis=(1, 2), keepdims=True)))


def implied_triples(first: Floats, second: Floats, third: Floats) -> Integers:
    """The counts (k, a, b, c) without three-way interaction that fit positive tables of all pairs.

    ``first`` (k, a, b), ``second`` (k, a, c), ``third`` (k, b, c).
    """
    table = np.ones((*first.shape, second.shape[2]))
    for _ in range(SWEEPS):
        for pair, axis in ((first, 3), (second, 2), (third, 1)):
            table *= np.expand_dims(pair, axis) / table.sum(axis=axis, keepdims=True)
    return np.asarray(np.rint(table).astype(np.int64))
