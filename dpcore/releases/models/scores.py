r"""Clipped scores of a model: what is summed in each round, and what follows from the noisy sums.

With rows x, responses y and coefficients theta (``terms``), the score of a record is x r, where
r = y - mean, and its curvature x x' slope, of the predictor x.theta (``estimates.families``).  A
whitening matrix V, public, makes u = V x have about unit second moments.  The rounds measure:

    response   how many responses lie in each of some public bins: location and spread of y
    moments    (x, y)(x, y)': a first V, and a first theta by least squares
    rough      scores and curvature: a Newton step, and a better V
    again      the same once more
    middle     scores, curvature, squared scores, and how many are how long: a Newton step, the variance
               of scores, and where to clip them
    last       scores: the last Newton step

A binomial model has no first round, and a linear one does not step again.  Records of large leverage
count less, in scores and curvature alike, so that the estimating equation keeps its solution where the
model is right.

A privacy unit has up to m records, which count by their weights g, 1 without (``design``).  The sums are
over its records, where there are several, and all that it adds is clipped together, with S the typical
length of a unit's score over that of one record, M = S^2 and w = min(1, A^2 M/sum g |u|^2 slope):

    response   sum g e, and
    moments    sum g (x, y)(x, y)', both times min(1, M/sum g)
    score      w sum g u r, shortened to length C.  In a binomial model without weights w is at most
               C/sum g |u| max(mean, 1 - mean): then no score is shortened, and none has a bias (Kuensch,
               Stefanski & Carroll 1989)
    curvature  w sum g slope u u', of norm at most A^2 M
    squares    s s', s the score shortened to length B S
    counts     one of some bins of the length of the score
    strata     s in the place of the unit's stratum
    sizes      one of the strata

Where units lie in clusters that were drawn, the squares are of clusters instead: z z', z the sum of s
over the units of a cluster, shortened to length R.

A solution weighted by g is that of the population, and squares of units' scores show how much it varies
between surveys, however similar the records of one unit are (Binder 1983).  With Z and n a stratum's sum
of scores and number of units, the variance of units drawn independently within strata is N/(N - H) times
the squares less the sum of Z Z'/n, for N units in H strata: the usual n/(n - 1) if all are alike.
The same holds of clusters, of which the plan lists all; a stratum has the same part of them as of units.

Claim.  Let the parts of a round be divided by the largest norms above and multiplied by roots of weights
that add up to 1.  One record then adds a vector v with |v|^2 <= 1, and two records' vectors differ by at
most |v - v'|^2 <= 2 + 2 (weight of the scores and strata), and of the squares of clusters, over 2 R B S.
The same holds of units.

Separate groups of records (``parts``) are measured side by side, each with its own rounds: a unit whose
records are in k of them adds k such vectors, in different places.  Its vector has at most the squared
norm k, and two units' differ by at most k times the bound above, also if they are in different groups.

Proof.  Each part has norm at most 1 before it is multiplied: a sum of matrices g x x' has at most the
norm sum g |x|^2.  Scores differ by at most 2, in strata too.  The inner product of two units' other
parts is a sum of weights, none negative, times (u.u')^2, (s.s')^2, 0 or 1: never negative, so they
differ by at most sqrt(2) in norm.  Of clusters: to shorten z to length R moves no two z further apart,
and |z z' - y y'| <= (|z| + |y|) |z - y| <= 2 R |z - y|.  A unit that comes moves one z by at most B S,
one that is replaced moves one z by twice, or two by once, that: over 2 R B S by at most 1, and 2.  QED

A unit adds the vector in K whole steps, rounded: norms grow by at most sqrt(d)/2 + 2 steps, and those
of differences by at most sqrt(d) + 2, for d numbers, rounding of floating point included.  Every
operation acts on each unit alone, number by number: there are no matrix products, whose rounding may
depend on the position of a row, and means are looked up in a public table.  So a unit's vector is the
same to the last bit whoever else is there.  All steps have noise of the same
variance, and K gives each round its share.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Literal

import numpy as np

from dpcore.arrays import Floats, Integers
from dpcore.domain.adjacency import Adjacency
from dpcore.domain.tally import Tally
from dpcore.releases.models.design import CLUSTER, SIMPLE, STRATUM, SurveyDesign
from dpcore.releases.models.terms import ModelTerms

STEPS = 2**18
"""K of the round with the largest share."""

FEW, MANY = 5_000, 50_000
"""Numbers of records between which shares and radii change in proportion to powers of the number."""

SHARES = {
    "response": (0.03, 0.01),
    "moments": (0.08, 0.03),
    "rough": (0.08, 0.04),
    "again": (0.1, 0.06),
    "middle": (0.25, 0.14),
}
"""Of the precision, with few and with many records; the last round has the rest.  The shares of rounds
that a family leaves out go to the last one too."""

PARTS = {
    "response": {"bins": 1.0},
    "moments": {"moments": 1.0},
    "rough": {"scores": 0.5, "curvature": 0.5},
    "again": {"scores": 0.5, "curvature": 0.5},
    "middle": {"scores": 0.35, "curvature": 0.3, "squares": 0.15, "counts": 0.2},
    "last": {"scores": 1.0},
}
"""What the rounds measure, with weights."""

BY_STRATUM = {"strata": 0.15, "sizes": 0.05}
"""What the middle round measures besides, where there are strata."""

LEVERAGE, SQUARED, SHORTEST, CONDITIONAL = (1.8, 3.2), (3.0, 5.0), (4.5, 4.5), (4.2, 5.5)
"""A, B and the least C, in roots of the number of terms."""

WIDE, ALIKE = (2.5, 4.0), 0.1
"""R, in lengths of the sum of as many typical scores as a cluster has units, with this correlation."""

WIDER = 2.0
"""Times as large is R for one mean: noise allows it, and sums over similar units are long."""

WITHIN = 2**16
"""Steps in B S, in which scores of a cluster are added up."""

LARGER = 2.0
"""Times as large is B with weights: large ones make long tails."""

LENGTHS = 11
"""Ends of the bins of lengths of scores: from 1, or S/2, likewise, each sqrt(2) times the one before;
more with weights."""

BINS = 32
"""Of the response."""

FARTHEST, NODES = 30.0, 2**18
"""Means are looked up in a table of ``NODES`` predictors between -``FARTHEST`` and ``FARTHEST``."""

Family = Literal["gaussian", "binomial", "poisson"]

AT_ONCE = 2**21
"""Numbers that are computed at a time."""


@dataclass(frozen=True, eq=False)
class ScoredRecords:
    """Private: units and their records.  ``rows``: (n, m, p); ``responses``, ``bins`` and
    ``weights``: (n, m); ``strata``, ``clusters``, ``counts``: (n,)."""

    rows: Floats
    responses: Floats
    bins: Integers
    weights: Floats
    strata: Integers
    clusters: Integers
    counts: Integers


@dataclass(frozen=True, eq=False)
class ScorePoint:
    """Where a round measures, in each of t repetitions; public, as it follows from noisy numbers.

    ``theta``: (t, p); ``white``: (t, p, p) V'; ``spread``: (t,) of residuals, squared; ``slope``: (t,) a
    typical one; ``radius``: (t,) C; ``rows``: (t,) about how many records there are, by weight.

    ``location``, ``width``: (t,) of the response, that the moments take.  The rest is for errors:
    ``inverse``: (t, p, p) of the noisy curvature over ``slope``; ``blur``: (t,) the noise in it;
    ``meat``: (t, p, p) the variance of the sum of scores; ``tail``: (t,) about how much longer than
    C scores are together; ``moved``: (t, p) the last step; all in the basis of ``white``.
    """

    number: int
    theta: Floats
    white: Floats
    spread: Floats
    slope: Floats
    radius: Floats
    rows: Floats
    location: Floats
    width: Floats
    inverse: Floats
    blur: Floats
    meat: Floats
    tail: Floats
    moved: Floats


@dataclass(frozen=True, eq=False)
class ModelSums:
    """The rounds of a model; ``stddev``: of the noise in a number, in steps; ``parts``: of how many
    separate groups of records, of which this is one."""

    terms: ModelTerms
    family: Family
    rows: int
    adjacency: Adjacency
    stddev: float = 0.0
    design: SurveyDesign = SIMPLE
    parts: int = 1

    @property
    def rounds(self) -> tuple[str, ...]:
        left_out = {"binomial": "response", "gaussian": "again"}.get(self.family)
        return tuple(name for name in PARTS if name != left_out)

    @property
    def weighed(self) -> bool:
        """Whether scores are bounded by weights beforehand, instead of shortened.  That would bias them
        where the survey's weights depend on the response."""
        return self.family == "binomial" and not self.design.steps

    def scaled(self, few_and_many: tuple[float, float]) -> float:
        """Between the numbers for few and for many units."""
        few, many = few_and_many
        units = max(self.rows / self.design.members, 1)
        place = math.log(units / FEW) / math.log(MANY / FEW)
        return float(few * (many / few) ** min(max(place, 0.0), 1.0))

    @cached_property
    def shares(self) -> dict[str, float]:
        """Of the precision, by round."""
        found = {name: self.scaled(SHARES[name]) for name in self.rounds[:-1]}
        return found | {"last": 1 - sum(found.values())}

    @cached_property
    def radii(self) -> dict[str, float]:
        """A, B and the least C, times S."""
        root, size = math.sqrt(self.terms.size), self.design.size
        shortest = root * self.scaled(CONDITIONAL if self.weighed else SHORTEST)
        pairs = (("leverage", LEVERAGE), ("squared", SQUARED))
        found = {name: root * size * self.scaled(pair) for name, pair in pairs}
        if self.design.steps:
            found["squared"] *= LARGER
        units = max(self.rows / self.design.members / max(self.design.sizes[1], 1), 1.0)
        alike = math.sqrt(units * (1 + ALIKE * (units - 1)))
        found["cluster"] = root * size * self.scaled(WIDE) * alike
        if self.terms.size == 1:
            found["cluster"] *= WIDER
        found["curvature"] = found["leverage"] / size * math.sqrt(self.design.members)
        return found | {"shortest": shortest * size}

    @cached_property
    def lengths(self) -> Floats:
        """Ends of the bins of lengths of scores."""
        first = math.sqrt(self.terms.size) * max(self.design.size / 2, 1.0)
        number = LENGTHS + 3 * bool(self.design.steps)
        return np.asarray(first * 2.0 ** (np.arange(number) / 2))

    def parts_of(self, name: str) -> Mapping[str, float]:
        """What a round measures, with weights that add up to 1."""
        if name != "middle" or not self.design.strata:
            return PARTS[name]
        rest = 1 - sum(BY_STRATUM.values())
        return {part: rest * weight for part, weight in PARTS[name].items()} | BY_STRATUM

    # Rounds as vectors of whole numbers

    def numbers_of(self, part: str) -> int:
        p = self.terms.size
        together = self.moments_size * (self.moments_size + 1) // 2
        curved = p * (p + 1) // 2
        (strata, _), ends = self.design.sizes, len(self.lengths)
        sizes = {"bins": BINS, "moments": together, "scores": p, "counts": ends + 1}
        return (sizes | {"strata": strata * p, "sizes": strata}).get(part, curved)

    @property
    def moments_size(self) -> int:
        """Rows of the matrix of moments: a constant is always among them, and the response."""
        return self.terms.size + 1 + (self.terms.constant is None)

    @cached_property
    def steps(self) -> dict[str, int]:
        """K of each round."""
        wanted = {n: math.sqrt(self.shares[n] / self._moved(n, 1.0)) for n in self.rounds}
        return {n: round(STEPS * each / max(wanted.values())) for n, each in wanted.items()}

    def _moved(self, name: str, squared: float) -> float:
        """The square of the sensitivity, for vectors of length 1 times ``squared``."""
        moved = 2 + 2 * self._signed(name)
        return self._shared * self.adjacency.squared(moved=moved * squared, present=squared)

    @property
    def _shared(self) -> int:
        """The most parts that one unit's records are in."""
        return min(self.parts, self.design.members)

    def _signed(self, name: str) -> float:
        """The weight of parts of which two units' may be opposite."""
        signed = {"scores", "strata"} | ({"squares"} if self.design.clusters else set())
        return sum(weight for part, weight in self.parts_of(name).items() if part in signed)

    @cached_property
    def laws(self) -> tuple[tuple[int, Fraction], ...]:
        """How many numbers each round has, of all parts, and the squared sensitivity of its sums."""
        found = []
        for name in self.rounds:
            numbers, steps = self.width(name), self.steps[name]
            rounded = math.isqrt(numbers) + 1
            if self.design.clusters:  # two clusters may be rounded
                rounded *= 2
            moved = 2 + 2 * Fraction(self._signed(name))
            far = math.isqrt(math.ceil(moved * steps**2)) + 1 + rounded + 2
            near = steps + rounded // 2 + 1 + 2
            squared = self.adjacency.squared(moved=far**2, present=near**2)
            found.append((self.parts * numbers, self._shared * Fraction(squared)))
        return tuple(found)

    def width(self, name: str) -> int:
        return sum(self.numbers_of(part) for part in self.parts_of(name))

    @property
    def largest(self) -> int:
        """No number of one record is larger in size."""
        return max(self.steps.values()) + 2

    def radius_of(self, part: str, point: ScorePoint) -> Floats:
        """(t,) the largest norm of a part."""
        most = float(self.design.members)
        constant = {
            "bins": most,
            "counts": 1.0,
            "moments": most * (self.terms.norm_squared + 1.0 + (self.terms.constant is None)),
            "curvature": self.radii["curvature"] ** 2,
            "squares": self.radii["squared"] ** 2,
            "strata": self.radii["squared"],
            "sizes": 1.0,
        }
        if part == "scores":
            return point.radius
        if part == "squares" and self.design.clusters:
            # Scores are rounded before they are added up.
            constant[part] = 2.01 * self.radii["cluster"] * self.radii["squared"]
        return np.full(len(point.theta), constant[part])

    def per_step(self, part: str, point: ScorePoint) -> Floats:
        """(t,) what a step of a part is."""
        name = self.rounds[point.number]
        weight = self.parts_of(name)[part]
        return self.radius_of(part, point) / (math.sqrt(weight) * self.steps[name])

    def records_of(self, tally: Tally) -> ScoredRecords:
        codes = tally.domain.unpack(tally.cells)
        return self.scored(*self.design.unpacked(codes, self.terms.axes), tally.counts)

    def scored(
        self, codes: Integers, weights: Floats, groups: Integers, counts: Integers
    ) -> ScoredRecords:
        """The records (n, m, axes) of units, with weights (n, m), of which equal ones are counted."""
        named = dict(zip(self.design.groups, groups.T, strict=True))
        none = np.zeros(len(codes), dtype=np.int64)
        strata, clusters = named.get(STRATUM, none), named.get(CLUSTER, none)
        shape = weights.shape
        codes = codes.reshape(-1, len(self.terms.axes))
        kept = self.terms.kept(codes) & (weights.ravel() > 0)
        codes = np.where(kept[:, None], codes, 0)
        weights = np.where(kept.reshape(shape), weights, 0.0)
        responses = self.terms.responses(codes)
        bins = np.clip(np.searchsorted(self.edges, responses, side="right") - 1, 0, BINS - 1)
        rows = self.terms.rows(codes).reshape(*shape, self.terms.size)
        found = (
            rows,
            responses.reshape(shape),
            bins.reshape(shape),
            weights,
            strata,
            clusters,
            counts,
        )
        there = weights.max(axis=1, initial=0.0) > 0
        return ScoredRecords(*(each[there] for each in found))

    @cached_property
    def edges(self) -> Floats:
        """(BINS + 1,) of the response."""
        first, last = self.terms.ends
        if self.family == "poisson":
            return np.asarray(np.r_[0.0, np.geomspace(min(1.0, last / 2), last, BINS)])
        return np.linspace(first, last, BINS + 1)

    def at(self, records: ScoredRecords, point: ScorePoint) -> Integers:
        """(t, width) the sums of a round: private."""
        name = self.rounds[point.number]
        sums = np.zeros((len(point.theta), self.width(name)), dtype=np.int64)
        numbers = self.design.members * (self.width(name) + self.terms.size**2)
        rows = max(AT_ONCE // numbers, 1)
        times = max(rows // max(len(records.counts), 1), 1)
        for start in range(0, len(sums), times):
            some = _taken(point, slice(start, start + times))
            shape = len(some.theta), self.design.sizes[1], self.terms.size
            of_clusters = np.zeros(shape, dtype=np.int64)
            for first in range(0, len(records.counts), rows):
                part = slice(first, first + rows)
                block = ScoredRecords(*(getattr(records, f)[part] for f in vars(records)))
                place = 0
                for kind, values in self._vectors(name, block, some):
                    end = place + self.numbers_of(kind)
                    step = self.per_step(kind, some)[:, None, None]
                    clustered = kind == "squares" and self.design.clusters is not None
                    if clustered:
                        step = np.full(step.shape, self.radii["squared"] / WITHIN)
                    # All numbers are finite; were one not, it would add nothing.
                    whole = np.rint(np.nan_to_num(values / step, posinf=0, neginf=0)).astype(
                        np.int64
                    )
                    whole *= block.counts[:, None]
                    if clustered:
                        for each, added in zip(of_clusters, whole, strict=True):
                            np.add.at(each, block.clusters, added)
                    else:
                        sums[start : start + times, place:end] += whole.sum(axis=1)
                    place = end
            if name == "middle" and self.design.clusters:
                place = self._place(name, "squares")
                squares = self._squares_of(of_clusters, some)
                sums[start : start + times, place : place + squares.shape[1]] = squares
        return sums

    def _place(self, name: str, part: str) -> int:
        """Where a part begins in a round."""
        parts = [*self.parts_of(name)]
        return sum(self.numbers_of(each) for each in parts[: parts.index(part)])

    def _squares_of(self, sums: Integers, point: ScorePoint) -> Integers:
        """(t, width) the squares of clusters, of their sums (t, clusters, p) in steps of scores."""
        scores = np.asarray(sums * (self.radii["squared"] / WITHIN), dtype=np.float64)
        size = np.maximum(np.sqrt(_summed_squares(scores)), 1e-300)
        short = scores * np.minimum(1.0, self.radii["cluster"] / size)[:, :, None]
        step = self.per_step("squares", point)[:, None, None]
        return np.asarray(np.rint(_squares(short) / step).astype(np.int64).sum(axis=1))

    def _vectors(
        self, name: str, block: ScoredRecords, point: ScorePoint
    ) -> Iterator[tuple[str, Floats]]:
        """The parts (t, n, width) of what each unit adds, clipped."""
        if name in ("response", "moments"):
            weight = block.weights * np.minimum(
                1.0, self.design.members / _over(block.weights, 1)[:, None]
            )
        if name == "response":
            bins = (block.bins[:, :, None] == np.arange(BINS)).astype(np.float64)
            yield "bins", _over(bins * weight[:, :, None], 1)[None]
            return
        if name == "moments":
            location, width = point.location[:, None, None], point.width[:, None, None]
            y = np.clip((block.responses - location) / width, -1.0, 1.0)
            columns = [np.ones(y.shape)] * (self.terms.constant is None)
            columns += [np.broadcast_to(x, y.shape) for x in np.moveaxis(block.rows, 2, 0)]
            squares = _squares(np.stack([*columns, y], axis=3))
            yield "moments", _over(squares * weight[:, :, None], 2)
            return
        predictor = np.zeros((len(point.theta), *block.weights.shape))
        white = np.zeros((*predictor.shape, self.terms.size))
        for j, x in enumerate(np.moveaxis(block.rows, 2, 0)):
            predictor += x * point.theta[:, j, None, None]
            white += x[:, :, None] * point.white[:, None, None, j, :]
        mean, slope = self.family_at(predictor)
        spread = np.sqrt(point.spread)[:, None, None]
        left = (block.responses - mean) / spread
        slope = block.weights * slope / point.slope[:, None, None]
        squared = _summed_squares(white)
        leverage = np.maximum(_over(squared * slope, 2), 1e-300)
        weight = np.minimum(1.0, self.radii["leverage"] ** 2 / leverage)
        radius = point.radius[:, None]
        if self.weighed:
            largest = block.weights * np.sqrt(squared) * np.maximum(mean, 1 - mean) / spread
            weight = np.minimum(weight, radius / np.maximum(_over(largest, 2), 1e-300))
        score = _over(white * (block.weights * left)[:, :, :, None], 2) * weight[:, :, None]
        size = np.maximum(np.sqrt(_summed_squares(score)), 1e-300)
        short = score * np.minimum(1.0, self.radii["squared"] / size)[:, :, None]
        strata = (block.strata[:, None] == np.arange(self.design.sizes[0])).astype(np.float64)
        for part in self.parts_of(name):
            if part == "scores":
                yield part, score * np.minimum(1.0, radius / size)[:, :, None]
            elif part == "curvature":
                less = np.minimum(weight, self.radii["curvature"] ** 2 / leverage)
                curved = white * np.sqrt(less[:, :, None] * slope)[:, :, :, None]
                yield part, _over(_squares(curved), 2)
            elif part == "squares":
                yield part, short if self.design.clusters else _squares(short)
            elif part == "counts":
                places = np.searchsorted(self.lengths, size, side="right")
                yield part, (places[:, :, None] == np.arange(len(self.lengths) + 1)).astype(float)
            elif part == "strata":
                placed = strata[:, :, None] * short[:, :, None, :]
                yield part, placed.reshape(*size.shape, -1)
            else:
                yield part, strata[None]

    @cached_property
    def _table(self) -> Floats:
        nodes = np.linspace(-FARTHEST, FARTHEST, NODES + 1)
        return np.asarray(1 / (1 + np.exp(-nodes)) if self.family == "binomial" else np.exp(nodes))

    def family_at(self, predictor: Floats) -> tuple[Floats, Floats]:
        """The mean of the response and its slope, at predictors of any shape."""
        if self.family == "gaussian":
            return predictor, np.ones_like(predictor)
        place = np.rint(
            (np.clip(predictor, -FARTHEST, FARTHEST) + FARTHEST) * (NODES / 2 / FARTHEST)
        )
        mean = self._table[place.astype(np.int64)]
        return mean, mean * (1 - mean) if self.family == "binomial" else mean


def _taken(point: ScorePoint, some: slice) -> ScorePoint:
    """Some of the repetitions."""
    arrays = {name: each[some] for name, each in vars(point).items() if name != "number"}
    return ScorePoint(point.number, **arrays)


def _summed_squares(values: Floats) -> Floats:
    """Over the last axis, one number after the other: in the same order for every record."""
    found = values[..., 0] ** 2
    for i in range(1, values.shape[-1]):
        found = found + values[..., i] ** 2
    return np.asarray(found)


def _over(values: Floats, axis: int) -> Floats:
    """The sum over the records of each unit, one after the other."""
    parts = np.moveaxis(values, axis, 0)
    found = parts[0]
    for part in parts[1:]:
        found = found + part
    return np.asarray(found)


def _squares(vectors: Floats) -> Floats:
    """(..., p (p + 1) / 2) the products of the numbers of vectors (..., p), with the norm of v v'."""
    first, second = np.triu_indices(vectors.shape[-1])
    scale = np.where(first == second, 1.0, math.sqrt(2))
    return np.asarray(vectors[..., first] * vectors[..., second] * scale)
