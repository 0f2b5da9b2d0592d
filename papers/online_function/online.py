"""The price of a noisy function that is answered one point at a time (Hall 2012, section 3.2.5).

A released function (``releases.densities.function``) answers later questions at no further cost, but
only at the resolution of its grid.  Here the answers are f_D(x) + s G(x) at any points, and each may
depend on earlier answers.  G is one path of a Gaussian process, drawn only at the points that are asked.

**Privacy.** The price is that of the whole path, and is paid once, before the first answer.  Every
answer is one more whitened coordinate (``order``), rounded for each record to a whole number, summed
exactly and perturbed across the privacy line by discrete Gaussian noise of one variance v.  All answers
must use one table: the squares below are of one record and its replacement.  Let d_i be the distance of
neighbours in the i-th coordinate.  For any points, chosen in any way,

    sum of d_i^2 <= (2^bits (distance + 2 slack))^2 = D^2,

because the coordinates are those of bumps whitened on the points asked so far.  So for every sequence of
questions and answers the squares add up to at most D^2; where they add up to less, let one more question
use the rest.  All answers together then cost what one vector of sensitivity D costs with noise of
variance v, by each of the two proofs that ``mechanisms.gaussian`` has for it:

    concentrated    given the answers before it, the i-th is d_i^2/(2v)-zCDP, and the sum along every
                    course is at most D^2/(2v): a filter whose cap is fixed in advance (Feldman & Zrnic
                    2021, theorem 3.1; Whitehouse, Ramdas, Rogers & Wu 2023)
    analytic        with continuous noise Z_i of variance s^2, the privacy loss is the sum of
                    d_i Z_i/s^2 + d_i^2/(2 s^2).  d_i is a function of earlier answers, and given these
                    E exp(i t d_k Z_k) = exp(-t^2 s^2 d_k^2/2), so from the last question to the first
                    E exp(i t sum d_i Z_i) = exp(-t^2 s^2 D^2/2): the loss has the normal law
                    N(D^2/(2 s^2), D^2/s^2) of one draw, and so its exact privacy profile.  Discrete
                    noise is rounded continuous noise, up to a factor for each answer in which neighbours
                    differ (``accounting.analytic``); they differ by whole numbers, and so in at most D^2
                    answers
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from dpcore.accounting.budget import Budget
from dpcore.domain.domain import Domain
from dpcore.mechanisms import DiscreteGaussian
from dpcore.releases.densities.banded import require_lines
from dpcore.releases.densities.kernels import (
    KERNELS,
    ExponentialKernel,
    Kernel,
    KernelName,
    distance,
)
from papers.online_function.order import PLACES, AskedPoints, Dense, Markov, Place

LARGEST_TABLE = 2**24
"""The most whitened coordinates in memory: cells of the domain times the largest number of answers."""

BITS = 22


@dataclass(frozen=True)
class OnlineFunction:
    """The public facts that a release has, and the largest number of answers that it ever gives.

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
        """The position of a scaled point, in whole multiples of 1/PLACES."""
        return tuple(round(x * PLACES) for x in point)

    @property
    def markov(self) -> bool:
        return self.kernel == "exponential" and len(self.bandwidths) == 1

    @cached_property
    def kernels(self) -> tuple[Kernel, ...]:
        return tuple(KERNELS[self.kernel](h) for h in self.bandwidths)

    def order(self) -> AskedPoints:
        """A new order of points, in which none has been asked yet."""
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
        """The size of one whitened step, in units of a uniform density."""
        height = math.prod(kernel.height for kernel in self.kernels)
        return math.ldexp(height / self.rows, -BITS)

    @property
    def stddev(self) -> float:
        """The noise's standard deviation in every answer, in units of a uniform density."""
        return self.mechanism.stddev * self.unit
