"""A sequence of draws: the earlier noisy draws determine what the next one measures.

Each round adds noise or makes choices (``exponential``).  Its law is public and does not depend on the
rounds before it: ``AdaptiveRounds.laws``.  Each round crosses the privacy line separately, at its own
price.  Together they cost either of two prices:

    the sum            of all alphas, or of all rhos: for rounds of any law
    a single draw      of discrete Gaussian noise: for Gaussian rounds i of squared sensitivity S_i and
                       variance v_i.  With v the smallest variance and S = v (sum of S_i/v_i) it is the
                       price of one draw at S and v by either proof of ``gaussian``, with sum of S_i
                       coordinates that may differ.  A choice of log-ratios e adds v e^2 pi/8 to S

Proof.  *Sum.*  A round depends on the ones before it only through their noisy results, which are public:
adaptive composition adds alphas, and rhos (Bun & Steinke 2016, Lemma 2.3).
*Single draw.*  For the proof by rounding (``accounting.analytic``) all rounds set aside the same
fraction of their variance, r of v.  Continuous rounds with the remaining variance are mu-GDP, where
mu^2 is the squared sensitivity of the noise rounds over v - r, as squares of mu add over adaptive
composition (Dong, Roth & Su 2022, Theorem 3.2).  A choice adds mu^2 = e^2 pi/8 (lemma below), and so
less than e^2 (pi/8) v/(v - r).  Rounding changes the joint law by one factor for each coordinate, of
which at most the sum of S_i differ between neighbours, as exact numbers are whole; each factor is no
farther from 1 than at r, the smallest variance set aside.  For the proof by zCDP, S/(2 v) is at least
the sum of all rhos, as pi/16 > 1/8.

Lemma.  A choice whose log-ratios all lie in an interval of length e is mu-GDP for mu = e sqrt(pi/8).
For every test, let p and q be the chances that it rejects under either table.  Then p/q <= exp(t) and
(1 - p)/(1 - q) >= exp(t - e) for one t, so logit p - logit q <= e.  Now z = F^-1(p), F the normal
distribution function and f its density, has dz/dlogit p = F(1 - F)/f(z), and F(1 - F) <= exp(-z^2/2)/4:
2 F(|z|) - 1 is the chance that a normal number lies within |z|; its square is the chance of two numbers
in a square, at least the chance of the disc inside it, 1 - exp(-z^2/2).  So dz/dlogit p <= sqrt(2 pi)/4
= sqrt(pi/8), and F^-1(p) - F^-1(q) <= e sqrt(pi/8) for every test, which is mu-GDP.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal

import numpy as np

from dpcore.accounting.analytic import Inherited
from dpcore.accounting.budget import Budget
from dpcore.accounting.gaussian import covers_gaussian, gaussian_variance
from dpcore.arrays import Floats, Integers
from dpcore.domain.domain import Domain
from dpcore.domain.tally import Tally
from dpcore.line.mechanism import AS_STATED, Event, Mechanism, Outputs, Round
from dpcore.line.privacy_line import perturb
from dpcore.line.statistic import ABSENT, Exact, Noisy, Statistic
from dpcore.mechanisms.exponential import ExponentialEvent, exponential_rho
from dpcore.mechanisms.gaussian import DiscreteGaussian
from dpcore.mechanisms.laplace import DiscreteLaplace
from dpcore.sampling.source import RandomSource

Noise = DiscreteGaussian | DiscreteLaplace
Kind = Literal["discrete-laplace", "discrete-gaussian"]

GAUSSIAN_PRICE = Fraction(3927, 10000)
"""An upper bound of pi/8: a choice costs as much as Gaussian noise with mu^2 = this times alpha^2."""


@dataclass(frozen=True)
class RoundsEvent(Event):
    """Noise in one or two rounds, and choices between or before them.

    ``noise``: discrete-laplace, with L1 sensitivities and scales, or discrete-gaussian, with squared L2
    sensitivities and variances.  Fields that begin with ``again_`` describe the last round, after any
    choice; if there is only one round, the first sensitivity is 0.  ``selections``: the number of
    choices, P(i) proportional to exp(-score_i/score_scale), by exact scores, each of which changes by at
    most ``score_sensitivity`` between neighbours.
    """

    kind = "rounds"

    noise: str
    sensitivity: Fraction
    scale: Fraction
    again_sensitivity: Fraction
    again_scale: Fraction
    score_sensitivity: Fraction
    score_scale: Fraction
    selections: int

    @classmethod
    def of(cls, first: Noise | None, again: Noise, choice: ExponentialEvent | None) -> RoundsEvent:
        """The event that describes these rounds."""
        before = _law(first) if first else (Fraction(0), Fraction(1))
        scores = choice or ExponentialEvent(Fraction(0), Fraction(1), 0)
        law = scores.sensitivity, scores.scale
        return cls(again.event.kind, *before, *_law(again), *law, scores.selections)

    @property
    def choices(self) -> tuple[Fraction, int]:
        """The alpha of all choices that use exact scores, and their number (1 if there are none)."""
        return 2 * self.score_sensitivity * self.selections / self.score_scale, self.selections or 1

    @property
    def pure_alpha(self) -> Fraction | None:
        return self._spent + self.choices[0] if self.noise == "discrete-laplace" else None

    @property
    def concentrated(self) -> tuple[Fraction, Fraction] | None:
        if not self._meant:
            return None
        chosen = exponential_rho(*self.choices)
        if self.noise == "discrete-gaussian":
            return self._spent / 2 + chosen, Fraction(0)
        rounds = self.sensitivity / self.scale, self.again_sensitivity / self.again_scale
        return (rounds[0] ** 2 + rounds[1] ** 2) / 2 + chosen, Fraction(0)

    def covered_by(self, share: Budget) -> bool:
        if not self._meant or share.alpha <= 0:
            return False
        alpha, number = self.choices
        if self.noise == "discrete-gaussian":
            first, again = self.sensitivity, self.again_sensitivity
            # Without a first round its scale is only a placeholder.
            least = min(self.scale, self.again_scale) if first else self.again_scale
            single = (self._spent + GAUSSIAN_PRICE * alpha**2 / number) * least
            return covers_gaussian(single, least, share.alpha, share.beta, Inherited(first + again))
        return self.noise == "discrete-laplace" and self._spent + alpha <= share.alpha

    @property
    def _spent(self) -> Fraction:
        return self.sensitivity / self.scale + self.again_sensitivity / self.again_scale

    @property
    def _meant(self) -> bool:
        """Whether these fields describe possible rounds."""
        scales = min(self.scale, self.again_scale, self.again_sensitivity, self.score_scale)
        others = self.sensitivity, self.score_sensitivity, self.selections
        scored = (self.score_sensitivity > 0) == (self.selections > 0)
        return scales > 0 and all(each >= 0 for each in others) and scored


CHOSEN = 3e-6
"""``Mechanism.audit_number`` where noisy numbers choose what is measured next."""


@dataclass(frozen=True)
class AdaptiveRounds(Mechanism):
    """A sequence of draws from the tally of ``domain``.

    A *point* describes what the next round measures, in each of several repetitions.  It is public,
    because it follows from noisy numbers.  A result concatenates the numbers of all rounds, with
    ``ABSENT`` where a round measured nothing.
    """

    domain: Domain

    sparse = True
    comparable = True

    @property
    def words(self) -> tuple[int, ...]:
        return self.domain.words

    @property
    @abstractmethod
    def laws(self) -> Sequence[Mechanism]:
        """The mechanism of each round, which does not depend on earlier draws."""

    @property
    @abstractmethod
    def widths(self) -> Sequence[int]:
        """How many numbers each round contributes to a result."""

    def records(self, statistic: Statistic) -> Any:
        """The records' contribution to every round: private."""
        # The made-up tables of an audit may list empty cells; a tally has none.
        values, cells = statistic.at(np.flatnonzero(statistic.values))
        assert cells is not None  # the privacy line checks the layout
        return Tally(self.domain, cells, values)

    def first_point(self, times: int) -> Any:
        """The point of the first round, in each of ``times`` repetitions: public."""
        return times

    @abstractmethod
    def next_point(self, number: int, point: Any, noisy: Integers) -> Any:
        """The point after round ``number``, given its noisy numbers (times, width): public."""

    @abstractmethod
    def exact(self, number: int, records: Any, point: Any) -> Integers:
        """The exact numbers (times, width) of round ``number``, ``ABSENT`` if not measured: private."""

    @property
    def numbers(self) -> int:
        """The length of the result."""
        return sum(self.widths)

    def draw(self, statistic: Statistic, source: RandomSource) -> Noisy:
        return self.repeat(statistic, 1, source)

    def repeat(self, statistic: Statistic, times: int, source: RandomSource) -> Noisy:
        records, drawn = self.records(statistic), list[Integers]()
        point = self.first_point(times)
        for number, law in enumerate(self.laws):
            if number:
                point = self.next_point(number - 1, point, drawn[-1])
            drawn.append(_drawn(law, self.exact(number, records, point), source))
        result = np.concatenate(drawn, axis=1)
        return Noisy(result.ravel(), reproducible=source.reproducible)

    def by_round(self, outputs: Outputs) -> list[Outputs]:
        """Split outputs (n, d) into the numbers (n, width) of each round."""
        return np.split(outputs, np.cumsum(self.widths)[:-1], axis=1)

    def rounds_of(
        self, outputs: Outputs, exact: Statistic, factors: Floats = AS_STATED
    ) -> list[Round]:
        """The rounds of outputs; each output contains earlier rounds, so the law of each round is
        known."""
        records, found = self.records(exact), list[Round]()
        parts = self.by_round(outputs)
        point = self.first_point(len(outputs))
        for number, (law, noisy) in enumerate(zip(self.laws, parts, strict=True)):
            if number:
                point = self.next_point(number - 1, point, parts[number - 1].astype(np.int64))
            counts = self.exact(number, records, point)
            centre = Statistic(np.where(counts == ABSENT, np.nan, counts))
            found += law.rounds_of(noisy, centre, factors)
        return found

    @property
    def one_by_one(self) -> list[Event]:
        return [each for law in self.laws for each in law.one_by_one]

    def distance(self, near: Statistic, far: Statistic) -> float:
        # The change of the tables, because computing the rounds takes longer.
        return float(np.abs(near.values - far.values).max())

    def output_width(self, watched: int) -> int:
        return self.numbers


