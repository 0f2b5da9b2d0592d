"""Descent by noisy gradients: a sum of curves and of waves that run over several columns at once.

A record's row is made of whole numbers, by public rules:

    intercept     one number for all
    curves        of each column alone (``dpcore.releases.machines.curves``)
    waves         cos and sin of a phase that adds up over ``TOGETHER`` columns: the random features of a
                  Gaussian kernel (Rahimi & Recht 2007), each on a few columns

Curves and waves each have about half of a row's squared norm.  The loss is a smoothed hinge, whose
slope is max(0, min(1, 1 - margin)).  In each of ``rounds`` rounds the noisy gradient of its mean over
all records moves the coefficients by one of Nesterov's accelerated steps, and those of the last third
of the rounds are averaged.  No penalty shrinks them: steps are so short that directions in which the
noise would hide the gradient hardly move (``LEARNT``).

Claim.  In a round a record adds q y z, where z is its row, y its label of +1 or -1, and q a whole
number from 0 to ``SLOPE`` that follows from z, y and the public coefficients.  With R >= |z|^2 for
every row, the squared L2 norm of what one record adds is at most SLOPE^2 R, and that of the change
where one replaces another at most 4 SLOPE^2 R.

Proof.  |q y z| <= SLOPE sqrt(R), and the triangle inequality.  QED

R adds up the largest values of each column's coordinates at any places, and of all waves.  No record's
term depends on another one's, to the last bit: rows are looked up in tables of whole numbers;
coefficients are rounded so that every product z.phi is a whole number below 2^52, which floats add in
any order without rounding; q is a floor of it.  Of more than ``MOST`` records only about so many
count: of a cell with c of them floor(p c + u), where u in [0, 1) follows from the cell alone, so one
record more changes that by 1 at most.  What a table larger than ``most_rows`` adds is cut.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcore.arrays import Floats, Integers
from dpcore.domain import LARGEST_EXACT, Axis, Tally
from dpcore.mechanisms.gaussian_rounds import GaussianRounds
from dpcore.releases.base import ErrorStatement, Release
from dpcore.releases.machines.curves import (
    SCALE,
    Places,
    coordinates_of,
    largest_coordinates,
    noise_of,
)
from dpcore.releases.machines.features import coordinate_names, ordered
from dpcore.releases.table import Published
from dpcore.releases.work import Work, publishing
from dpcore.statistic import Exact, Noisy

ROUNDS, WAVES = 100, 200
"""Of tables of ``python -m benchmarks.classifiers``: 50 rounds have half a point less, 200 no more."""

TOGETHER = 4
"""Columns of a wave."""

BANDWIDTH = 0.5
"""Of the kernel, for places in [0, 1]; different categories lie at distance 1/sqrt(2)."""

LEARNT = 0.8
"""Steps end where this times the standard deviation of all noise, in units of the mean gradient, is the
inverse of their length: with 0.6 and 1 tables of ``python -m benchmarks.classifiers`` are as good."""

LONGEST, MOMENTUM, AVERAGED = 5.0, 0.9, Fraction(1, 3)

SLOPE = 2**8

TURN = 2**16
"""Phases are whole parts of a turn."""

MOST = 2**16
"""About how many records are looked at."""

ROWS_AT_ONCE = 2**13

DESCENDED = 1.2e-9
"""Seconds for each distinct row, number in it, and round."""


@dataclass(frozen=True)
class Records:
    """Private.  ``values``: (k, d) rows times labels, small whole numbers; ``counts``: (k,) of records;
    ``positive``: (k,) 0 or 1."""

    values: NDArray[np.int16]
    counts: Integers
    positive: Integers

    def blocks(self) -> Iterator[tuple[Floats, Integers, Integers]]:
        for first in range(0, len(self.counts), ROWS_AT_ONCE):
            part = slice(first, first + ROWS_AT_ONCE)
            yield self.values[part].astype(np.float64), self.counts[part], self.positive[part]


@dataclass(frozen=True)
class Point:
    """``coefficients``: (n, d) whole numbers below 2^bits in size; ``slopes``: (n, 2) of 0 to SLOPE, the
    largest q of a record of the negative and of the positive side."""

    coefficients: Floats
    slopes: Integers


@dataclass(frozen=True)
class Descent(Release):
    """The last axis of the domain is the label; ``signs``: +1 or -1 for each of its codes; ``weight``:
    how many times a record of the positive side counts, None: both sides weigh the same."""

    signs: tuple[int, ...] = ()
    places: Places = ()
    weight: float | None = 1.0
    rounds: int = ROUNDS
    waves: int = WAVES

    @property
    def feature_axes(self) -> tuple[Axis, ...]:
        return self.domain.axes[:-1]

    @cached_property
    def curves(self) -> tuple[Integers, ...]:
        """The coordinates of each cell of each feature: (size, coordinates)."""
        pairs = zip(self.feature_axes, self.places, strict=True)
        return tuple(coordinates_of(axis, places) for axis, places in pairs)

    @cached_property
    def positions(self) -> tuple[Floats, ...]:
        """Where each cell of a feature lies, a number at its place less 1/2: (size, coordinates)."""
        return tuple(_positions(a, p) for a, p in zip(self.feature_axes, self.places, strict=True))

    @cached_property
    def frequencies(self) -> tuple[Floats, ...]:
        """Of the waves along the coordinates of each feature: (coordinates, waves)."""
        return _frequencies(
            tuple((len(coordinate_names(a)), ordered(a)) for a in self.feature_axes), self.waves
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
        return sum(largest_coordinates(axis, 2) for axis in self.feature_axes)

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
    def size(self) -> int:
        """How many numbers are measured."""
        return int(self.rounds * self.width)

    @property
    def sensitivity_squared(self) -> Fraction:
        """Of all rounds together: the same at any places."""
        one = Fraction(SLOPE**2 * self.norm_squared)
        return Fraction(self.rounds) * self.adjacency.squared(moved=4 * one, present=one)

    @cached_property
    def mechanism(self) -> GaussianRounds:
        noise = noise_of(self.share, self.size, self.sensitivity_squared)
        law = self.size, noise.l2_sensitivity_squared, noise.variance
        return GaussianRounds(*law, self.domain, self.rounds, self)

    @property
    def _largest(self) -> int:
        """No number of one record is larger in size."""
        return SLOPE * max(self.intercept, SCALE, self.amplitude)

    @property
    def largest_statistic(self) -> int:
        return self.most_rows * self._largest

    def statistic(self, tally: Tally) -> Exact:
        return Exact(tally.counts, tally.cells)

    def design(self, codes: Integers) -> NDArray[np.int16]:
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

    def records_of(self, tally: Tally) -> Records:
        counts = self._kept(tally)
        seen = np.flatnonzero(counts)
        signs = np.asarray(self.signs, dtype=np.int16)[tally.codes(len(self.places))[seen]]
        codes = np.column_stack([tally.codes(i)[seen] for i in range(len(self.places))])
        values = np.empty((len(seen), self.width), dtype=np.int16)
        for first in range(0, len(seen), ROWS_AT_ONCE):
            part = slice(first, first + ROWS_AT_ONCE)
            values[part] = self.design(codes[part]) * signs[part, None]
        return Records(values, counts[seen], (signs > 0).astype(np.int64))

    def _kept(self, tally: Tally) -> Integers:
        """Of the records of each cell, how many are looked at."""
        part = min(TURN, TURN * MOST // self.rows)
        if part == TURN:
            return tally.counts
        words = tally.cells.reshape(len(tally.cells), -1).astype(np.uint64)
        mixed = np.zeros(len(words), dtype=np.uint64)
        for word in words.T:  # splitmix64
            mixed = (mixed ^ word) + np.uint64(0x9E3779B97F4A7C15)
            for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
                mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
            mixed ^= mixed >> np.uint64(31)
        chance = (mixed >> np.uint64(48)).astype(np.int64)
        return np.asarray((tally.counts * part + chance) // TURN)

    @property
    def _bits(self) -> int:
        """Coefficients stay below 2^bits, so that products with rows are exact."""
        return 52 - (self.width * max(self.intercept, SCALE, self.amplitude)).bit_length()

    @property
    def _unit(self) -> int:
        """What a coefficient of 1, of a row as it is, is as a whole number: a power of 2."""
        return int(2 ** (self._bits + 4))

    def at(self, records: Records, point: Point) -> Integers:
        sums = np.zeros((len(point.slopes), self.width), dtype=object)
        most, exact = (
            self.largest_statistic,
            int(records.counts.sum()) * self._largest < LARGEST_EXACT,
        )
        for values, counts, positive in records.blocks():
            falls = self._unit - values @ point.coefficients.T
            slopes = np.floor(np.clip(falls, 0, self._unit) * (SLOPE / self._unit)).astype(np.int64)
            slopes = np.minimum(slopes, SLOPE) * point.slopes.T[positive] // SLOPE * counts[:, None]
            kind = np.float64 if exact else object
            found = slopes.T.astype(kind) @ values.astype(kind)
            sums += found.astype(np.int64) if exact else np.vectorize(int)(found)
        return np.clip(sums, -most, most).astype(np.int64)

    @cached_property
    def step(self) -> float:
        """The length of a step, for rows of norm 1 at most and the mean of slopes up to 1."""
        return min(LEARNT * (1 - MOMENTUM) / (math.sqrt(self.rounds) * self.noise), LONGEST)

    @property
    def noise(self) -> float:
        """The standard deviation of the noise in a mean gradient of such rows, in a round."""
        looked_at = min(self.rows, MOST)
        return self.mechanism.stddev / (SLOPE * math.sqrt(self.norm_squared) * looked_at)

    @cached_property
    def _scale(self) -> float:
        """What a step moves a coefficient, of rows as they are, for each unit of a sum."""
        norm = math.sqrt(self.norm_squared)
        return self.noise / self.mechanism.stddev * self.step / norm

    def next_point(self, history: Integers) -> Point:
        ages = np.arange(history.shape[1], 0, -1)
        ahead = self._scale * np.einsum("k,nkd->nd", _reach(ages + 1), history)
        limit = 2**self._bits
        whole = np.clip(np.rint(ahead * self._unit), 1 - limit, limit - 1)
        return Point(whole, self._slopes(history))

    def _slopes(self, history: Integers) -> Integers:
        """(n, 2): the largest slope of either side; the side that weighs more has all of it."""
        if self.weight is None and history.shape[1]:
            # At the first point every slope is SLOPE: the intercept counts one side less the other.
            counted = SLOPE * self.intercept * min(self.rows, MOST)
            share = np.clip(0.5 + history[:, 0, 0] / (2 * counted), 0.001, 0.999)
            weight = (1 - share) / share
        else:
            weight = np.full(len(history), self.weight or 1.0)
        sides = np.stack([1 / weight, weight], axis=1)
        return np.asarray(np.rint(SLOPE * np.minimum(sides, 1.0)).astype(np.int64))

    def history(self, noisy: Noisy) -> Integers:
        return np.asarray(noisy.values[: self.size].reshape(1, self.rounds, self.width))

    def coefficients(self, noisy: Noisy) -> Floats:
        """(d,) of rows as they are: the mean of the last third of steps."""
        return np.asarray(
            self._scale * np.einsum("k,kd->d", self._averages, self.history(noisy)[0])
        )

    @cached_property
    def _averages(self) -> Floats:
        """How far the sum of each round has moved the mean of the last third of steps."""
        rounds, averaged = np.arange(self.rounds), int(self.rounds * AVERAGED) or 1
        moved = _reach(np.maximum(rounds[-averaged:, None] - rounds + 1, 0))
        return np.asarray(moved.mean(axis=0))

    @cached_property
    def stddev(self) -> float:
        """Of the noise in a coefficient, at most, to first order."""
        noise = float(np.linalg.norm(self._averages))
        return noise * self._scale * self.mechanism.stddev

    def errors(self, rows: NDArray[np.integer[Any]]) -> Floats:
        """Standard deviations of the noise in decision values at rows (k, d), at most."""
        return np.asarray(self.stddev * np.sqrt((rows.astype(np.float64) ** 2).sum(axis=1)))

    @property
    def work(self) -> Work:
        seen = min(self.rows, self.domain.size, MOST)
        drawn = Work(DESCENDED * seen * self.width * self.rounds, 3 * seen * self.width)
        return drawn + publishing(self.width + self.size / 20)

    def publish(self, noisy: Noisy) -> Published:
        """Nothing by itself: ``gradients`` makes a classifier of it."""
        return Published(())

    def expected_error(self) -> tuple[ErrorStatement, ...]:
        error = self.stddev * math.sqrt(self.norm_squared)
        reach = float(self._averages.sum()) * self.step
        return (
            ErrorStatement(
                "standard error of a decision value",
                error,
                "at most, to first order; the margin is at 1",
            ),
            ErrorStatement(
                "largest decision value that steps can reach",
                reach,
                "steps are as short as the noise asks for; below 1 the records decide little",
            ),
        )


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


def _reach(ages: Integers) -> Floats:
    """How many steps of 1 a sum has moved coefficients after so many rounds of momentum."""
    return np.asarray((1 - MOMENTUM**ages) / (1 - MOMENTUM))
