"""Gaussian noise on one sum after another, of which each follows from the noisy ones before it.

Claim.  Input: the tally of ``domain``.  Neighbours: any relation under which the sum of every round
moves by at most S in the squared L2 norm, wherever the noisy sums before it have led.  Output: the
sums of k rounds, each plus discrete Gaussian noise of variance V.  It costs what a single draw of that
noise costs on a vector of squared sensitivity k S: k S/(2 V)-zCDP, and (alpha, beta, 0)-DP wherever
either proof of ``gaussian`` says so of that draw, with k S coordinates that may differ.

Preconditions.  What is summed in a round depends on the records and on the noisy sums before it, and on
nothing else; a record's own term depends on no other record, to the last bit (``Sums``).  Each round
crosses the privacy line by itself, at a k-th of the rho; the price of the single draw is covered by the
share (the privacy line checks it).

Proof.  Given the noisy sums before it a round is noise on a vector of squared sensitivity S.  Adaptive
composition adds the rhos (Bun & Steinke 2016, Lemma 2.3), and the squares of mu of continuous noise
(Dong, Roth & Su 2022, Theorem 3.2).  Rounding changes the joint law by one factor for each coordinate
that may differ, at most S of them in a round, as sums are whole numbers.  This is the proof of
``adaptive_margins`` with k rounds in place of two, and no choice between them.

Ranges.  Those of ``gaussian``.

Source.  Bun & Steinke 2016; Dong, Roth & Su 2022; Bassily, Smith & Thakurta 2014 for descent by noisy
gradients, here of all records in each round.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Protocol

import numpy as np

from dpcore.accounting.budget import Budget
from dpcore.arrays import Floats, Integers
from dpcore.domain.domain import Domain
from dpcore.domain.tally import Tally
from dpcore.line.mechanism import LogRatio, Outputs, Round
from dpcore.line.privacy_line import perturb
from dpcore.line.statistic import Exact, Noisy
from dpcore.mechanisms.gaussian import DiscreteGaussian, GaussianEvent
from dpcore.sampling.source import RandomSource

TRIED = 4
"""Points, beside the first one, at which an audit compares the sums of two tables."""


@dataclass(frozen=True)
class GaussianRoundsEvent(GaussianEvent):
    """Noise on sums of several rounds; ``l2_sensitivity_squared``: of all of them together."""

    kind = "gaussian-rounds"


class Sums(Protocol):
    """What is summed in each round.  A record's own term depends on no other, to the last bit."""

    def records_of(self, tally: Tally) -> Any:
        """What the records bring to every round: private."""
        ...

    def first_point(self, times: int) -> Any:
        """Where the first sums are taken, the same for each of ``times`` repetitions: public."""
        ...

    def next_point(self, point: Any, noisy: Integers) -> Any:
        """Where the next sums are taken, by the noisy ones (n, width) at the point before: public."""
        ...

    def at(self, records: Any, point: Any) -> Integers:
        """The exact sums (n, width) at points: private."""
        ...


@dataclass(frozen=True)
class GaussianRounds(DiscreteGaussian):
    """``rounds`` sums of the tally of ``domain``, each with noise: (alpha, beta)-DP together.

    ``size``: numbers in all rounds; ``l2_sensitivity_squared``: of all rounds together.
    """

    domain: Domain
    rounds: int
    sums: Sums

    sparse = True
    cell_by_cell = False
    additive = False

    @property
    def words(self) -> tuple[int, ...]:
        return self.domain.words

    @property
    def event(self) -> GaussianRoundsEvent:
        return GaussianRoundsEvent(self.l2_sensitivity_squared, self.variance)

    @property
    def width(self) -> int:
        """Numbers in one round."""
        return self.size // self.rounds

    @property
    def once(self) -> DiscreteGaussian:
        """The noise of one round."""
        return DiscreteGaussian(
            self.width, self.l2_sensitivity_squared / self.rounds, self.variance
        )

    def draw(self, values: Integers, cells: Integers | None, source: RandomSource) -> Noisy:
        return self.repeat(values, cells, 1, source)

    def repeat(
        self, values: Integers, cells: Integers | None, times: int, source: RandomSource
    ) -> Noisy:
        assert cells is not None  # the privacy line checks the layout
        records = self.sums.records_of(Tally(self.domain, cells, values))
        share = Budget(rho=self.l2_sensitivity_squared / (2 * self.variance) / self.rounds)
        drawn = np.empty((times, self.rounds, self.width), dtype=np.int64)
        point = self.sums.first_point(times)
        for number in range(self.rounds):
            exact = self.sums.at(records, point)
            noise = replace(self.once, size=exact.size)
            noisy = perturb(Exact(exact.ravel()), noise, share, source)
            drawn[:, number] = noisy.values.reshape(times, -1)
            point = self.sums.next_point(point, drawn[:, number])
        return Noisy(drawn.ravel(), reproducible=source.reproducible)

    def log_ratio(self, cells: Integers, near: Floats, far: Floats) -> LogRatio | None:
        """Given the sums before it each round is noise of known law."""
        sides = [self._records(cells, side) for side in (near, far)]

        def ratio(outputs: Outputs) -> Floats:
            result = np.zeros(len(outputs))
            for noisy, point in self._rounds(outputs):
                close, away = (self.sums.at(records, point).astype(np.float64) for records in sides)
                result += np.sum((noisy - (close + away) / 2) * (close - away), axis=1)
            return np.round(result / float(self.variance), 9)

        return ratio

    def rounds_of(self, outputs: Outputs, cells: Integers, exact: Floats) -> list[Round]:
        records = self._records(cells, exact)
        return [
            each
            for noisy, point in self._rounds(outputs)
            for each in self.once.rounds_of(
                noisy, np.arange(self.width), self.sums.at(records, point).astype(np.float64)
            )
        ]

    @property
    def one_by_one(self) -> list[GaussianEvent]:
        return [self.once.event] * self.rounds

    def moved_by(self, cells: Integers, near: Integers, far: Integers) -> float:
        """The most at the first point, and at some to which noise alone leads."""
        sides = [self._records(cells, side) for side in (near, far)]
        noise = np.rint(np.random.default_rng(0).normal(0, self.stddev, (TRIED, self.size)))
        found, points = [Fraction(0)], [point for _, point in self._rounds(noise)]
        for point in (points[0], points[-1]):
            close, away = (self.sums.at(records, point) for records in sides)
            found += [Fraction(sum(int(m) ** 2 for m in row)) for row in (close - away).tolist()]
        return math.sqrt(max(found) * self.rounds / self.l2_sensitivity_squared)

    def distance(self, near: Floats, far: Floats) -> float:
        return float(np.abs(near - far).max())

    def output_width(self, watched: int) -> int:
        return self.size

    def _records(self, cells: Integers, counts: Integers | Floats) -> Any:
        kept = np.flatnonzero(counts)
        return self.sums.records_of(Tally(self.domain, cells[kept], counts[kept].astype(np.int64)))

    def _rounds(self, outputs: Outputs) -> Iterator[tuple[Integers, Any]]:
        """Of outputs (n, size) the noisy sums (n, width) of each round, and where they were taken."""
        history = outputs.astype(np.int64).reshape(len(outputs), self.rounds, self.width)
        point = self.sums.first_point(len(outputs))
        for noisy in np.moveaxis(history, 1, 0):
            yield noisy, point
            point = self.sums.next_point(point, noisy)
