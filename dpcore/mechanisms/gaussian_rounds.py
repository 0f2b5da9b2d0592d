"""Gaussian noise on a sequence of sums, where each sum may depend on the earlier noisy sums.

Claim.  Input: the tally of ``domain``.  Neighbours: any relation under which the sum of round i moves by
at most S_i in the squared L2 norm, whatever the noisy sums before it are.  Output: the sums of all
rounds, each plus discrete Gaussian noise of variance V.  With S the sum of all S_i, it costs as much as
a single draw of that noise on a vector of squared sensitivity S: S/(2 V)-zCDP, and (alpha, beta, 0)-DP
wherever either proof of ``gaussian`` gives this for that draw, with S coordinates that may differ.

Preconditions.  The terms of a round depend only on the records and on the earlier noisy sums; one unit
changes their sum by at most S_i, rounding included, whatever the other records are (``Sums``).  Each
round crosses the privacy line by itself, at the fraction S_i/S of the rho; the price of the single draw
is covered by the share (the privacy line checks it).

Proof.  Given the earlier noisy sums, a round is noise on a vector of squared sensitivity S_i: the
single draw of ``rounds`` with rounds of equal variance.

Ranges.  Those of ``gaussian``.

Source.  Bun & Steinke 2016; Dong, Roth & Su 2022; Bassily, Smith & Thakurta 2014 for descent by noisy
gradients, here of all records in each round.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from dpcore.arrays import Integers
from dpcore.domain.tally import Tally
from dpcore.line.statistic import Statistic
from dpcore.mechanisms.gaussian import DiscreteGaussian, GaussianEvent
from dpcore.mechanisms.rounds import AdaptiveRounds

TRIED = 4
"""How many paths of pure noise an audit uses to compare the sums of two tables."""


@dataclass(frozen=True)
class GaussianRoundsEvent(GaussianEvent):
    """Noise on sums of several rounds; ``l2_sensitivity_squared``: of all rounds together."""

    kind = "gaussian-rounds"


class Sums(Protocol):
    """The terms that each round sums.  Their rounding counts towards the sensitivity."""

    def records_of(self, tally: Tally) -> Any:
        """The records' contribution to every round: private."""
        ...

    def first_point(self, times: int) -> Any:
        """The point of the first sums, the same for each of ``times`` repetitions: public."""
        ...

    def next_point(self, point: Any, noisy: Integers) -> Any:
        """The point of the next round, given the current point and its noisy sums (n, width): public."""
        ...

    def at(self, records: Any, point: Any) -> Integers:
        """The exact sums (n, width) at n points: private."""
        ...


@dataclass(frozen=True)
class GaussianRounds(AdaptiveRounds, DiscreteGaussian):
    """A sequence of sums over the tally of ``domain``, each with noise: (alpha, beta)-DP together.

    ``size``: the number of outputs of all rounds; ``l2_sensitivity_squared``: of all rounds together;
    ``rounds``: for each round, how many numbers it has and its squared sensitivity.
    """

    rounds: tuple[tuple[int, Fraction], ...]
    sums: Sums

    cell_by_cell = False
    additive = False

    @property
    def event(self) -> GaussianRoundsEvent:
        return GaussianRoundsEvent(self.l2_sensitivity_squared, self.variance)

    @cached_property
    def laws(self) -> list[DiscreteGaussian]:
        return [DiscreteGaussian(*each, self.variance) for each in self.rounds]

    @property
    def widths(self) -> list[int]:
        return [width for width, _ in self.rounds]

    def records(self, statistic: Statistic) -> Any:
        return self.sums.records_of(super().records(statistic))

    def first_point(self, times: int) -> Any:
        return self.sums.first_point(times)

    def next_point(self, number: int, point: Any, noisy: Integers) -> Any:
        return self.sums.next_point(point, noisy)

    def exact(self, number: int, records: Any, point: Any) -> Integers:
        return self.sums.at(records, point)

    def moved_by(self, near: Statistic, far: Statistic) -> float:
        """The change of the first and last rounds between neighbours, along some paths of pure noise."""
        sides = [self.records(side) for side in (near, far)]
        # Seeded, so that an audit can be repeated; none of this is published.
        noise = np.rint(np.random.default_rng(0).normal(0, self.stddev, (TRIED, self.size)))
        drawn, point = self.by_round(noise.astype(np.int64)), self.first_point(TRIED)
        found, last = [Fraction(0)], len(self.rounds) - 1
        for number, (_, squared) in enumerate(self.rounds):
            near_by = self.rounds[max(number - 1, 0) : number + 2]
            # Rounds inside a run of equal rounds would only cost time.
            if number in (0, last) or len({*near_by}) > 1:
                close, away = (self.exact(number, records, point) for records in sides)
                moved = (sum(int(m) ** 2 for m in row) for row in (close - away).tolist())
                found += [Fraction(each) / squared for each in moved]
            if number < last:
                point = self.next_point(number, point, drawn[number])
        return math.sqrt(max(found))
