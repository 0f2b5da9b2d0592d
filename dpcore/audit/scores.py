"""Scores: numbers made of an output, so that an event is "the score is at least s".

Which score is used has no influence on whether a lower bound holds, only on how large it is.  The
best one is the log of how much likelier an output is on one side than on the other (Neyman &
Pearson); those below come near it without knowing the mechanism:

    StatedRatio      the log-ratio of the noise that a mechanism states (mechanisms we know)
    ChoiceRatio      the same of a mechanism that chooses;  UrnRatio: of one that draws from an urn;
                     AdaptiveRatio: of one that measures all and some again
    Coordinate       one number of the output;  Linear, Largest, Smallest: of all of them
    Quadratic        a quadratic form: for noise whose coordinates hang together
    LowBits          the last digits of a number: floating point noise leaks there (Mironov 2012)
    BinnedRatio      log-ratio of the counts of any score's bins, learned from a search sample
    AdditiveRatio    sum of the log-ratios of the coordinates: right for independent coordinates
    PatternRatio     log-ratio by which coordinates are absent or special, and by their sum

An output is a row of (size, d); NaN stands for an absent number.

>>> outputs = np.array([[3.0, np.nan], [1.0, 2.0]])
>>> Largest()(outputs).tolist(), Coordinate(1)(outputs).tolist()
([3.0, 2.0], [nan, 2.0])
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, logsumexp

from dpcore.events import (
    AdaptiveMarginsEvent,
    CompressedMarginsEvent,
    Event,
    ExponentialEvent,
    GaussianEvent,
    KNormEvent,
    LaplaceEvent,
    RandomLaplaceEvent,
    SampledEvent,
    StabilityEvent,
)
from dpcore.sampling.k_norm import lattice_norm

Floats = NDArray[np.float64]
Outputs = NDArray[Any]
"""(size, d) of int64 or float64."""

CERTAIN = 50.0
"""Stands for the log-ratio of what is possible on one side only."""

DIGIT = 2.0**-53
"""The last binary digit of a float64 between 1/2 and 1."""


class Score(Protocol):
    """From outputs (size, d) to scores (size,); its string says what it is."""

    def __call__(self, outputs: Outputs) -> Floats: ...


@dataclass(frozen=True)
class Coordinate:
    """One number of the output."""

    index: int

    def __call__(self, outputs: Outputs) -> Floats:
        return outputs[:, self.index].astype(np.float64)

    def __str__(self) -> str:
        return f"number {self.index}"


@dataclass(frozen=True, eq=False)
class Linear:
    """sum of weights (d,) times the numbers; ``absent`` (d,) stands in for those that are absent."""

    weights: Floats
    absent: Floats
    label: str

    def __call__(self, outputs: Outputs) -> Floats:
        values = outputs.astype(np.float64)
        if outputs.dtype.kind == "f":
            values = np.where(np.isfinite(values), values, self.absent)
        return np.asarray(values @ self.weights)

    def __str__(self) -> str:
        return self.label


@dataclass(frozen=True, eq=False)
class Quadratic:
    """z . slope + z . (curvature z), where z = whiten (d, d) times the output less the centre (d,)."""

    centre: Floats
    whiten: Floats
    slope: Floats
    curvature: Floats

    def __call__(self, outputs: Outputs) -> Floats:
        values = outputs.astype(np.float64)
        white = np.where(np.isfinite(values), values - self.centre, 0.0) @ self.whiten
        return np.asarray(white @ self.slope + np.sum((white @ self.curvature) * white, axis=1))

    def __str__(self) -> str:
        return "quadratic discriminant"


@dataclass(frozen=True)
class Largest:
    """The largest number that is present; minus infinity where none is."""

    def __call__(self, outputs: Outputs) -> Floats:
        values = outputs.astype(np.float64)
        return np.asarray(np.where(np.isnan(values), -np.inf, values).max(axis=1))

    def __str__(self) -> str:
        return "the largest number"


@dataclass(frozen=True)
class Smallest:
    """The smallest number that is present; infinity where none is."""

    def __call__(self, outputs: Outputs) -> Floats:
        values = outputs.astype(np.float64)
        return np.asarray(np.where(np.isnan(values), np.inf, values).min(axis=1))

    def __str__(self) -> str:
        return "the smallest number"


@dataclass(frozen=True)
class LowBits:
    """What the last binary digits of one number say.

    ``residue`` None: the place of the last digit that is one (log2 of the largest power of two that
    divides the number).  Otherwise the number modulo 2**residue: of an integer as it is, of a float
    after division by the last place of its 53 digits.
    """

    index: int
    residue: int | None = None

    def __call__(self, outputs: Outputs) -> Floats:
        values = outputs[:, self.index]
        place = np.zeros(len(values))
        digits = values
        if values.dtype.kind == "f":
            mantissa, exponent = np.frexp(np.where(np.isfinite(values), values, 0.0))
            digits = np.rint(mantissa / DIGIT).astype(np.int64)
            place = exponent - 53.0
        if self.residue is not None:
            found = (digits & ((1 << self.residue) - 1)).astype(np.float64)
        else:
            last = np.where(digits == 0, 1, digits & -digits).astype(np.float64)
            found = np.where(digits == 0, 2000.0, place + np.log2(np.abs(last)))
        return np.where(np.isfinite(values.astype(np.float64)), found, np.nan)

    def __str__(self) -> str:
        if self.residue is None:
            return f"place of the last digit of number {self.index}"
        return f"last {self.residue} digits of number {self.index}"


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
class AdditiveRatio:
    """Sum of learned log-ratios of coordinates: that of the whole if they are independent."""

    parts: tuple[BinnedRatio, ...]

    def __call__(self, outputs: Outputs) -> Floats:
        total = np.zeros(len(outputs))
        for part in self.parts:
            total += part(outputs)
        # Equal sums of floats must not be torn apart by their rounding.
        return np.asarray(np.round(total, 9))

    def __str__(self) -> str:
        return f"sum of log-ratios of {len(self.parts)} numbers"


@dataclass(frozen=True, eq=False)
class PatternRatio:
    """Learned log-ratio of (pattern, bin of the sum of ordinary numbers).

    ``special``: for each coordinate, ascending values that count as a kind of their own;
    ``keys`` (p,): ascending numbers of the known patterns; ``edges``, ``ratios``: for each of them
    as in ``BinnedRatio``.  An unknown pattern scores 0.
    """

    special: tuple[Floats, ...]
    keys: NDArray[np.int64]
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


def patterns(outputs: Outputs, special: tuple[Floats, ...]) -> tuple[NDArray[np.int64], Floats]:
    """(size,) a number for each pattern of kinds, and the sum of the ordinary numbers."""
    keys, sums = np.zeros(len(outputs), dtype=np.uint64), np.zeros(len(outputs))
    for j, atoms in enumerate(special):
        values = outputs[:, j].astype(np.float64)
        kind = np.zeros(len(values), dtype=np.uint64)
        if len(atoms):
            place = np.minimum(np.searchsorted(atoms, values), len(atoms) - 1)
            kind = np.where(atoms[place] == values, place + 1, 0).astype(np.uint64)
        kind[np.isnan(values)] = len(atoms) + 1
        sums += np.where((kind == 0) & np.isfinite(values), values, 0.0)
        keys = (keys + kind) * np.uint64(0x9E3779B97F4A7C15)
    return keys.view(np.int64), sums


@dataclass(frozen=True, eq=False)
class StatedRatio:
    """log of how much likelier an output is at centre ``near`` (d,) than at ``far`` (d,).

    For the noise that ``event`` states; absent numbers were at most ``threshold``.
    """

    event: LaplaceEvent | RandomLaplaceEvent | StabilityEvent | GaussianEvent
    near: Floats
    far: Floats
    threshold: float = math.nan

    def __call__(self, outputs: Outputs) -> Floats:
        moved = np.flatnonzero(self.near != self.far)
        values = outputs[:, moved].astype(np.float64)
        near, far = self.near[moved], self.far[moved]
        if isinstance(self.event, GaussianEvent):
            return np.asarray(
                (values - (near + far) / 2) @ ((near - far) / float(self.event.variance))
            )
        scale = float(self.event.scale)
        ratio = (np.abs(values - far) - np.abs(values - near)) / scale
        if outputs.dtype.kind == "f":
            absent = laplace_log_cdf(self.threshold - near, scale)
            absent -= laplace_log_cdf(self.threshold - far, scale)
            if isinstance(self.event, StabilityEvent):  # an empty cell is absent, for certain
                ratio += CERTAIN * ((far == 0).astype(float) - (near == 0))
                absent -= np.where(near == 0, laplace_log_cdf(self.threshold - near, scale), 0.0)
                absent += np.where(far == 0, laplace_log_cdf(self.threshold - far, scale), 0.0)
            ratio = np.where(np.isnan(values), absent, ratio)
        return np.asarray(np.round(ratio.sum(axis=1), 9))

    def __str__(self) -> str:
        return "log-ratio of the stated noise"


@dataclass(frozen=True, eq=False)
class ChoiceRatio:
    """The same of choices: the ratios (choices, candidates) of what was chosen, added up."""

    ratios: Floats

    def __call__(self, outputs: Outputs) -> Floats:
        ratios = self.ratios[np.arange(len(self.ratios)), outputs.astype(np.int64)]
        return np.asarray(np.round(ratios.sum(axis=1), 9))

    def __str__(self) -> str:
        return "log-ratio of the stated choices"


@dataclass(frozen=True, eq=False)
class UrnRatio:
    """The same of draws from an urn with these balls of each cell, (cells,) each."""

    near: Floats
    far: Floats
    polya: bool

    def __call__(self, outputs: Outputs) -> Floats:
        drawn = outputs.astype(np.float64)
        if self.polya:
            sides = [gammaln(urn + drawn) - gammaln(urn) for urn in (self.near, self.far)]
            return np.asarray(np.round((sides[0] - sides[1]).sum(axis=1), 9))
        return np.asarray(np.round(drawn @ np.log(self.near / self.far), 9))

    def __str__(self) -> str:
        return "log-ratio of the stated draws"


@dataclass(frozen=True, eq=False)
class NormRatio:
    """The same of K-norm noise, which hangs together: by how far the output is from either centre."""

    event: KNormEvent
    near: Floats
    far: Floats

    def __call__(self, outputs: Outputs) -> Floats:
        whole = outputs.astype(np.int64)
        lengths = [
            lattice_norm(self.event.norm, whole - side.astype(np.int64))
            for side in (self.near, self.far)
        ]
        return np.asarray((lengths[1] - lengths[0]) / float(self.event.scale))

    def __str__(self) -> str:
        return "log-ratio of the stated K-norm noise"


@dataclass(frozen=True, eq=False)
class AdaptiveRatio:
    """The same of two rounds: of all cells, and of those that were measured again."""

    event: AdaptiveMarginsEvent
    near: Floats
    far: Floats

    def __call__(self, outputs: Outputs) -> Floats:
        rounds = np.split(outputs.astype(np.float64), 2, axis=1)
        scales = (float(self.event.scale), float(self.event.again_scale))
        ratios = [self._ratio(*each) for each in zip(rounds, scales, strict=True)]
        return np.asarray(np.round(ratios[0] + ratios[1], 9))

    def _ratio(self, values: Floats, scale: float) -> Floats:
        if self.event.noise == "discrete-gaussian":
            cells = (values - (self.near + self.far) / 2) * (self.near - self.far) / scale
        else:
            cells = (np.abs(values - self.far) - np.abs(values - self.near)) / scale
        return np.asarray(np.nansum(cells, axis=1))

    def __str__(self) -> str:
        return "log-ratio of the stated noise of both rounds"


def stated_ratio(
    event: Event, near: Floats, far: Floats, threshold: float = math.nan
) -> Sequence[Score]:
    """The log-ratio of what ``event`` states, or none where it is not known."""
    if isinstance(event, LaplaceEvent | RandomLaplaceEvent | StabilityEvent | GaussianEvent):
        return [StatedRatio(event, near, far, threshold)]
    if isinstance(event, ExponentialEvent):
        shape = (event.selections, -1)
        logs = [-side.reshape(shape) / float(event.scale) for side in (near, far)]
        sides = [log - logsumexp(log, axis=1, keepdims=True) for log in logs]
        return [ChoiceRatio(sides[0] - sides[1])]
    if isinstance(event, SampledEvent):
        prior = float(event.prior)
        return [UrnRatio(near + prior, far + prior, event.urn == "dirichlet-multinomial")]
    if isinstance(event, KNormEvent):
        return [NormRatio(event, near, far)]
    # What the second round of the compressed form measured, its event alone does not say.
    if isinstance(event, AdaptiveMarginsEvent) and not isinstance(event, CompressedMarginsEvent):
        return [AdaptiveRatio(event, near, far)]
    return []


def laplace_log_cdf(z: Floats, scale: float) -> Floats:
    """log P(Z <= z) of discrete Laplace noise, for whole numbers z."""
    a = math.exp(-1.0 / scale)
    upper = np.log1p(-(a ** (np.maximum(z, 0.0) + 1.0)) / (1.0 + a))
    return np.asarray(np.where(z >= 0, upper, np.minimum(z, 0.0) / scale - math.log1p(a)))


@dataclass(frozen=True)
class Part:
    """A score of the numbers ``start``, ..., ``stop`` - 1 of a longer output."""

    score: Score
    start: int
    stop: int

    def __call__(self, outputs: Outputs) -> Floats:
        return self.score(outputs[:, self.start : self.stop])

    def __str__(self) -> str:
        return f"{self.score} (numbers {self.start} to {self.stop - 1})"


@dataclass(frozen=True)
class Sum:
    """The sum of scores: joint log-ratio of independent parts."""

    scores: tuple[Score, ...]

    def __call__(self, outputs: Outputs) -> Floats:
        return np.asarray(np.round(sum(score(outputs) for score in self.scores), 9))

    def __str__(self) -> str:
        return "sum of " + ", ".join(str(score) for score in self.scores)
