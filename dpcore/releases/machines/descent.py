"""Gradient descent with noise, for a sum of curves of columns and waves over several columns.

A record's row is made of whole numbers, by public rules (``design``).  The loss is a smoothed hinge,
whose slope is max(0, min(1, 1 - margin)).  Each of ``rounds`` rounds makes one of Nesterov's
accelerated steps with the noisy gradient of the mean loss over all records, and the coefficients of the
last third of the rounds are averaged.  No penalty shrinks them: steps are so short that directions in
which the noise would hide the gradient hardly move (``LEARNT``), and become shorter where two noisy
gradients show that the loss bends too much for them (``STABLE``).  To give both sides the same weight,
the first of these rounds only counts them, without a step.

Columns of numbers may be counted in a first round, so that their features are finer where records are
many; otherwise places are linear.  All rounds have the same noise, so counts are multiplied by a public
whole number, which gives them the fraction ``FOR_PLACES`` of the precision.

Claim.  In a round a record adds q y z, where z is its row, y its label of +1 or -1, and q a whole number
from 0 to ``SLOPE``, a function of z, y and the public coefficients.  With R >= |z|^2 for every row, the
squared L2 norm of a record's contribution is at most SLOPE^2 R, and the squared change if one record
replaces another is at most 4 SLOPE^2 R. For the counts of m columns, each times t, the two bounds are m
t^2 and 2 m t^2.

Proof.  |q y z| <= SLOPE sqrt(R), and the triangle inequality.  A record is in one cell of each
column.  QED

R adds up the largest values of each column's coordinates at any places, and of all waves.  No record's
term depends on another record, to the last bit: rows are looked up in tables of whole numbers;
coefficients are rounded so that every product z.phi is a whole number below 2^52, which floats add in
any order without rounding; q is a floor of it.  If there are more than ``MOST`` records, only the
share p = ``MOST``/``rows`` of them is used: floor(p c + u) of the c records in a cell, where u in [0, 1)
is a public function of the cell.  So one more record changes the number used in a cell by at most 1.
Contributions beyond ``most_rows`` records are cut.
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
"""The fraction of the precision (of rho) for the counts of columns, if they are useful.  In ``python -m
benchmarks.classifiers`` 1/10 and 1/50 do as well."""

ROUNDS, WAVES = 100, 200
"""With 50 rounds ``python -m benchmarks.classifiers`` loses half a point; with 200 it gains nothing."""

LEARNT = 0.8
"""Steps are so short that all noise adds at most this standard deviation to a coefficient, for rows of
norm 1.  In ``python -m benchmarks.classifiers`` 0.6 and 1 do as well."""

LONGEST, MOMENTUM, AVERAGED = 5.0, 0.9, Fraction(1, 3)

STABLE = 1.3
"""The largest product of step and curvature.  With momentum m, steps and noise grow without limit above
(2 + 2 m) / (1 + 2 m) = 1.357."""

SLOPE = 2**14

PARTS = 2**32
"""The share of used records is a multiple of 1 / ``PARTS``."""

MOST = 2**16
"""About how many records are used."""

ROWS_AT_ONCE = 2**13


@dataclass(frozen=True, eq=False)
class Records:
    """The records, private.  ``codes``: (k, features) of distinct records; ``signs``: (k,) of their
    labels; ``counts``: (k,) how many of each are used; ``margins``: the counts of columns that the first
    round measures."""

    codes: Integers
    signs: NDArray[np.int16]
    counts: Integers
    margins: Integers
    _known: dict[Design, NDArray[np.int16]] = field(default_factory=dict)

    def values(self, design: Design) -> NDArray[np.int16]:
        """The rows (k, d) times labels, small whole numbers.  They are cached for one design, because
        all rounds of a draw use the same."""
        if design not in self._known:
            values = np.empty((len(self.codes), design.width), dtype=np.int16)
            for part in _parts(len(self.codes)):
                values[part] = design.rows(self.codes[part]) * self.signs[part, None]
            self._known.clear()
            self._known[design] = values
        return self._known[design]


@dataclass(frozen=True, eq=False)
class DescentPoint:
    """The state of the descent after a round.

    ``coefficients``: (n, d) whole numbers below 2^bits in size; ``slopes``: (n, 2) from 0 to SLOPE, the
    largest q of a record of the negative and of the positive side; ``designs``: the designs of rows;
    ``of``: (n,) the design of each repetition.

    For the next step: ``settled``: (n, d) where the last step ended; ``speed``: its momentum;
    ``steps``: (n,) its length; ``before``: coefficients and sums of the previous point, None at first;
    ``measures``: what the next sums count without moving the coefficients: places, sides, or nothing.
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
    """The result of all rounds; ``coefficients``: (d,) for unscaled rows of the ``design``; ``stddev``:
    a bound, to first order, on the noise in each coefficient; ``step``: the shortest step."""

    coefficients: Floats
    design: Design
    stddev: float
    step: float


