"""Scores: functions of an output, so that an outcome is "the score is at least s".

A lower bound is valid for any score; the score only affects how large the bound is.  The best score is
the log-ratio of an output's chances on the two sides (Neyman & Pearson); these scores approximate it:

    StatedRatio      the log-ratio of the law that a mechanism states
    Projection       one number of the output;  Linear, Extreme: functions of all numbers
    Quadratic        a quadratic form: for noise whose coordinates are dependent
    LowBits          the last digits of a number: floating-point noise leaks there (Mironov 2012)
    BinnedRatio      a log-ratio that was learned from the counts of a score's bins

An output is a row of (size, d); an absent number is NaN.

>>> outputs = np.array([[3.0, np.nan], [1.0, 2.0]])
>>> Extreme(largest=True)(outputs).tolist(), Projection(1)(outputs).tolist()
([3.0, 2.0], [nan, 2.0])
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from dpcore.arrays import Floats
from dpcore.line.mechanism import LogRatio, Outputs

FEW = 4
"""The most parts of a sum that its description lists."""

DIGIT = 2.0**-53
"""The last binary digit of a float64 between 1/2 and 1."""


class Score(Protocol):
    """A function from outputs (size, d) to scores (size,); its string describes it."""

    def __call__(self, outputs: Outputs) -> Floats: ...


@dataclass(frozen=True)
class Projection:
    """One number of the output."""

    index: int

    def __call__(self, outputs: Outputs) -> Floats:
        return outputs[:, self.index].astype(np.float64)

    def __str__(self) -> str:
        return f"number {self.index}"


@dataclass(frozen=True, eq=False)
class Linear:
    """The sum of weights (d,) times the numbers; ``absent`` (d,) replaces absent numbers."""

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
class Extreme:
    """The largest or the smallest number that is present; minus or plus infinity if none is."""

    largest: bool

    def __call__(self, outputs: Outputs) -> Floats:
        values = outputs.astype(np.float64)
        absent = -np.inf if self.largest else np.inf
        present = np.where(np.isnan(values), absent, values)
        return np.asarray(present.max(axis=1) if self.largest else present.min(axis=1))

    def __str__(self) -> str:
        return f"the {'largest' if self.largest else 'smallest'} number"


@dataclass(frozen=True)
class LowBits:
    """A function of the last binary digits of one number.

    ``residue`` None: the position of the last digit that is 1 (log2 of the largest power of two that
    divides the number).  Otherwise the number modulo 2**residue: an integer as it is, a float after
    division by the last place of its 53 digits.
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
            # Every power of two divides zero: its position is above all others.
            found = np.where(digits == 0, 2000.0, place + np.log2(np.abs(last)))
        return np.where(np.isfinite(values.astype(np.float64)), found, np.nan)

    def __str__(self) -> str:
        if self.residue is None:
            return f"position of the last digit of number {self.index}"
        return f"last {self.residue} digits of number {self.index}"


@dataclass(frozen=True, eq=False)
class BinnedRatio:
    """A learned log-ratio for each bin of a base score.

    ``edges`` (b,): bin i holds edges[i - 1] <= score < edges[i]; ``ratios`` (b + 2,): for bins 0, ...,
    b and for absent scores.
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
class StatedRatio:
    """The log-ratio of an output's chances on the two sides, as ``Mechanism.log_ratio`` states it."""

    ratio: LogRatio

    def __call__(self, outputs: Outputs) -> Floats:
        return self.ratio(outputs)

    def __str__(self) -> str:
        return "log-ratio of the stated distribution"


@dataclass(frozen=True, eq=False)
class Scored:
    """The scores of a set of outputs, each computed once.

    Several outcomes and sums may use the same score, and for a mechanism of many rounds computing the
    log-ratios takes longer than drawing the outputs.
    """

    outputs: Outputs
    _found: dict[int, tuple[Score, Floats]] = field(default_factory=dict)
    """Keyed by ``id``, which is unique to a score while the score is kept here."""

    def by(self, score: Score) -> Floats:
        if id(score) not in self._found:
            if isinstance(score, SumOfScores):
                values = score.of(map(self.by, score.scores))
            else:
                values = score(self.outputs)
            self._found[id(score)] = score, values
        return self._found[id(score)][1]


@dataclass(frozen=True)
class Slice:
    """A score of the numbers ``start``, ..., ``stop`` - 1 of a longer output."""

    score: Score
    start: int
    stop: int

    def __call__(self, outputs: Outputs) -> Floats:
        return self.score(outputs[:, self.start : self.stop])

    def __str__(self) -> str:
        return f"{self.score} (numbers {self.start} to {self.stop - 1})"


@dataclass(frozen=True)
class SumOfScores:
    """The sum of scores: the log-ratio of the whole if they are log-ratios of independent parts."""

    scores: tuple[Score, ...]

    def __call__(self, outputs: Outputs) -> Floats:
        return self.of(score(outputs) for score in self.scores)

    def of(self, parts: Iterable[Floats]) -> Floats:
        # Equal sums of floats must not differ by their rounding.
        return np.asarray(np.round(sum(parts), 9))

    def __str__(self) -> str:
        if len(self.scores) > FEW:
            return f"sum of {len(self.scores)} scores such as {self.scores[0]}"
        return "sum of " + ", ".join(str(score) for score in self.scores)
