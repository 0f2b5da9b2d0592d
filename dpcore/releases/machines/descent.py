"""Descent by noisy gradients: a sum of curves and of waves that run over several columns at once.

A record's row is made of whole numbers, by public rules (``design``).  The loss is a smoothed hinge,
whose slope is max(0, min(1, 1 - margin)).  In each of ``rounds`` rounds the noisy gradient of its mean
over all records moves the coefficients by one of Nesterov's accelerated steps, and those of the last
third of the rounds are averaged.  No penalty shrinks them: steps are so short that directions in which
the noise would hide the gradient hardly move (``LEARNT``), and become shorter where two noisy gradients
show that the loss bends too much for them (``STABLE``).  To give both sides the same weight, the
first round only counts them, and moves nothing.

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
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpcore.accounting.budget import Budget
from dpcore.arrays import Floats, Integers
from dpcore.domain.axes import Axis
from dpcore.domain.tally import Tally
from dpcore.domain.words import LARGEST_EXACT
from dpcore.line.statistic import Exact, Noisy
from dpcore.mechanisms import DiscreteGaussian
from dpcore.mechanisms.gaussian_rounds import GaussianRounds
from dpcore.releases.base import ErrorStatement, Release
from dpcore.releases.machines.curves import Places
from dpcore.releases.machines.design import Design
from dpcore.releases.table import Published
from dpcore.releases.work import Work, publishing

ROUNDS, WAVES = 100, 200
"""Of tables of ``python -m benchmarks.classifiers``: 50 rounds have half a point less, 200 no more."""

LEARNT = 0.8
"""Steps end where this times the standard deviation of all noise, in units of the mean gradient, is the
inverse of their length: with 0.6 and 1 tables of ``python -m benchmarks.classifiers`` are as good."""

LONGEST, MOMENTUM, AVERAGED = 5.0, 0.9, Fraction(1, 3)

STABLE = 1.3
"""The most that a step may be, times the curvature: above (2 + 2 m) / (1 + 2 m) = 1.357, m the momentum,
steps grow, and noise with them."""

SLOPE = 2**14

PARTS = 2**32
"""Records are left out by whole parts of all."""

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
    largest q of a record of the negative and of the positive side.

    What the next step needs: ``settled``: (n, d) where the last one ended, and its ``speed``; ``steps``:
    (n,) its length; ``before``: coefficients and sums of the point before, None at the first one;
    ``counts``: whether sums here move nothing, and only count both sides.
    """

    coefficients: Floats
    slopes: Integers
    settled: Floats
    speed: Floats
    steps: Floats
    before: tuple[Floats, Integers] | None = None
    counts: bool = False


