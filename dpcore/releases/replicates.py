"""Replicates: the published unbiased numbers with the noise drawn again, as in survey statistics.

Without covariances, a reader computes a statistic f on the published column and on each replicate of it:

    SE(f)^2 = mean over r of (f(replicate_r) - f(published))^2

Replicate r is the published column plus new noise of the same law, drawn by an ordinary generator.  One
draw of noise goes through the same linear steps as the statistic, and is used for all tables of a
release.  So the tables of a replicate agree like the published ones, and errors of sums, shares or
indices over several tables are right too.  This is the parametric bootstrap (Efron & Tibshirani 1993,
section 6.5), exact for sums.  Replicates are made from published numbers alone.

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
"""The most numbers in the replicates of one release: larger tables have fewer replicates."""

FEWEST = 10
"""The fewest replicates: with fewer, a standard error is too inaccurate, so there are none."""

MOST_AT_ONCE = 2**22
"""The most numbers that pass through an agreement at a time; more draws are split."""

FINE = 0.01
"""Rounding changes a sum of all rows of a table by at most this fraction of the noise in one row."""

REPLICATE = "replicate_"
"""The prefix of the columns' names."""


def replicate_names(number: int) -> list[str]:
    """The names of the columns."""
    width = max(2, len(str(number)))
    return [f"{REPLICATE}{i:0{width}d}" for i in range(1, number + 1)]


def replicates_within(wanted: int, rows: int) -> int:
    """The number of replicates of a release with ``rows`` rows in all tables."""
    number = min(wanted, MOST_NUMBERS // max(rows, 1))
    return number if number >= min(FEWEST, wanted) else 0


def replicate_generator(noisy: Noisy) -> np.random.Generator:
    """A generator for the replicates of a draw, independent of its other post-processing."""
    # The first two streams are for synthetic records, the fourth for implicates.
    return post_processing_generator(noisy).spawn(3)[2]


def drawn_again(noise: Callable[[], NDArray[Any]], number: int) -> NDArray[np.float32]:
    """``number`` draws of ``noise``, as (number, rows)."""
    return np.stack([np.asarray(noise(), dtype=np.float32) for _ in range(number)])


def agreed_again(
    tables: Callable[[int], Sequence[Floats]], sizes: Sequence[int], number: int
) -> list[NDArray[np.float32]]:
    """The noise of each table (number, size); ``tables(k)`` draws it k times, along the last axis."""
    found = [np.empty((number, size), dtype=np.float32) for size in sizes]
    most = max(MOST_AT_ONCE // max(sum(sizes), 1), 1)
    for start in range(0, number, most):
        drawn = min(most, number - start)
        for into, table in zip(found, tables(drawn), strict=True):
            into[start : start + drawn] = table.reshape(-1, drawn).T
    return found


def replicates(published: NDArray[Any], noise: NDArray[np.float32]) -> NDArray[Any]:
    """Replicates (number, rows) of a column (rows,), rounded, and in single precision if that suffices.

    They are rounded to multiples of a power of two: the last bits of noise carry no information, and
    take most of a file.
    """
    values: Floats = published + noise.astype(np.float64)
    if step := _step(published, noise):
        values = np.rint(values / step) * step
    return values.astype(precision_of(published, noise))


def precision_of(published: NDArray[Any], noise: NDArray[np.float32]) -> np.dtype[Any]:
    """The data type of a column's replicates."""
    largest = np.abs(published).max(initial=0) + np.abs(noise).max(initial=0)
    exact = largest <= 2.0**24 * _step(published, noise)
    return np.dtype(np.float32 if exact else np.float64)


def _step(published: NDArray[Any], noise: NDArray[np.float32]) -> float:
    """Replicates are rounded to multiples of this step; zero if there is no noise.

    Rounding to multiples of s adds independent errors of variance s^2/12.
    """
    fine = FINE * np.abs(noise).mean() * (12 / max(len(published), 1)) ** 0.5
    return float(2.0 ** np.floor(np.log2(fine))) if fine > 0 else 0.0