@dataclass(frozen=True)
class Descent:
    """The rounds of a classifier; all public.

    ``signs``: +1 or -1 for each code of the label, which is the last axis of a tally; ``weight``: how
    many times a record of the positive side counts, or None if both sides have equal weight;
    ``counted``: whether columns of numbers are counted first; ``noise``: its standard deviation in each
    sum.
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
        """The design with linear places; its sizes are the same for any places."""
        return Design(self.axes, tuple(map(even_places, self.axes)), self.waves)

    @cached_property
    def numbers(self) -> tuple[Axis, ...]:
        """The columns of numbers; their values may be counted."""
        return tuple(axis for axis in self.axes if ordered(axis))

    @property
    def once(self) -> Fraction:
        """The squared sensitivity of one gradient."""
        one = Fraction(SLOPE**2 * self.even.norm_squared)
        return self.adjacency.squared(moved=4 * one, present=one)

    @cached_property
    def _of_counts(self) -> Fraction:
        """The squared sensitivity of the counts before multiplication."""
        columns = Fraction(len(self.numbers))
        return self.adjacency.squared(moved=2 * columns, present=columns)

    @cached_property
    def times(self) -> int:
        """The factor that multiplies counts; 1 without columns of numbers."""
        if not self.numbers:
            return 1
        part = FOR_PLACES / (1 - FOR_PLACES) * self.rounds * self.once / self._of_counts
        return max(math.isqrt(math.floor(part)), 1)

    @cached_property
    def laws(self) -> tuple[tuple[int, Fraction], ...]:
        """For each round, how many numbers it has and its squared sensitivity."""
        gradients = self.rounds * ((self.even.width, self.once),)
        if not self.counted:
            return gradients
        cells = sum(axis.size for axis in self.numbers)
        return ((cells, self.times**2 * self._of_counts), *gradients)

    @property
    def largest(self) -> int:
        """The largest absolute value of a number that one record contributes."""
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
        """How many of the records of each cell are used."""
        part = min(PARTS, PARTS * MOST // self.rows)
        if part == PARTS:
            return tally.counts
        words = tally.cells.reshape(len(tally.cells), -1).astype(np.uint64)
        mixed = np.zeros(len(words), dtype=np.uint64)
        # A fixed function of the cell, not a draw, so that neighbours use the same u (splitmix64).
        for word in words.T:
            mixed = (mixed ^ word) + np.uint64(0x9E3779B97F4A7C15)
            for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
                mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
            mixed ^= mixed >> np.uint64(31)
        chance = (mixed >> np.uint64(32)).astype(np.int64)
        whole, rest = np.divmod(tally.counts, PARTS)
        return np.asarray(whole * part + (rest * part + chance) // PARTS)

    @property
    def _bits(self) -> int:
        """Coefficients stay below 2 to this power, so that products with rows are exact."""
        return 52 - (self.even.width * self.even.largest).bit_length()

    @property
    def _unit(self) -> int:
        """The whole number, a power of 2, that represents a coefficient of 1 for an unscaled row."""
        return int(2 ** (self._bits + 4))

    def at(self, records: Records, point: DescentPoint) -> Integers:
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
        """The exact sums of gradients (n, d)."""
        sums, most = np.zeros(coefficients.shape, dtype=object), self.most_rows * self.largest
        # Floats add small whole numbers exactly and fast; larger ones are added as Python integers.
        exact = int(records.counts.sum()) * self.largest < LARGEST_EXACT
        kind = np.float64 if exact else object
        for part in _parts(len(rows)):
            values, positive = rows[part].astype(np.float64), (records.signs[part] > 0).astype(int)
            # Powers of 2 as units, so that q is exact and at most ``SLOPE``.
            falls = self._unit - values @ coefficients.T
            q = np.floor(np.clip(falls, 0, self._unit) * (SLOPE / self._unit)).astype(np.int64)
            q = q * slopes.T[positive] // SLOPE * records.counts[part, None]
            found = q.T.astype(kind) @ values.astype(kind)
            sums += found.astype(np.int64) if exact else np.vectorize(int)(found)
        return np.clip(sums, -most, most).astype(np.int64)

    @cached_property
    def step(self) -> float:
        """The length of a step for rows of norm at most 1, if the mean of slopes is up to 1."""
        noise = self.noise * self._unit_step
        return min(LEARNT * (1 - MOMENTUM) / (math.sqrt(self.rounds) * noise), LONGEST)

    @cached_property
    def _unit_step(self) -> float:
        """The change of a coefficient per unit of a sum, for steps of 1 and rows of norm at most 1."""
        return 1 / (SLOPE * math.sqrt(self.even.norm_squared) * min(self.rows, MOST))

    @property
    def _moved(self) -> float:
        """The change of a coefficient of unscaled rows per unit of a sum, for steps of 1."""
        return self._unit_step / math.sqrt(self.even.norm_squared)

    def first_point(self, times: int) -> DescentPoint:
        zeros = np.zeros((times, self.even.width))
        return DescentPoint(
            zeros,
            _slopes(np.full(times, self.weight or 1.0)),
            (self.even,),
            np.zeros(times, dtype=np.int64),
            zeros,
            zeros,
            np.full(times, self.step),
            ("places",) * self.counted + ("sides",) * (self.weight is None),
        )

    def next_point(self, point: DescentPoint, noisy: Integers) -> DescentPoint:
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
            # A curvature that noise made negative limits no step.
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
        """The design whose places follow the noisy counts (cells,) of columns."""
        places = dict(zip((axis.name for axis in self.axes), self.even.places, strict=True))
        ends = np.cumsum([axis.size for axis in self.numbers])[:-1]
        for axis, own in zip(self.numbers, np.split(counts, ends), strict=True):
            places[axis.name] = spread_places(axis, own.astype(np.float64))
        return replace(self.even, places=tuple(places.values()))

    def _balancing(self, noisy: Integers) -> Floats:
        """The weights (n,) of the positive side, from the intercept's noisy sum: one side minus the
        other.

        The share of a side is taken as at least two standard deviations of its noise.
        """
        counted = SLOPE * self.even.intercept * min(self.rows, MOST)
        least = min(max(0.001, self.noise / counted), 0.5)
        share = np.clip(0.5 + noisy[:, 0] / (2 * counted), least, 1 - least)
        return np.asarray((1 - share) / share)

    def learnt(self, rounds: Sequence[Integers]) -> Learnt:
        """The mean over the last third of steps, from the noisy sums (1, width) of all rounds."""
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
        """The derivative of the averaged coefficients by each gradient, with steps of 1."""
        rounds = np.arange(self.rounds)
        ages = np.maximum(rounds[-self._averaged :, None] - rounds + 1, 0)
        found = np.mean((1 - MOMENTUM**ages) / (1 - MOMENTUM), axis=0)
        if self.weight is None:  # the first of these rounds counts the sides
            found[0] = 0.0
        return np.asarray(found)

    def stddev(self, steps: Floats) -> float:
        """A first-order bound on the standard deviation of a coefficient's noise, given the steps."""
        return float(np.linalg.norm(self.averages * steps)) * self._moved * self.noise


def _parts(rows: int) -> Iterator[slice]:
    return (slice(first, first + ROWS_AT_ONCE) for first in range(0, rows, ROWS_AT_ONCE))


def _slopes(weight: Floats) -> Integers:
    """The largest slope (n, 2) of each side: ``SLOPE`` for the side with more weight."""
    sides = np.stack([1 / weight, weight], axis=1)
    return np.asarray(np.rint(SLOPE * np.minimum(sides, 1.0)).astype(np.int64))