class Learnt(NamedTuple):
    """``coefficients``: (d,) of rows as they are; ``stddev``: of the noise in each, at most, to first
    order; ``step``: the shortest."""

    coefficients: Floats
    stddev: float
    step: float


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
    def design(self) -> Design:
        return Design(self.feature_axes, self.places, self.waves)

    @property
    def size(self) -> int:
        """How many numbers are measured."""
        return int(self.rounds * self.design.width)

    @property
    def sensitivity_squared(self) -> Fraction:
        """Of all rounds together: the same at any places."""
        one = Fraction(SLOPE**2 * self.design.norm_squared)
        return Fraction(self.rounds) * self.adjacency.squared(moved=4 * one, present=one)

    @cached_property
    def mechanism(self) -> GaussianRounds:
        noise = _noise_of(self.share, self.size, self.sensitivity_squared)
        law = self.size, noise.l2_sensitivity_squared, noise.variance
        once = self.design.width, self.sensitivity_squared / self.rounds
        return GaussianRounds(*law, self.domain, self.rounds * (once,), self)

    @property
    def _largest(self) -> int:
        """No number of one record is larger in size."""
        return SLOPE * self.design.largest

    @property
    def largest_statistic(self) -> int:
        return self.most_rows * self._largest

    def statistic(self, tally: Tally) -> Exact:
        return Exact(tally.counts, tally.cells)

    def records_of(self, tally: Tally) -> Records:
        counts = self._kept(tally)
        seen = np.flatnonzero(counts)
        signs = np.asarray(self.signs, dtype=np.int16)[tally.codes(len(self.places))[seen]]
        codes = np.column_stack([tally.codes(i)[seen] for i in range(len(self.places))])
        values = np.empty((len(seen), self.design.width), dtype=np.int16)
        for first in range(0, len(seen), ROWS_AT_ONCE):
            part = slice(first, first + ROWS_AT_ONCE)
            values[part] = self.design.rows(codes[part]) * signs[part, None]
        return Records(values, counts[seen], (signs > 0).astype(np.int64))

    def _kept(self, tally: Tally) -> Integers:
        """Of the records of each cell, how many are looked at."""
        part = min(PARTS, PARTS * MOST // self.rows)
        if part == PARTS:
            return tally.counts
        words = tally.cells.reshape(len(tally.cells), -1).astype(np.uint64)
        mixed = np.zeros(len(words), dtype=np.uint64)
        for word in words.T:  # splitmix64
            mixed = (mixed ^ word) + np.uint64(0x9E3779B97F4A7C15)
            for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
                mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
            mixed ^= mixed >> np.uint64(31)
        chance = (mixed >> np.uint64(32)).astype(np.int64)
        whole, rest = np.divmod(tally.counts, PARTS)
        return np.asarray(whole * part + (rest * part + chance) // PARTS)

    @property
    def _bits(self) -> int:
        """Coefficients stay below 2^bits, so that products with rows are exact."""
        return 52 - (self.design.width * self.design.largest).bit_length()

    @property
    def _unit(self) -> int:
        """What a coefficient of 1, of a row as it is, is as a whole number: a power of 2."""
        return int(2 ** (self._bits + 4))

    def at(self, records: Records, point: Point) -> Integers:
        sums = np.zeros((len(point.slopes), self.design.width), dtype=object)
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
        return self.mechanism.stddev / (SLOPE * math.sqrt(self.design.norm_squared) * looked_at)

    @cached_property
    def _unit_step(self) -> float:
        """What a step of length 1 moves a coefficient, of rows as they are, for each unit of a sum."""
        return self.noise / self.mechanism.stddev / math.sqrt(self.design.norm_squared)

    def first_point(self, times: int) -> Point:
        zeros, slopes = (
            np.zeros((times, self.design.width)),
            _slopes(np.full(times, self.weight or 1.0)),
        )
        steps = np.full(times, self.step)
        return Point(zeros, slopes, zeros, zeros, steps, counts=self.weight is None)

    def next_point(self, point: Point, noisy: Integers) -> Point:
        if point.counts:
            return replace(point, slopes=_slopes(self._balancing(noisy)), counts=False)
        steps = point.steps
        if point.before:
            moved = (point.coefficients - point.before[0]) / self._unit
            squared = np.maximum(np.sum(moved**2, axis=1), np.finfo(float).tiny)
            fallen = np.sum(moved * (point.before[1] - noisy), axis=1)
            curvature = np.maximum(self._unit_step * fallen / squared, STABLE / LONGEST)
            steps = np.minimum(steps, STABLE / curvature)
        speed = MOMENTUM * point.speed + (steps * self._unit_step)[:, None] * noisy
        settled, limit = point.settled + speed, 2**self._bits
        ahead = np.rint((settled + MOMENTUM * speed) * self._unit)
        ahead = np.clip(ahead, 1 - limit, limit - 1)
        return Point(ahead, point.slopes, settled, speed, steps, (point.coefficients, noisy))

    def _balancing(self, noisy: Integers) -> Floats:
        """(n,) how many times the positive side counts: the intercept counts one side less the other.

        No share counts as less than two standard deviations of its noise.
        """
        counted = SLOPE * self.design.intercept * min(self.rows, MOST)
        least = min(max(0.001, self.mechanism.stddev / counted), 0.5)
        share = np.clip(0.5 + noisy[:, 0] / (2 * counted), least, 1 - least)
        return np.asarray((1 - share) / share)

    def learnt(self, noisy: Noisy) -> Learnt:
        """The mean of the last third of steps."""
        point, ends, steps = self.first_point(1), [], []
        for sums in noisy.values[: self.size].reshape(self.rounds, 1, self.design.width):
            point = self.next_point(point, sums)
            ends.append(point.settled[0])
            steps.append(point.steps[0])
        theta = np.mean(ends[-self._averaged :], axis=0)
        return Learnt(theta, self._stddev(np.array(steps)), float(min(steps)))

    @property
    def _averaged(self) -> int:
        return int(self.rounds * AVERAGED) or 1

    @cached_property
    def _averages(self) -> Floats:
        """How far the sum of each round moves the mean of the last third of steps of 1."""
        rounds = np.arange(self.rounds)
        ages = np.maximum(rounds[-self._averaged :, None] - rounds + 1, 0)
        found = np.mean((1 - MOMENTUM**ages) / (1 - MOMENTUM), axis=0)
        if self.weight is None:
            found[0] = 0.0
        return np.asarray(found)

    def _stddev(self, steps: Floats) -> float:
        """Of the noise in a coefficient, at most, to first order."""
        noise = float(np.linalg.norm(self._averages * steps))
        return noise * self._unit_step * self.mechanism.stddev

    @property
    def work(self) -> Work:
        seen = min(self.rows, self.domain.size, MOST)
        drawn = Work(
            DESCENDED * seen * self.design.width * self.rounds, 3 * seen * self.design.width
        )
        return drawn + publishing(self.design.width + self.size / 20)

    def publish(self, noisy: Noisy) -> Published:
        """Nothing by itself: ``gradients`` makes a classifier of it."""
        return Published(())

    def expected_error(self) -> tuple[ErrorStatement, ...]:
        steps = np.full(self.rounds, self.step)
        error = self._stddev(steps) * math.sqrt(self.design.norm_squared)
        reach = float(self._averages @ steps)
        return (
            ErrorStatement(
                "standard error of a decision value, by the largest that steps can reach",
                error / reach,
                "at most, to first order; above 0.05 the records decide little",
            ),
            ErrorStatement(
                "standard error of a decision value",
                error,
                "at most, to first order; the margin is at 1, and steps are as short as the noise asks"
                " for",
            ),
        )


def _slopes(weight: Floats) -> Integers:
    """(n, 2): the largest slope of either side; the side that weighs more has all of it."""
    sides = np.stack([1 / weight, weight], axis=1)
    return np.asarray(np.rint(SLOPE * np.minimum(sides, 1.0)).astype(np.int64))


@lru_cache
def _noise_of(share: Budget, size: int, squared: Fraction) -> DiscreteGaussian:
    """The same numbers are asked for again and again."""
    return DiscreteGaussian.within(share, size, squared)