def _drawn(law: Mechanism, exact: Integers, source: RandomSource) -> Integers:
    """Draw a round (times, width) for exact numbers (times, k), through the privacy line."""
    # The share is in rho, because a Gaussian round without its own beta has no alpha.
    price, seen = law.event.concentrated, exact != ABSENT
    assert price is not None
    drawing = replace(law, size=int(seen.sum()))
    drawn = perturb(Exact(exact[seen]), drawing, Budget(rho=price[0]), source).values
    if seen.all():
        return drawn.reshape(len(exact), -1)
    result = np.full(exact.shape, ABSENT)
    result[seen] = drawn
    return result


def two_rounds(
    share: Budget,
    noise: Kind,
    parts: tuple[Fraction, Fraction],
    first: tuple[int, Fraction],
    again: tuple[int, Fraction],
) -> tuple[Noise, Noise]:
    """The noise of two rounds that together spend their parts of the share.

    ``first``, ``again``: the number of cells and the sensitivity of each round, in the L1 norm, or
    squared in the L2 norm; ``parts``: the fraction of rho (of the precision), or of alpha, that each
    round spends.
    """
    if noise == "discrete-laplace" or share.rho:
        kind = DiscreteGaussian if noise == "discrete-gaussian" else DiscreteLaplace
        return kind.within(share * parts[0], *first), kind.within(share * parts[1], *again)
    # With variances proportional to these numbers, each round spends its part.  Priced as a single draw
    # of the smaller variance, both have the smaller number as their joint squared sensitivity.
    apart = first[1] / parts[0], again[1] / parts[1]
    among = Inherited(first[1] + again[1])
    unit = gaussian_variance(min(apart), share.alpha, share.beta, among) / min(apart)
    return DiscreteGaussian(*first, apart[0] * unit), DiscreteGaussian(*again, apart[1] * unit)


def _law(noise: Noise) -> tuple[Fraction, Fraction]:
    """The sensitivity and the scale of the noise; for Gaussian noise both are squared."""
    if isinstance(noise, DiscreteGaussian):
        return noise.l2_sensitivity_squared, noise.variance
    return noise.l1_sensitivity, noise.scale
