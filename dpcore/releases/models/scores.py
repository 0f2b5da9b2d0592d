"""Sums of clipped scores, one vector of whole numbers for each round: private until noise is added.

``rounds`` says what the rounds measure, and proves how far one unit moves these sums.  The proof
requires that each unit's contribution to a round is clipped to ``radius_of`` before it is rounded and
added, and that it depends on no other unit, to the last bit.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpcore.arrays import Floats, Integers
from dpcore.domain.tally import Tally
from dpcore.releases.models.design import CLUSTER, STRATUM
from dpcore.releases.models.point import Coordinates, ScorePoint
from dpcore.releases.models.rounds import BINS, ModelRounds

WITHIN = 2**16
"""The number of steps in B S for adding up the scores of a cluster."""

FARTHEST, NODES = 30.0, 2**18
"""Means are looked up in a table of ``NODES`` predictors between -``FARTHEST`` and ``FARTHEST``."""

AT_ONCE = 2**21
"""How many numbers are computed at a time."""


@dataclass(frozen=True, eq=False)
class ScoredRecords:
    """Units and their records: private.  ``rows``: (n, m, p); ``places``: (n, m, t) of numeric terms in
    their bins; ``responses``, ``bins``, ``weights``: (n, m); ``strata``, ``clusters``, ``counts``:
    (n,)."""

    rows: Floats
    places: Integers
    responses: Floats
    bins: Integers
    weights: Floats
    strata: Integers
    clusters: Integers
    counts: Integers


@dataclass(frozen=True, eq=False)
class ModelSums(ModelRounds):
    """The rounds of a model with the sums of each."""

    def records_of(self, tally: Tally) -> ScoredRecords:
        codes = tally.domain.unpack(tally.cells)
        return self.scored(*self.design.unpacked(codes, self.terms.axes), tally.counts)

    def scored(
        self, codes: Integers, weights: Floats, groups: Integers, counts: Integers
    ) -> ScoredRecords:
        """Scored records from codes (n, m, axes) and weights (n, m) of distinct units with counts."""
        named = dict(zip(self.design.groups, groups.T, strict=True))
        none = np.zeros(len(codes), dtype=np.int64)
        strata, clusters = named.get(STRATUM, none), named.get(CLUSTER, none)
        shape = weights.shape
        codes = codes.reshape(-1, len(self.terms.axes))
        kept = self.terms.kept(codes) & (weights.ravel() > 0)
        # Tables have no row for null; with weight 0 it does not matter which row is taken.
        codes = np.where(kept[:, None], codes, 0)
        weights = np.where(kept.reshape(shape), weights, 0.0)
        responses = self.terms.responses(codes)
        bins = np.clip(np.searchsorted(self.edges, responses, side="right") - 1, 0, BINS - 1)
        rows = self.terms.rows(codes)
        places = np.zeros((len(codes), len(self.located)), dtype=np.int64)
        for k, (j, edges) in enumerate(self.located.items()):
            at = np.searchsorted(edges, rows[:, j], side="right") - 1
            places[:, k] = np.clip(at, 0, len(edges) - 2)
        found = (
            rows.reshape(*shape, self.terms.size),
            places.reshape(*shape, places.shape[1]),
            responses.reshape(shape),
            bins.reshape(shape),
            weights,
            strata,
            clusters,
            counts,
        )
        there = weights.max(axis=1, initial=0.0) > 0
        return ScoredRecords(*(each[there] for each in found))

    def at(self, records: ScoredRecords, point: ScorePoint) -> Integers:
        """The sums (t, width) of a round: private."""
        name = self.rounds[point.number]
        sums = np.zeros((len(point.theta), self.width(name)), dtype=np.int64)
        numbers = self.design.members * (self.width(name) + self.terms.size**2)
        rows = max(AT_ONCE // numbers, 1)
        # Blocks bound the memory.  Each unit is rounded before it is added, so they change no sum.
        times = max(rows // max(len(records.counts), 1), 1)
        for start in range(0, len(sums), times):
            some = point.select(slice(start, start + times))
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
                    if clustered:  # squares are taken of sums over all units of a cluster, later
                        step = np.full(step.shape, self.radii["squared"] / WITHIN)
                    # All numbers are finite; any other would add nothing.
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

    def _squares_of(self, sums: Integers, point: ScorePoint) -> Integers:
        """The squares of clusters (t, width), from their sums of scores (t, clusters, p) in steps."""
        scores = np.asarray(sums * (self.radii["squared"] / WITHIN), dtype=np.float64)
        size = np.maximum(np.sqrt(_summed_squares(scores)), 1e-300)
        short = scores * np.minimum(1.0, self.radii["cluster"] / size)[:, :, None]
        step = self.per_step("squares", point)[:, None, None]
        return np.asarray(np.rint(_squares(short) / step).astype(np.int64).sum(axis=1))

    def _vectors(
        self, name: str, block: ScoredRecords, point: ScorePoint
    ) -> Iterator[tuple[str, Floats]]:
        """The clipped contributions (t, n, width) of each unit to the parts of a round."""
        if name == "response":
            return self._of_response(block)
        return (
            self._of_moments(block, point)
            if name == "moments"
            else self._of_scores(name, block, point)
        )

    def _weights(self, block: ScoredRecords) -> Floats:
        """The weights (n, m) of records; those of a unit add up to at most its records."""
        total = _over(block.weights, 1)[:, None]
        return np.asarray(block.weights * np.minimum(1.0, self.design.members / total))

    def _of_response(self, block: ScoredRecords) -> Iterator[tuple[str, Floats]]:
        weight = self._weights(block)
        placed = {"bins": [(block.bins, BINS)], "terms": []}
        for k, edges in enumerate(self.located.values()):
            placed["terms"].append((block.places[:, :, k], len(edges) - 1))
        for part in self.parts_of("response"):
            each = [at[:, :, None] == np.arange(number) for at, number in placed[part]]
            bins = np.concatenate(each, axis=2).astype(np.float64)
            yield part, _over(bins * weight[:, :, None], 1)[None]

    def _of_moments(self, block: ScoredRecords, point: ScorePoint) -> Iterator[tuple[str, Floats]]:
        location, width = (each[:, None, None] for each in (point.near.location, point.near.width))
        y = np.clip((block.responses - location) / width, -1.0, 1.0)
        relative = np.empty((*y.shape, self.terms.size))
        relative[:] = block.rows
        for first in self.located:
            own = list(self.terms.tables[first][0])
            relative[..., own] = _relative(block.rows, own, point.near)
        # An added constant is first and the response last: ``_after_moments`` reads them there.
        constant = np.ones((*y.shape, int(self.terms.constant is None)))
        squares = _squares(np.concatenate([constant, relative, y[..., None]], axis=3))
        yield "moments", _over(squares * self._weights(block)[:, :, None], 2)

    def _of_scores(
        self, name: str, block: ScoredRecords, point: ScorePoint
    ) -> Iterator[tuple[str, Floats]]:
        predictor = np.zeros((len(point.theta), *block.weights.shape))
        white = np.zeros((*predictor.shape, self.terms.size))
        for j, x in enumerate(np.moveaxis(block.rows, 2, 0)):
            predictor += x * point.theta[:, j, None, None]
            white += x[:, :, None] * point.white[:, None, None, j, :]
        mean, slope = self.family_at(predictor)
        spread = np.sqrt(point.spread)[:, None, None]
        left = (block.responses - mean) / spread
        slope = block.weights * slope / point.slope[:, None, None]
        leverage = np.maximum(_over(_summed_squares(white) * slope, 2), 1e-300)
        weight = np.minimum(1.0, self.radii["leverage"] / np.sqrt(leverage))
        radius = point.radius[:, None]
        if self.weighed:
            far = np.sqrt(_summed_squares(_mixed(white, point.squeeze)))
            largest = block.weights * far * np.maximum(mean, 1 - mean) / spread
            weight = np.minimum(weight, radius / np.maximum(_over(largest, 2), 1e-300))
        score = _over(white * (block.weights * left)[:, :, :, None], 2) * weight[:, :, None]
        size = np.maximum(np.sqrt(_summed_squares(score)), 1e-300)
        short = score * np.minimum(1.0, self.radii["squared"] / size)[:, :, None]
        if self.weighed:
            score = _mixed(score, point.squeeze)
            size = np.maximum(np.sqrt(_summed_squares(score)), 1e-300)
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
        """The mean of the response and its derivative, at predictors of any shape."""
        if self.family == "gaussian":
            return predictor, np.ones_like(predictor)
        # Looked up, because an exponential may be rounded differently at another place of an array.
        place = np.rint(
            (np.clip(predictor, -FARTHEST, FARTHEST) + FARTHEST) * (NODES / 2 / FARTHEST)
        )
        mean = self._table[place.astype(np.int64)]
        return mean, mean * (1 - mean) if self.family == "binomial" else mean


def _relative(rows: Floats, places: list[int], near: Coordinates) -> Floats:
    """Some terms (t, n, m, k) relative to where most values lie, shortened to a length of at most 1."""
    found = np.zeros((len(near.middle), *rows.shape[:2], len(places)))
    for j in places:
        apart = rows[:, :, j] - near.middle[:, j, None, None]
        found += apart[..., None] * near.local[:, None, None, j, places]
    size = np.maximum(np.sqrt(_summed_squares(found)), 1.0)
    return np.asarray(found / size[..., None])


def _mixed(vectors: Floats, matrices: Floats) -> Floats:
    """The products of vectors (t, ..., p) and a matrix (t, p, p) each, number by number."""
    found = np.zeros_like(vectors)
    for j in range(vectors.shape[-1]):
        row = matrices[:, j].reshape(len(matrices), *(1,) * (vectors.ndim - 2), -1)
        found += vectors[..., j : j + 1] * row
    return found


def _summed_squares(values: Floats) -> Floats:
    """The sum of squares over the last axis, added in the same order for every record."""
    found = values[..., 0] ** 2
    for i in range(1, values.shape[-1]):
        found = found + values[..., i] ** 2
    return np.asarray(found)


def _over(values: Floats, axis: int) -> Floats:
    """The sum over the records of each unit, added one after another."""
    parts = np.moveaxis(values, axis, 0)
    found = parts[0]
    for part in parts[1:]:
        found = found + part
    return np.asarray(found)


def _squares(vectors: Floats) -> Floats:
    """The products (..., p (p + 1) / 2) of numbers of vectors (..., p), with the norm of v v'."""
    first, second = np.triu_indices(vectors.shape[-1])
    scale = np.where(first == second, 1.0, math.sqrt(2))
    return np.asarray(vectors[..., first] * vectors[..., second] * scale)
