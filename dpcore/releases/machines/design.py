"""Rows of whole numbers: an intercept, curves of each column, and waves over several at once.

    intercept     one number for all
    curves        of each column alone (``dpcore.releases.machines.curves``)
    waves         cos and sin of a phase that adds up over ``TOGETHER`` columns: the random features of a
                  Gaussian kernel (Rahimi & Recht 2007), each on a few columns

Curves and waves each have about half of a row's squared norm, which has a public bound whatever places
the values of the columns have.  Rows are looked up in tables, so that a record's row is the same to the
last bit whoever else is there.
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
"""Columns of a wave."""

BANDWIDTH = 0.5
"""Of the kernel, for places in [0, 1]; different categories lie at distance 1/sqrt(2)."""

TURN = 2**16
"""Phases are whole parts of a turn."""


@dataclass(frozen=True)
class Design:
    """``axes``: the features; ``places``: of the values of each, () for categories; ``waves``: how many
    there are."""

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
        """Where each cell of a feature lies, a number at its place less 1/2: (size, coordinates)."""
        return tuple(_positions(a, p) for a, p in zip(self.axes, self.places, strict=True))

    @cached_property
    def frequencies(self) -> tuple[Floats, ...]:
        """Of the waves along the coordinates of each feature: (coordinates, waves)."""
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
        """The most that the squares of a row's curves come to."""
        return sum(map(largest_square, self.axes))

    @cached_property
    def amplitude(self) -> int:
        """Of a wave."""
        return math.isqrt(self._curved // self.waves)

    @cached_property
    def intercept(self) -> int:
        """The first number of each row: 0.3 times the norm of all others."""
        return math.isqrt(2 * self._curved * 9 // 100)

    @cached_property
    def norm_squared(self) -> int:
        """R of the claim."""
        return self.intercept**2 + self._curved + self.waves * _largest_wave(self.amplitude)

    @cached_property
    def width(self) -> int:
        """d: numbers of a row."""
        return 1 + sum(int(table.shape[1]) for table in self.curves) + 2 * self.waves

    @property
    def largest(self) -> int:
        """No number of a row is larger in size."""
        return max(self.intercept, SCALE, self.amplitude)

    def rows(self, codes: Integers) -> NDArray[np.int16]:
        """(k, d) rows of records with these codes (k, features)."""
        found = np.empty((len(codes), self.width), dtype=np.int16)
        found[:, 0] = self.intercept
        phases, start = np.zeros((len(codes), self.waves), dtype=np.int64), 1
        for i, (curve, turns) in enumerate(zip(self.curves, self._turns, strict=True)):
            found[:, start : start + curve.shape[1]] = curve[codes[:, i]]
            start += curve.shape[1]
            phases += turns[codes[:, i]]
        phases %= TURN
        for circle in _circle(self.amplitude):
            found[:, start : start + self.waves] = circle[phases]
            start += self.waves
        return found

    def phases(self, codes: Integers) -> Floats:
        """(k, waves) the phase of each wave, not rounded, at cells of the features (k, features)."""
        parts = zip(self.positions, self.frequencies, strict=True)
        return np.asarray(sum(where[codes[:, i]] @ often for i, (where, often) in enumerate(parts)))


def norms(rows: NDArray[np.integer[Any]]) -> Floats:
    """(k,) of rows (k, d)."""
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
    """(coordinates, waves) of each feature, from (coordinates, whether it is a number): the first
    numbers of a generator whose stream is fixed for ever.  A wave runs over ``TOGETHER`` features, or
    all."""
    from scipy.special import ndtri  # slow to import, and a plan is explained without

    needed = len(shapes) * waves + sum(number for number, _ in shapes) * waves
    words = np.random.PCG64(0).random_raw(needed) >> np.uint64(11)
    uniforms = iter(np.split((words.astype(np.float64) + 0.5) * 2.0**-53, needed // waves))
    ranks = np.argsort(np.argsort([next(uniforms) for _ in shapes], axis=0), axis=0)
    found = []
    for rank, (coordinates, number) in zip(ranks, shapes, strict=True):
        normal = ndtri([next(uniforms) for _ in range(coordinates)]) / BANDWIDTH
        normal[1 if number else 0 :] /= 2
        found.append(np.where(rank < TOGETHER, normal, 0.0))
    return tuple(found)


@lru_cache
def _circle(amplitude: int) -> tuple[Integers, Integers]:
    """cos and sin of every phase."""
    phases = np.arange(TURN) * (2 * np.pi / TURN)
    cosines, sines = np.rint(amplitude * np.cos(phases)), np.rint(amplitude * np.sin(phases))
    return cosines.astype(np.int16), sines.astype(np.int16)


@lru_cache
def _largest_wave(amplitude: int) -> int:
    """The most that the squares of a wave's two numbers add up to, rounded as they are."""
    cosines, sines = (numbers.astype(np.int64) for numbers in _circle(amplitude))
    return int((cosines**2 + sines**2).max())
