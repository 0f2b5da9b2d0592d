"""Learned log-ratios: scores whose values were counted on a search sample.

BinnedRatio      log-ratio of the counts of any score's bins
PatternRatio     log-ratio by which coordinates are absent or special, and by their sum
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpcore.arrays import Floats, Integers
from dpcore.audit.scores import Outputs, Score


@dataclass(frozen=True, eq=False)
class BinnedRatio:
    """Learned log-ratio of a base score's bins.

    ``edges`` (b,): bin i holds edges[i - 1] <= score < edges[i]; ``ratios`` (b + 2,): of bins
    0, ..., b and of absent scores.
    """

    base: Score
    edges: Floats
    ratios: Floats

    def __call__(self, outputs: Outputs) -> Floats:
        values = self.base(outputs)
        bins = np.searchsorted(self.edges, values, side="right")
        bins[np.isnan(values)] = len(self.edges) + 1
        return self.ratios[bins]

    def __str__(self) -> str:
        return f"log-ratio by {self.base}"


@dataclass(frozen=True, eq=False)
class PatternRatio:
    """Learned log-ratio of (pattern, bin of the sum of ordinary numbers).

    ``special``: for each coordinate, ascending values that count as a kind of their own;
    ``keys`` (p,): ascending numbers of the known patterns; ``edges``, ``ratios``: for each of them
    as in ``BinnedRatio``.  An unknown pattern scores 0.
    """

    special: tuple[Floats, ...]
    keys: Integers
    edges: tuple[Floats, ...]
    ratios: tuple[Floats, ...]

    def __call__(self, outputs: Outputs) -> Floats:
        keys, sums = patterns(outputs, self.special)
        place = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        place[self.keys[place] != keys] = -1
        order = np.argsort(place, kind="stable")
        starts = np.searchsorted(place[order], np.arange(len(self.keys) + 1))
        result = np.zeros(len(outputs))
        for i, (start, stop) in enumerate(zip(starts[:-1], starts[1:], strict=True)):
            rows = order[start:stop]
            result[rows] = self.ratios[i][np.searchsorted(self.edges[i], sums[rows], side="right")]
        return result

    def __str__(self) -> str:
        return f"log-ratio by {len(self.keys)} patterns of present and special numbers and the sum"


def patterns(outputs: Outputs, special: tuple[Floats, ...]) -> tuple[Integers, Floats]:
    """(size,) a number for each pattern of kinds, and the sum of the ordinary numbers."""
    plain = np.array([not len(atoms) for atoms in special], dtype=bool)
    ordinary = np.isfinite(outputs).all(axis=0) & plain
    odd = np.full(len(special), 0x9E3779B97F4A7C15, dtype=np.uint64)
    powers = np.multiply.accumulate(odd)
    sums = outputs[:, ordinary].sum(axis=1, dtype=np.float64)
    absent = outputs[:, plain & ~ordinary].astype(np.float64)
    keys = np.isnan(absent).astype(np.uint64) @ powers[plain & ~ordinary]
    sums += np.where(np.isfinite(absent), absent, 0.0).sum(axis=1)
    for j in np.flatnonzero(~plain).tolist():
        atoms, values = special[j], outputs[:, j].astype(np.float64)
        place = np.minimum(np.searchsorted(atoms, values), len(atoms) - 1)
        kind = np.where(atoms[place] == values, place + 1, 0).astype(np.uint64)
        kind[np.isnan(values)] = len(atoms) + 1
        sums += np.where((kind == 0) & np.isfinite(values), values, 0.0)
        keys += kind * powers[j]
    return keys.view(np.int64), sums
