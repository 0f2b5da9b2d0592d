"""Replicates: the published unbiased numbers with the noise drawn again, as survey people know them.

A reader without covariances computes f on the published column and on each replicate of it:

    SE(f)^2 = mean over r of (f(replicate_r) - f(published))^2

Replicate r is the published column plus noise of the law that is already in it, drawn by an ordinary
generator.  One draw of noise, sent through the same linear steps as the statistic, serves all tables of
a release: in each replicate they agree as the published ones do, so the error of a sum, share or index
over several tables is right too.  This is the parametric bootstrap (Efron & Tibshirani 1993, section
6.5), exact for sums.  Replicates are made from published numbers alone.

>>> replicate_names(3), replicates_within(40, 2**22)
(['replicate_01', 'replicate_02', 'replicate_03'], 16)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcore.arrays import Floats
from dpcore.line.statistic import Noisy
from dpcore.releases.base import post_processing_generator

MOST_NUMBERS = 2**26
"""The replicates of one release hold at most this many numbers: tables of more cells have fewer."""

FEWEST = 10
"""With fewer replicates an error says too little: there are none."""

MOST_AT_ONCE = 2**22
"""So many numbers of several draws are sent through an agreement at once."""

FINE = 0.01
"""A sum of all rows of a table is rounded by this part of the noise of one, or less."""

REPLICATE = "replicate_"
"""How the names of the columns begin."""


def replicate_names(number: int) -> list[str]:
    """The names of the columns."""
    width = max(2, len(str(number)))
    return [f"{REPLICATE}{i:0{width}d}" for i in range(1, number + 1)]


def replicates_within(wanted: int, rows: int) -> int:
    """How many replicates a release of ``rows`` rows in all tables has."""
    number = min(wanted, MOST_NUMBERS // max(rows, 1))
    return number if number >= min(FEWEST, wanted) else 0


def replicate_generator(noisy: Noisy) -> np.random.Generator:
    """Randomness for the replicates of a draw, independent of its other post-processing."""
    return post_processing_generator(noisy).spawn(3)[2]


def drawn_again(noise: Callable[[], NDArray[Any]], number: int) -> NDArray[np.float32]:
    """(number, rows) draws of ``noise``."""
    return np.stack([np.asarray(noise(), dtype=np.float32) for _ in range(number)])


def agreed_again(
    tables: Callable[[int], Sequence[Floats]], sizes: Sequence[int], number: int
) -> list[NDArray[np.float32]]:
    """(number, size) draws of each table; ``tables(k)`` gives k draws, the last axis of each."""
    found = [np.empty((number, size), dtype=np.float32) for size in sizes]
    most = max(MOST_AT_ONCE // max(sum(sizes), 1), 1)
    for start in range(0, number, most):
        drawn = min(most, number - start)
        for into, table in zip(found, tables(drawn), strict=True):
            into[start : start + drawn] = table.reshape(-1, drawn).T
    return found


def replicates(published: NDArray[Any], noise: NDArray[np.float32]) -> NDArray[Any]:
    """(number, rows) replicates of a column (rows,), rounded, in single precision where it is enough.

    They are multiples of a power of two: the last bits of noise say nothing, and take most of a file.
    """
    values: Floats = published + noise.astype(np.float64)
    if step := _step(published, noise):
        values = np.rint(values / step) * step
    return values.astype(precision_of(published, noise))


def precision_of(published: NDArray[Any], noise: NDArray[np.float32]) -> np.dtype[Any]:
    """The type of a column's replicates."""
    largest = np.abs(published).max(initial=0) + np.abs(noise).max(initial=0)
    exact = largest <= 2.0**24 * _step(published, noise)
    return np.dtype(np.float32 if exact else np.float64)


def _step(published: NDArray[Any], noise: NDArray[np.float32]) -> float:
    """Of what the replicates are multiples; zero where there is no noise.

    Rounding to multiples of s adds errors of variance s^2/12, independent in all rows.
    """
    fine = FINE * np.abs(noise).mean() * (12 / max(len(published), 1)) ** 0.5
    return float(2.0 ** np.floor(np.log2(fine))) if fine > 0 else 0.0
