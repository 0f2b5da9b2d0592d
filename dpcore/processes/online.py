"""A function answered one point at a time, while the survey is still at hand.

A released function (``dpcore.releases.function``) answers later questions for nothing, but only as
finely as its grid.  ``OnlineFunction`` answers f_D(x) + s G(x) at any points, chosen one after the
other and in the light of the answers: G is one path of a Gaussian process, drawn where it is asked.

**Privacy.**  The price is that of the whole path, paid once and before the first answer.  Every
answer is one more whitened coordinate (``dpcore.processes.order``), rounded for each record to a
whole number, summed exactly and perturbed across the privacy line by discrete Gaussian noise of one
variance v.  Let d_i be how far neighbours are apart in the i-th coordinate.  Whatever the points are,
and however they were chosen,

    sum of d_i^2 <= (2^bits (distance + 2 slack))^2 = D^2,

because the coordinates are those of bumps whitened on the points asked so far.  Given the answers
before it, the i-th is d_i^2/(2v)-zCDP; the sum of these is bounded by D^2/(2v) along every course of
questions and answers, and so all together are D^2/(2v)-zCDP (Feldman & Zrnic 2021, theorem 3.1: the
losses are bounded in sum, so they may be chosen adaptively).

**State.**  The same point gets its stored answer.  ``to_bytes`` holds the points and their noisy
coordinates, nothing else, and all of it is public; write it down *before* an answer is shown, because
an answer that is forgotten and drawn again is a second answer.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from dpcore.budget import Budget
from dpcore.domain import Domain, Tally
from dpcore.errors import PrivacyLineError
from dpcore.mechanisms import DiscreteGaussian
from dpcore.privacy_line import perturb
from dpcore.processes.kernels import KERNELS, ExponentialKernel, Kernel, KernelName, distance
from dpcore.processes.order import PLACES, Dense, Markov, Order, Place
from dpcore.releases.function import require_lines
from dpcore.sampling.source import RandomSource
from dpcore.statistic import Exact

LARGEST_TABLE = 2**24
"""Of whitened coordinates kept in memory: cells of the domain times the most answers."""

BITS = 22


@dataclass(frozen=True)
class Questions:
    """Public facts: like those of a release, and the most answers that will ever be given.

    Neighbours are those of a public number of records, one of which is replaced.
    """

    domain: Domain
    rows: int
    share: Budget
    kernel: KernelName
    bandwidths: tuple[float, ...]
    most_answers: int

    def __post_init__(self) -> None:
        require_lines(self.domain.axes, self.bandwidths)
        if self.most_answers < 1:
            raise ValueError(f"most_answers must be positive, not {self.most_answers}")
        if self.domain.size * (1 if self.markov else self.most_answers) > LARGEST_TABLE:
            raise ValueError("columns: too many grid cells for so many answers")
        if self.rows.bit_length() + BITS > 60:
            raise ValueError("rows: too many for whole numbers of 64 bits")

    @property
    def markov(self) -> bool:
        return self.kernel == "exponential" and len(self.bandwidths) == 1

    @cached_property
    def kernels(self) -> tuple[Kernel, ...]:
        return tuple(KERNELS[self.kernel](h) for h in self.bandwidths)

    def order(self) -> Order:
        """No points asked yet."""
        codes = self.domain.unpack(np.arange(self.domain.size))
        positions = (codes + 0.5) / np.array(self.domain.shape)
        first = self.kernels[0]
        if self.markov and isinstance(first, ExponentialKernel):
            return Markov(first, positions[:, 0])
        return Dense(self.kernels, positions, self.most_answers)

    @cached_property
    def mechanism(self) -> DiscreteGaussian:
        """Of one answer; it states the price of all of them."""
        rounding = math.ldexp(math.sqrt(self.most_answers), -BITS - 1)
        slack = rounding + self.order().slack(self.most_answers)
        steps = Fraction((distance(self.kernels) + 2 * slack) * (1 + 1e-12)) * 2**BITS
        return DiscreteGaussian.within(self.share, 1, steps * steps)

    @property
    def unit(self) -> float:
        """A whitened step as a density, relative to a uniform one."""
        height = math.prod(kernel.height for kernel in self.kernels)
        return math.ldexp(height / self.rows, -BITS)

    @property
    def stddev(self) -> float:
        """Of the noise in every answer, relative to a uniform density."""
        return self.mechanism.stddev * self.unit


class OnlineFunction:
    """Answers so far.  One object at a time may answer for a survey and a share of its budget."""

    def __init__(self, questions: Questions) -> None:
        self.questions = questions
        self.reproducible = False
        self._order = questions.order()
        self._steps: dict[Place, int] = {}
        self._answers: dict[Place, float] = {}

    def answer(self, point: tuple[float, ...], tally: Tally, source: RandomSource) -> float:
        """The noisy density at a scaled point, relative to a uniform one; ``tally`` is private.

        Raises ``ValueError`` for a point outside the unit box and ``PrivacyLineError`` where all
        answers have been given.
        """
        place = self._place(point)
        if place not in self._answers:
            if len(self._answers) >= self.questions.most_answers:
                raise PrivacyLineError("all answers that the budget was priced for have been given")
            whole = np.rint(np.ldexp(self._order.residual(place), BITS)).astype(np.int64)
            exact = Exact(np.array([whole[tally.cells] @ tally.counts]))
            share, mechanism = self.questions.share, self.questions.mechanism
            noisy = perturb(exact, mechanism, share, source)
            self.reproducible |= noisy.reproducible
            self._record(place, int(noisy.values[0]))
        return self._answers[place]

    def _place(self, point: tuple[float, ...]) -> Place:
        if len(point) != len(self.questions.bandwidths) or not all(0 <= x <= 1 for x in point):
            raise ValueError("a point has one number between 0 and 1 for each column")
        return tuple(round(x * PLACES) for x in point)

    def _record(self, place: Place, steps: int) -> None:
        self._steps[place] = steps
        self._answers[place] = self._order.value(place, steps * self.questions.unit)

    def to_bytes(self) -> bytes:
        """Points in the order asked, and what was drawn there: public."""
        state = {
            "dprelease-online": 1,
            "reproducible": self.reproducible,
            "answers": [[*place, steps] for place, steps in self._steps.items()],
        }
        return json.dumps(state).encode()

    @classmethod
    def from_bytes(cls, questions: Questions, data: bytes) -> OnlineFunction:
        """Go on where ``to_bytes`` left off, with the same answers to the same questions."""
        state, function = json.loads(data), cls(questions)
        if state.get("dprelease-online") != 1:
            raise ValueError("not the stored answers of an online function")
        function.reproducible = bool(state["reproducible"])
        for *place, steps in state["answers"]:
            function._order.residual(tuple(place))
            function._record(tuple(place), steps)
        return function
