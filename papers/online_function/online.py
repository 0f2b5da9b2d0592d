"""A noisy function answered one point at a time, while the survey is still available.

A released function (``releases.densities.function``) answers later questions at no further cost, but
only as finely as its grid.  ``OnlineFunction`` answers f_D(x) + s G(x) at any points, which may be
chosen one after the other and depend on earlier answers.  G is one path of a Gaussian process, drawn
only at the points that are asked.

**Privacy.**  The price is that of the whole path, paid once, before the first answer.  Every answer is
one more whitened coordinate (``order``), rounded for each record to a whole number,
summed exactly and perturbed across the privacy line by discrete Gaussian noise of one variance v.
Let d_i be the distance of neighbours in the i-th coordinate.  For any points, chosen in any way,

    sum of d_i^2 <= (2^bits (distance + 2 slack))^2 = D^2,

because the coordinates are those of bumps whitened on the points asked so far.  So along every course
of questions and answers the squares add up to D^2 at most; where they add up to less, let one more
question use the rest.  All answers together then cost what one vector of sensitivity D costs with noise
of variance v, by each of the two proofs that ``mechanisms.gaussian`` has for it:

    concentrated    given the answers before it, the i-th is d_i^2/(2v)-zCDP, and the sum along every
                    course is at most D^2/(2v): a filter whose cap is fixed in advance (Feldman & Zrnic
                    2021, theorem 3.1; Whitehouse, Ramdas, Rogers & Wu 2023)
    analytic        with continuous noise Z_i of variance s^2, the privacy loss is the sum of
                    d_i Z_i/s^2 + d_i^2/(2 s^2).  d_i is a function of earlier answers, and given these
                    E exp(i t d_k Z_k) = exp(-t^2 s^2 d_k^2/2), so from the last question to the first
                    E exp(i t sum d_i Z_i) = exp(-t^2 s^2 D^2/2): the loss has the normal law
                    N(D^2/(2 s^2), D^2/s^2) of one draw, and so its exact privacy profile.  Discrete
                    noise is rounded continuous noise but for a factor in each answer in which
                    neighbours differ (``accounting.analytic``); they differ by whole numbers, and so
                    in at most D^2 answers

**State.**  A point that is asked again gets its stored answer.  ``to_bytes`` contains the points and
their noisy coordinates, nothing else; all of it is public.  Store it *before* showing an answer: an
answer that is lost and drawn again is a second answer, which was not paid for.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from dpcore.accounting.budget import Budget
from dpcore.domain.domain import Domain
from dpcore.domain.tally import Tally
from dpcore.errors import PrivacyLineError
from dpcore.line.privacy_line import perturb
from dpcore.line.statistic import Exact
from dpcore.mechanisms import DiscreteGaussian
from dpcore.releases.densities.banded import require_lines
from dpcore.releases.densities.kernels import (
    KERNELS,
    ExponentialKernel,
    Kernel,
    KernelName,
    distance,
)
from dpcore.sampling.source import RandomSource
from papers.online_function.order import PLACES, AskedPoints, Dense, Markov, Place

LARGEST_TABLE = 2**24
"""The most whitened coordinates in memory: cells of the domain times the most answers."""

BITS = 22


@dataclass(frozen=True)
class Questions:
    """Public facts, like those of a release, and the most answers that will ever be given.

    In neighbouring tables one record is replaced; the number of records is public.
    """

    domain: Domain
    rows: int
    share: Budget
    kernel: KernelName
    bandwidths: tuple[float, ...]
    most_answers: int

    def __post_init__(self) -> None:
        require_lines(self.domain.axes, self.bandwidths)
        if any(axis.nullable for axis in self.domain.axes):
            raise ValueError("columns: must be without nulls")
        if self.most_answers < 1:
            raise ValueError(f"most_answers must be positive, not {self.most_answers}")
        if self.domain.size * (1 if self.markov else self.most_answers) > LARGEST_TABLE:
            raise ValueError(
                f"most_answers: too many for a grid of {self.domain.size} cells; use a coarser grid"
            )
        if self.rows.bit_length() + BITS > 60:
            raise ValueError("rows: too many for whole numbers of 64 bits")

    @staticmethod
    def place(point: tuple[float, ...]) -> Place:
        """Where a scaled point lies."""
        return tuple(round(x * PLACES) for x in point)

    @property
    def markov(self) -> bool:
        return self.kernel == "exponential" and len(self.bandwidths) == 1

    @cached_property
    def kernels(self) -> tuple[Kernel, ...]:
        return tuple(KERNELS[self.kernel](h) for h in self.bandwidths)

    def order(self) -> AskedPoints:
        """A new order, in which no point has been asked."""
        codes = self.domain.unpack(np.arange(self.domain.size))
        positions = (codes + 0.5) / np.array(self.domain.shape)
        first = self.kernels[0]
        if self.markov and isinstance(first, ExponentialKernel):
            return Markov(first, positions[:, 0])
        return Dense(self.kernels, positions, self.most_answers)

    @cached_property
    def mechanism(self) -> DiscreteGaussian:
        """The noise of one answer; its event is the price of all answers."""
        rounding = math.ldexp(math.sqrt(self.most_answers), -BITS - 1)
        slack = rounding + self.order().slack(self.most_answers)
        steps = Fraction((distance(self.kernels) + 2 * slack) * (1 + 1e-12)) * 2**BITS
        return DiscreteGaussian.within(self.share, 1, steps * steps)

    @property
    def unit(self) -> float:
        """One whitened step in units of a uniform density."""
        height = math.prod(kernel.height for kernel in self.kernels)
        return math.ldexp(height / self.rows, -BITS)

    @property
    def stddev(self) -> float:
        """The noise's standard deviation in every answer, in units of a uniform density."""
        return self.mechanism.stddev * self.unit


class OnlineFunction:
    """The answers so far.  At most one object may answer for a survey and a share of its budget."""

    def __init__(self, questions: Questions) -> None:
        self.questions = questions
        self.reproducible = False
        self._order = questions.order()
        self._steps: dict[Place, int] = {}
        self._answers: dict[Place, float] = {}

    def answer(self, point: tuple[float, ...], tally: Tally, source: RandomSource) -> float:
        """The noisy density at a scaled point, in units of a uniform one; ``tally`` is private.

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
        return self.questions.place(point)

    def _record(self, place: Place, steps: int) -> None:
        self._steps[place] = steps
        self._answers[place] = self._order.value(place, steps * self.questions.unit)

    def to_bytes(self) -> bytes:
        """The points in the order in which they were asked, with the draws there: public."""
        state = {
            "dprelease-online": 1,
            "reproducible": self.reproducible,
            "answers": [[*place, steps] for place, steps in self._steps.items()],
        }
        return json.dumps(state).encode()

    @classmethod
    def from_bytes(cls, questions: Questions, data: bytes) -> OnlineFunction:
        """The state that ``to_bytes`` stored: the same questions get the same answers."""
        state, function = json.loads(data), cls(questions)
        if state.get("dprelease-online") != 1:
            raise ValueError("not the stored answers of an online function")
        function.reproducible = bool(state["reproducible"])
        for *place, steps in state["answers"]:
            function._order.residual(tuple(place))
            function._record(tuple(place), steps)
        return function
