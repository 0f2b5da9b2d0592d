"""Descent by noisy gradients: a sum of curves and of waves that run over several columns at once.

A record's row is made of whole numbers, by public rules (``design``).  The loss is a smoothed hinge,
whose slope is max(0, min(1, 1 - margin)).  In each of ``rounds`` rounds the noisy gradient of its mean
over all records moves the coefficients by one of Nesterov's accelerated steps, and those of the last
third of the rounds are averaged.  No penalty shrinks them: steps are so short that directions in which
the noise would hide the gradient hardly move (``LEARNT``), and become shorter where two noisy gradients
show that the loss bends too much for them (``STABLE``).  To give both sides the same weight, the
first of these rounds only counts them, and moves nothing.

Columns of numbers may be counted in a round before all others, so that their features are finer where
records are many; else values have even places.  Counts are multiplied by a public whole number, which
gives them ``FOR_PLACES`` of the precision at the noise that all rounds have.

Claim.  In a round a record adds q y z, where z is its row, y its label of +1 or -1, and q a whole
number from 0 to ``SLOPE`` that follows from z, y and the public coefficients.  With R >= |z|^2 for
every row, the squared L2 norm of what one record adds is at most SLOPE^2 R, and that of the change
where one replaces another at most 4 SLOPE^2 R.  Of the counts of m columns, each times t, these are
m t^2 and 2 m t^2.

Proof.  |q y z| <= SLOPE sqrt(R), and the triangle inequality.  A record is in one cell of each
column.  QED

R adds up the largest values of each column's coordinates at any places, and of all waves.  No record's
term depends on another one's, to the last bit: rows are looked up in tables of whole numbers;
coefficients are rounded so that every product z.phi is a whole number below 2^52, which floats add in
any order without rounding; q is a floor of it.  Of more than ``MOST`` records only about so many
count: of a cell with c of them floor(p c + u), where u in [0, 1) follows from the cell alone, so one
record more changes that by 1 at most.  What a table larger than ``most_rows`` adds is cut.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpcore.arrays import Floats, Integers
from dpcore.domain.adjacency import Adjacency
from dpcore.domain.axes import Axis
from dpcore.domain.tally import Tally
from dpcore.domain.words import LARGEST_EXACT
from dpcore.releases.machines.curves import even_places, spread_places
from dpcore.releases.machines.design import Design
from dpcore.releases.machines.features import ordered

FOR_PLACES = Fraction(1, 20)
"""Of the precision (of rho) for the counts of columns, where they are worth it.  In tables of
``python -m benchmarks.classifiers`` 1/10 and 1/50 are as good."""

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


@dataclass(frozen=True, eq=False)
class Records:
    """Private.  ``codes``: (k, features) of distinct records; ``signs``: (k,) of their labels;
    ``counts``: (k,) how many are looked at; ``margins``: the counts of columns, as they are measured."""

    codes: Integers
    signs: NDArray[np.int16]
    counts: Integers
    margins: Integers
    _known: dict[Design, NDArray[np.int16]] = field(default_factory=dict)

    def values(self, design: Design) -> NDArray[np.int16]:
        """(k, d) rows times labels, small whole numbers.  Those of one design are kept: a draw has the
        same in all of its rounds."""
        if design not in self._known:
            values = np.empty((len(self.codes), design.width), dtype=np.int16)
            for part in _parts(len(self.codes)):
                values[part] = design.rows(self.codes[part]) * self.signs[part, None]
            self._known.clear()
            self._known[design] = values
        return self._known[design]


@dataclass(frozen=True, eq=False)
class Point:
    """``coefficients``: (n, d) whole numbers below 2^bits in size; ``slopes``: (n, 2) of 0 to SLOPE, the
    largest q of a record of the negative and of the positive side; ``designs``: those that rows are of,
    and ``of``: (n,) which one.

    What the next step needs: ``settled``: (n, d) where the last one ended, and its ``speed``; ``steps``:
    (n,) its length; ``before``: coefficients and sums of the point before, None at the first one;
    ``measures``: what sums here only count, without moving anything: places, sides, or nothing.
    """

    coefficients: Floats
    slopes: Integers
    designs: tuple[Design, ...]
    of: Integers
    settled: Floats
    speed: Floats
    steps: Floats
    measures: tuple[str, ...]
    before: tuple[Floats, Integers] | None = None


class Learnt(NamedTuple):
    """``coefficients``: (d,) of rows of the ``design`` as they are; ``stddev``: of the noise in each, at
    most, to first order; ``step``: the shortest."""

    coefficients: Floats
    design: Design
    stddev: float
    step: float


@dataclass(frozen=True)
class Descent:
    """The rounds of a classifier; all public.

    ``signs``: +1 or -1 for each code of the label, which is the last axis of a tally; ``weight``: how
    many times a record of the positive side counts, None: both sides weigh the same; ``counted``:
    whether columns of numbers are counted first; ``noise``: the standard deviation of that in each sum.
    """

    axes: tuple[Axis, ...]
    signs: tuple[int, ...]
    rows: int
    most_rows: int
    adjacency: Adjacency
    weight: float | None
    rounds: int
    waves: int
    counted: bool
    noise: float = 0.0

    @cached_property
    def even(self) -> Design:
        """The design at even places; its sizes are those at any places."""
        return Design(self.axes, tuple(map(even_places, self.axes)), self.waves)

    @cached_property
    def numbers(self) -> tuple[Axis, ...]:
        """The columns that may be counted."""
        return tuple(axis for axis in self.axes if ordered(axis))

    @property
    def once(self) -> Fraction:
        """The squared sensitivity of a gradient."""
        one = Fraction(SLOPE**2 * self.even.norm_squared)
        return self.adjacency.squared(moved=4 * one, present=one)

    @cached_property
    def _of_counts(self) -> Fraction:
        """That of counts, before they are multiplied."""
        columns = Fraction(len(self.numbers))
        return self.adjacency.squared(moved=2 * columns, present=columns)

    @cached_property
    def times(self) -> int:
        """What counts are multiplied by; nothing is counted without columns of numbers."""
        if not self.numbers:
            return 1
        part = FOR_PLACES / (1 - FOR_PLACES) * self.rounds * self.once / self._of_counts
        return max(math.isqrt(math.floor(part)), 1)

    @cached_property
    def laws(self) -> tuple[tuple[int, Fraction], ...]:
        """How many numbers each round has, and its squared sensitivity."""
        gradients = self.rounds * ((self.even.width, self.once),)
        if not self.counted:
            return gradients
        cells = sum(axis.size for axis in self.numbers)
        return ((cells, self.times**2 * self._of_counts), *gradients)

    @property
    def largest(self) -> int:
        """No number of one record is larger in size."""
        return max(SLOPE * self.even.largest, self.times * self.counted)

    def records_of(self, tally: Tally) -> Records:
        counts = self._kept(tally)
        seen, last = np.flatnonzero(counts), len(self.axes)
        signs = np.asarray(self.signs, dtype=np.int16)[tally.codes(last)[seen]]
        codes = np.column_stack([tally.codes(i)[seen] for i in range(last)])
        margins = np.zeros(0, dtype=np.int64)
        if self.counted:
            found = np.concatenate([tally.margin((axis.name,)) for axis in self.numbers])
            margins = self.times * np.minimum(found, self.most_rows)
        return Records(codes, signs, counts[seen], margins)

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
        return 52 - (self.even.width * self.even.largest).bit_length()

    @property
    def _unit(self) -> int:
        """What a coefficient of 1, of a row as it is, is as a whole number: a power of 2."""
        return int(2 ** (self._bits + 4))

    def at(self, records: Records, point: Point) -> Integers:
        if point.measures[:1] == ("places",):
            return np.tile(records.margins, (len(point.of), 1))
        sums = np.empty((len(point.of), self.even.width), dtype=np.int64)
        for i, design in enumerate(point.designs):
            here = np.flatnonzero(point.of == i)
            sums[here] = self._gradients(
                records, records.values(design), point.coefficients[here], point.slopes[here]
            )
        return sums

    def _gradients(
        self, records: Records, rows: NDArray[np.int16], coefficients: Floats, slopes: Integers
    ) -> Integers:
        """(n, d) the exact sums of gradients."""
        sums, most = np.zeros(coefficients.shape, dtype=object), self.most_rows * self.largest
        exact = int(records.counts.sum()) * self.largest < LARGEST_EXACT
        kind = np.float64 if exact else object
        for part in _parts(len(rows)):
            values, positive = rows[part].astype(np.float64), (records.signs[part] > 0).astype(int)
            falls = self._unit - values @ coefficients.T
            q = np.floor(np.clip(falls, 0, self._unit) * (SLOPE / self._unit)).astype(np.int64)
            q = np.minimum(q, SLOPE) * slopes.T[positive] // SLOPE * records.counts[part, None]
            found = q.T.astype(kind) @ values.astype(kind)
            sums += found.astype(np.int64) if exact else np.vectorize(int)(found)
        return np.clip(sums, -most, most).astype(np.int64)

    @cached_property
    def step(self) -> float:
        """The length of a step, for rows of norm 1 at most and the mean of slopes up to 1."""
        noise = self.noise * self._unit_step
        return min(LEARNT * (1 - MOMENTUM) / (math.sqrt(self.rounds) * noise), LONGEST)

    @cached_property
    def _unit_step(self) -> float:
        """What a step of length 1 moves a coefficient, of rows of norm 1 at most, for each unit of a
        sum."""
        return 1 / (SLOPE * math.sqrt(self.even.norm_squared) * min(self.rows, MOST))

    @property
    def _moved(self) -> float:
        """The same of rows as they are."""
        return self._unit_step / math.sqrt(self.even.norm_squared)

    def first_point(self, times: int) -> Point:
        zeros = np.zeros((times, self.even.width))
        return Point(
            zeros,
            _slopes(np.full(times, self.weight or 1.0)),
            (self.even,),
            np.zeros(times, dtype=np.int64),
            zeros,
            zeros,
            np.full(times, self.step),
            ("places",) * self.counted + ("sides",) * (self.weight is None),
        )

    def next_point(self, point: Point, noisy: Integers) -> Point:
        if point.measures:
            measured, *others = point.measures
            point = replace(point, measures=tuple(others))
            if measured == "sides":
                return replace(point, slopes=_slopes(self._balancing(noisy)))
            designs = [self._spread(each) for each in noisy]
            different = {design: i for i, design in enumerate(dict.fromkeys(designs))}
            of = np.array([different[design] for design in designs])
            return replace(point, designs=tuple(different), of=of)
        steps = point.steps
        if point.before:
            moved = (point.coefficients - point.before[0]) / self._unit
            squared = np.maximum(np.sum(moved**2, axis=1), np.finfo(float).tiny)
            fallen = np.sum(moved * (point.before[1] - noisy), axis=1)
            curvature = np.maximum(self._moved * fallen / squared, STABLE / LONGEST)
            steps = np.minimum(steps, STABLE / curvature)
        speed = MOMENTUM * point.speed + (steps * self._moved)[:, None] * noisy
        settled, limit = point.settled + speed, 2**self._bits
        ahead = np.rint((settled + MOMENTUM * speed) * self._unit)
        ahead = np.clip(ahead, 1 - limit, limit - 1)
        return replace(
            point,
            coefficients=ahead,
            settled=settled,
            speed=speed,
            steps=steps,
            before=(point.coefficients, noisy),
        )

    def _spread(self, counts: Integers) -> Design:
        """The design at the places that noisy counts (cells,) of columns show."""
        places = dict(zip((axis.name for axis in self.axes), self.even.places, strict=True))
        ends = np.cumsum([axis.size for axis in self.numbers])[:-1]
        for axis, own in zip(self.numbers, np.split(counts, ends), strict=True):
            places[axis.name] = spread_places(axis, own.astype(np.float64))
        return replace(self.even, places=tuple(places.values()))

    def _balancing(self, noisy: Integers) -> Floats:
        """(n,) how many times the positive side counts: the intercept counts one side less the other.

        No share counts as less than two standard deviations of its noise.
        """
        counted = SLOPE * self.even.intercept * min(self.rows, MOST)
        least = min(max(0.001, self.noise / counted), 0.5)
        share = np.clip(0.5 + noisy[:, 0] / (2 * counted), least, 1 - least)
        return np.asarray((1 - share) / share)

    def learnt(self, rounds: Sequence[Integers]) -> Learnt:
        """The mean of the last third of steps, by the noisy sums (1, width) of all rounds."""
        point, ends, steps = self.first_point(1), list[Floats](), list[float]()
        for sums in rounds:
            point = self.next_point(point, sums)
            ends.append(point.settled[0])
            steps.append(float(point.steps[0]))
        theta = np.mean(ends[-self._averaged :], axis=0)
        gradients = np.array(steps[-self.rounds :])
        return Learnt(theta, point.designs[0], self.stddev(gradients), min(steps))

    @property
    def _averaged(self) -> int:
        return int(self.rounds * AVERAGED) or 1

    @cached_property
    def averages(self) -> Floats:
        """How far the sum of each gradient moves the mean of the last third of steps of 1."""
        rounds = np.arange(self.rounds)
        ages = np.maximum(rounds[-self._averaged :, None] - rounds + 1, 0)
        found = np.mean((1 - MOMENTUM**ages) / (1 - MOMENTUM), axis=0)
        if self.weight is None:
            found[0] = 0.0
        return np.asarray(found)

    def stddev(self, steps: Floats) -> float:
        """Of the noise in a coefficient, at most, to first order, for steps (rounds,)."""
        return float(np.linalg.norm(self.averages * steps)) * self._moved * self.noise


def _parts(rows: int) -> Iterator[slice]:
    return (slice(first, first + ROWS_AT_ONCE) for first in range(0, rows, ROWS_AT_ONCE))


def _slopes(weight: Floats) -> Integers:
    """(n, 2): the largest slope of either side; the side that weighs more has all of it."""
    sides = np.stack([1 / weight, weight], axis=1)
    return np.asarray(np.rint(SLOPE * np.minimum(sides, 1.0)).astype(np.int64))
