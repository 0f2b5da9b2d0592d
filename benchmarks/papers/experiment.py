"""What an experiment is, and draws of a release many times over."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcore.domain import Domain, Tally
from dpcore.privacy_line import perturb
from dpcore.releases.base import Release
from dpcore.sampling.source import RandomSource
from dpcore.statistic import Exact

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Line = dict[str, Any]
Row = tuple[str, str, str]

DATA = Path(os.environ.get("DPRELEASE_TEST_DATA", Path(__file__).parents[3] / "shared" / "data"))
"""The folder of the public test tables."""


@dataclass(frozen=True)
class Measured:
    """``lines``: the figures, JSON values; ``draw``: draws the plot on a matplotlib figure."""

    lines: list[Line]
    draw: Callable[[Any], None]


@dataclass(frozen=True)
class Experiment:
    """One figure or table of a paper.

    ``reports``: what the paper says of it; ``differs``: where this differs, and why; ``measure``:
    takes the number of trials; ``beside``: rows (quantity, in the paper, here) from the figures;
    ``data``: the folder of the public table that it needs, if any.
    """

    name: str
    title: str
    source: str
    reports: str
    differs: str
    trials: int
    measure: Callable[[int], Measured]
    beside: Callable[[list[Line]], list[Row]]
    data: str | None = None

    @property
    def possible(self) -> bool:
        """Whether the data are there."""
        return self.data is None or (DATA / self.data).is_dir()


def tally_of(domain: Domain, cells: Integers) -> Tally:
    """The tally of records (n,) that are given by their cells."""
    occupied, counts = np.unique(cells, return_counts=True)
    return Tally(domain, occupied, counts)


def noisy_tables(release: Release, tables: Integers, source: RandomSource) -> Integers:
    """Noisy values (times, cells): the release on each of the exact tables (times, cells).

    One batch, for mechanisms whose noise is independent from cell to cell or from table to table.
    """
    mechanism = replace(release.mechanism, size=tables.size)
    values = np.ascontiguousarray(tables).ravel()
    return perturb(Exact(values), mechanism, release.share, source).values.reshape(tables.shape)


def proportions(noisy: Integers) -> Floats:
    """(times, cells) shares: negative counts as zero, then divided by their sum; uniform if none."""
    positive = np.maximum(noisy, 0).astype(float)
    total = positive.sum(axis=-1, keepdims=True)
    return np.where(total > 0, positive / np.maximum(total, 1), 1 / noisy.shape[-1])


def rounded(value: float, digits: int = 4) -> float:
    """So many significant digits."""
    return float(f"{value:.{digits}g}")
