"""Rows of whole numbers: an intercept, curves of single columns, and waves over several columns.

    intercept     the same number for all records
    curves        of each column alone (``dpcore.releases.machines.curves``)
    waves         cos and sin of a phase that adds up over ``TOGETHER`` columns: the random features of a
                  Gaussian kernel (Rahimi & Recht 2007), each on a few columns

Curves and waves each have about half of a row's squared norm, which has a public bound for any places of
the values.  Rows are looked up in tables, so that a record's row is the same to the last bit, whatever
the other records are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcore.arrays import Floats, Integers
from dpcore.domain.axes import Axis
from dpcore.releases.machines.curves import SCALE, Places, coordinates_of, largest_square
from dpcore.releases.machines.features import coordinate_names, ordered

TOGETHER = 4
"""The number of columns of a wave."""

BANDWIDTH = 0.5
"""The bandwidth of the kernel, for places in [0, 1]; different categories are at distance 1/sqrt(2)."""

TURN = 2**16
"""The number of phases in a full turn; phases are whole numbers."""


@dataclass(frozen=True)
class Design:
    """The rule of rows; ``axes``: the features; ``places``: of their values; ``waves``: their number."""

    axes: tuple[Axis, ...]
    places: Places
    waves: int

    @cached_property
    def curves(self) -> tuple[Integers, ...]:
        """The coordinates of each cell of each feature: (size, coordinates)."""
        pairs = zip(self.axes, self.places, strict=True)
        return tuple(coordinates_of(axis, places) for axis, places in pairs)

    @cached_property
    def positions(self) -> tuple[Floats, ...]:
        """The coordinates (size, coordinates) of each cell of a feature; numbers have place - 1/2."""
        return tuple(_positions(a, p) for a, p in zip(self.axes, self.places, strict=True))

    @cached_property
    def frequencies(self) -> tuple[Floats, ...]:
        """The frequencies (coordinates, waves) along the coordinates of each feature."""
        return _frequencies(
            tuple((len(coordinate_names(a)), ordered(a)) for a in self.axes), self.waves
        )

    @cached_property
    def _turns(self) -> tuple[Integers, ...]:
        parts = zip(self.positions, self.frequencies, strict=True)
        return tuple(
            np.rint(where @ often * (TURN / (2 * np.pi))).astype(np.int64) for where, often in parts
        )

    @property
    def _curved(self) -> int:
        """The largest sum of squares of a row's curves."""
        return sum(map(largest_square, self.axes))

    @cached_property
    def amplitude(self) -> int:
        return math.isqrt(self._curved // self.waves)

    @cached_property
    def intercept(self) -> int:
        """The first number of each row: 0.3 times the norm of all others."""
        return math.isqrt(2 * self._curved * 9 // 100)

    @cached_property
    def norm_squared(self) -> int:
        """The bound R on a row's squared norm, as in the claim of ``descent``."""
        return self.intercept**2 + self._curved + self.waves * _largest_wave(self.amplitude)

    @cached_property
    def width(self) -> int:
        """d, the length of a row."""
        return 1 + sum(int(table.shape[1]) for table in self.curves) + 2 * self.waves

    @property
    def largest(self) -> int:
        """The largest absolute value in a row."""
        return max(self.intercept, SCALE, self.amplitude)

    def rows(self, codes: Integers) -> NDArray[np.int16]:
        """The rows (k, d) of records with these codes (k, features)."""
        found = np.empty((len(codes), self.width), dtype=np.int16)
        found[:, 0] = self.intercept
        phases, start = np.zeros((len(codes), self.waves), dtype=np.int64), 1
        for i, (curve, turns) in enumerate(zip(self.curves, self._turns, strict=True)):
            found[:, start : start + curve.shape[1]] = curve[codes[:, i]]
            start += curve.shape[1]
            phases += turns[codes[:, i]]
        phases %= TURN  # whole numbers, so that sums are exact in any order
        for circle in _circle(self.amplitude):
            found[:, start : start + self.waves] = circle[phases]
            start += self.waves
        return found

    def phases(self, codes: Integers) -> Floats:
        """The phase (k, waves) of each wave, not rounded, at cells (k, features)."""
        parts = zip(self.positions, self.frequencies, strict=True)
        return np.asarray(sum(where[codes[:, i]] @ often for i, (where, often) in enumerate(parts)))


def norms(rows: NDArray[np.integer[Any]]) -> Floats:
    """The norms (k,) of rows (k, d)."""
    return np.asarray(np.sqrt((rows.astype(np.float64) ** 2).sum(axis=1)))


def _positions(axis: Axis, places: tuple[float, ...]) -> Floats:
    if not places:
        return np.eye(axis.size)
    where = np.zeros((axis.size, 1 + axis.nullable))
    where[: len(places), 0] = np.asarray(places) - 0.5
    where[len(places) :, 1:] = 1.0
    return where


@lru_cache
def _frequencies(shapes: tuple[tuple[int, bool], ...], waves: int) -> tuple[Floats, ...]:
    """The frequencies (coordinates, waves) of each feature, given its number of coordinates and whether
    it is a number.  They are the first numbers of a generator with a fixed stream.  A wave involves
    ``TOGETHER`` features, or all if there are fewer."""
    from scipy.special import ndtri  # slow to import, and a plan is explained without

    needed = len(shapes) * waves + sum(number for number, _ in shapes) * waves
    # Raw words, because numpy promises the same stream of these in all versions.
    words = np.random.PCG64(0).random_raw(needed) >> np.uint64(11)
    uniforms = iter(np.split((words.astype(np.float64) + 0.5) * 2.0**-53, needed // waves))
    ranks = np.argsort(np.argsort([next(uniforms) for _ in shapes], axis=0), axis=0)
    found = []
    for rank, (coordinates, number) in zip(ranks, shapes, strict=True):
        normal = ndtri([next(uniforms) for _ in range(coordinates)]) / BANDWIDTH
        # Coordinates of 0 and 1 get half the frequency, so that their values are at distance 1/sqrt(2).
        normal[1 if number else 0 :] /= 2
        found.append(np.where(rank < TOGETHER, normal, 0.0))
    return tuple(found)


@lru_cache
def _circle(amplitude: int) -> tuple[Integers, Integers]:
    phases = np.arange(TURN) * (2 * np.pi / TURN)
    cosines, sines = np.rint(amplitude * np.cos(phases)), np.rint(amplitude * np.sin(phases))
    return cosines.astype(np.int16), sines.astype(np.int16)


@lru_cache
def _largest_wave(amplitude: int) -> int:
    cosines, sines = (numbers.astype(np.int64) for numbers in _circle(amplitude))
    return int((cosines**2 + sines**2).max())
