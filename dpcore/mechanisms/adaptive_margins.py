"""Count tables of pairs; once more those that look most dependent; and triples that pairs do not imply.

Claim.  Input: the counts of several two-way tables, and of ``t`` candidates of three columns, whose
pairs are all among them.  Neighbours: any relation under which one table moves by at most D in the L1
norm, or D^2 in the squared L2 norm.  Output:

    round 1   all k pairs, with noise ``first``                        Y1
    choice    the m = ``chosen`` pairs that look farthest from independence in Y1 alone
              s ``selections`` of the t triples, one after the other, each by the exponential mechanism
              among those that are left, on scores that Y1 and the counts determine
    round 2   the chosen tables, with fresh noise ``again``            Y2

Laplace noise: (a + b + c, 0, 0)-DP with a = k D/scale, b = (m + s) D/again_scale and c = s e, where
e = 2 D/score_scale, and (a^2 + b^2)/2 + s e^2/8-zCDP.
Gaussian noise: rho-zCDP with rho = k D^2/(2 variance) + (m + s) D^2/(2 again_variance) + s e^2/8, and
(alpha, beta, 0)-DP wherever a single draw of discrete Gaussian noise at the variance v, the smaller of
both, and the squared sensitivity S = k D^2 v/variance + (m + s) D^2 v/again_variance + s e^2 v pi/8 is,
by either proof of ``gaussian`` with (k + m + s) D^2 coordinates that may differ.  (In e, D is the L1
norm.)  Without candidates s is 0.

Preconditions.  Those of the noise of either round, and of the exponential mechanism; the alphas, or the
price of the single draw, are covered by the share (the privacy line checks it).

Proof.  *Scores.*  Given Y1 the counts that pairs imply are fixed whole numbers, and so is what the score
adds for expected noise; the L1 distance of a table from them moves by at most D.  So each selection,
given Y1 and those before it, is a choice by the exponential mechanism among candidates that are known:
e-bounded-range, e-DP and e^2/8-zCDP (``exponential``).
*Composition.*  Given Y1 and the choices the second round is noise on a vector of m + s tables, whichever
they are; the choice of pairs is post-processing of Y1.  So the whole is an adaptive composition, whose
rho (Bun & Steinke 2016, Lemma 2.3) or alpha add up.
*The single draw.*  For the proof by rounding (``accounting.analytic``) let both rounds set apart the
same part of their variance, r of v.  Continuous rounds with what is left are mu-GDP, for the squared
sensitivity of noise alone over v - r, as squares of mu add over adaptive composition (Dong, Roth & Su
2022, Theorem 3.2).  A selection adds mu^2 = e^2 pi/8, by the lemma below, and so less than
e^2 (pi/8) v/(v - r).  Rounding changes the joint law by one factor for each coordinate; at most k D^2
and (m + s) D^2 of them differ between neighbours, and each by no more than at r, the smaller part.  For
the proof by zCDP, S/(2 v) is at least the rho above, as pi/16 > 1/8.
*Lemma.*  A choice whose log-ratios all lie in an interval of length e is mu-GDP for mu = e sqrt(pi/8).
For every test, let p and q be the chances that it rejects under either table.  Then p/q <= exp(t) and
(1 - p)/(1 - q) >= exp(t - e) for one t, so logit p - logit q <= e.  Now z = F^-1(p), F the normal
distribution function and f its density, has dz/dlogit p = F(1 - F)/f(z), and F(1 - F) <= exp(-z^2/2)/4:
2 F(|z|) - 1 is the chance that a normal number lies within |z|, its square that of two numbers, which is
at least that of the disc inside their square, 1 - exp(-z^2/2).  So dz/dlogit p <= sqrt(2 pi)/4 =
sqrt(pi/8), and F^-1(p) - F^-1(q) <= e sqrt(pi/8) for every test, which is mu-GDP.

Ranges.  Those of the noise.  The pairs are chosen, and what they imply is computed, in floating point
from noisy numbers alone, so nothing depends on its rounding.  Scores are whole numbers below 2^62.

Source.  Bun & Steinke 2016; Dong, Roth & Su 2022; McKenna, Mullins, Sheldon & Miklau 2022 (AIM) for the
score; METHODS q.

A pair is scored by the squared distance of its noisy counts y from the product of its own margins,
less what noise of variance v hardly ever adds to it, f = (rows - 1)(columns - 1) squares of mean v and
three standard deviations more; times its cells, as a table of many cells has most to gain:

    cells (sum of (y_ij - y_i. y_.j / y..)^2 - v (f + 3 sqrt(2 f)))

A triple is scored, the lower the better, by what the noise of round 2 would add to its table less the
distance of its exact counts from what its pairs imply (``third_order``):

    sqrt(2/pi) again.stddev cells - sum over cells of |count - implied count|

So an interaction of three columns that no pair shows is found too.  The statistic has one value per cell
of all pairs, then of all candidates.  The noisy one has round 1, then round 2 with ``ABSENT`` in cells
that it did not measure, then the numbers of the triples in the order in which they were chosen.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Literal

import numpy as np

from dpcore.accounting.analytic import Inherited
from dpcore.accounting.budget import Budget, root_below
from dpcore.accounting.gaussian import covers_gaussian, gaussian_variance
from dpcore.arrays import Booleans, Floats, Integers
from dpcore.line.mechanism import Event, LogRatio, Mechanism, Outputs, Round
from dpcore.line.statistic import ABSENT, Noisy
from dpcore.mechanisms.exponential import ExponentialEvent, exponential_rho, exponential_scale
from dpcore.mechanisms.gaussian import DiscreteGaussian
from dpcore.mechanisms.laplace import DiscreteLaplace
from dpcore.mechanisms.third_order import freedom, implied_triples, independent, shrunk_pairs
from dpcore.sampling import _validate
from dpcore.sampling.choice import exponential_choices
from dpcore.sampling.discrete_laplace import LARGEST_SCALE
from dpcore.sampling.source import RandomSource

Noise = DiscreteGaussian | DiscreteLaplace
Kind = Literal["discrete-laplace", "discrete-gaussian"]

FIRST_PART = Fraction(4, 5)
"""Of the budget goes to the first round, which all pairs share."""

CHOICE_PART = Fraction(1, 40)
"""Of the budget goes to the choice of triples, if there is one; the rest to the second round."""

CERTAIN = 3
"""Standard deviations of noise that a pair must exceed to look dependent: among tables of many cells
there is always one of which noise makes more than is expected."""

GAUSSIAN_PRICE = Fraction(3927, 10000)
"""At least pi/8: what a choice costs as Gaussian noise does, by the square of its alpha."""


@dataclass(frozen=True)
class TwoRoundsEvent(Event):
    """Noise on count tables, and fresh noise on some that the first noisy ones chose.

    ``noise``: discrete-laplace, with L1 sensitivities and scales, or discrete-gaussian, with squared
    L2 sensitivities and variances; ``again_``: of the second round, for any choice.
    """

    noise: str
    sensitivity: Fraction
    scale: Fraction
    again_sensitivity: Fraction
    again_scale: Fraction

    @property
    def choices(self) -> tuple[Fraction, int]:
        """The alpha of all choices between the rounds that see exact counts, and how many they are."""
        return Fraction(0), 1

    @property
    def pure_alpha(self) -> Fraction | None:
        return self._spent + self.choices[0] if self.noise == "discrete-laplace" else None

    @property
    def concentrated(self) -> tuple[Fraction, Fraction] | None:
        if min(self.sensitivity, self.scale, self.again_sensitivity, self.again_scale) <= 0:
            return None
        chosen = exponential_rho(*self.choices)
        if self.noise == "discrete-gaussian":
            return self._spent / 2 + chosen, Fraction(0)
        rounds = self.sensitivity / self.scale, self.again_sensitivity / self.again_scale
        return (rounds[0] ** 2 + rounds[1] ** 2) / 2 + chosen, Fraction(0)

    def covered_by(self, share: Budget) -> bool:
        if min(self.scale, self.again_scale, share.alpha) <= 0:
            return False
        alpha, number = self.choices
        if self.noise == "discrete-gaussian":
            first, again = self.sensitivity, self.again_sensitivity
            if min(first, again) <= 0:
                return False
            least = min(self.scale, self.again_scale)
            single = (self._spent + GAUSSIAN_PRICE * alpha**2 / number) * least
            return covers_gaussian(single, least, share.alpha, share.beta, Inherited(first + again))
        return self.noise == "discrete-laplace" and self._spent + alpha <= share.alpha

    @property
    def _spent(self) -> Fraction:
        return self.sensitivity / self.scale + self.again_sensitivity / self.again_scale


@dataclass(frozen=True)
class AdaptiveMarginsEvent(TwoRoundsEvent):
    """Two rounds on count tables; the first noisy ones chose which tables are measured again."""

    kind = "adaptive-margins"


@dataclass(frozen=True)
class AdaptiveTriplesEvent(AdaptiveMarginsEvent):
    """The same, between whose rounds ``selections`` triples were chosen, P(i) proportional to
    exp(-score_i/score_scale), one after the other; ``score_sensitivity``: the most by which a neighbour
    changes any score."""

    kind = "adaptive-triples"

    score_sensitivity: Fraction
    score_scale: Fraction
    selections: int

    @property
    def choices(self) -> tuple[Fraction, int]:
        return 2 * self.score_sensitivity * self.selections / self.score_scale, self.selections

    @property
    def concentrated(self) -> tuple[Fraction, Fraction] | None:
        return super().concentrated if self._meant else None

    def covered_by(self, share: Budget) -> bool:
        return self._meant and super().covered_by(share)

    @property
    def _meant(self) -> bool:
        return self.score_sensitivity > 0 and self.score_scale > 0 and self.selections > 0


@dataclass(frozen=True)
class Triples:
    """Candidates of three columns, by the places of their pairs (a, b), (a, c), (b, c) among all pairs;
    how many are chosen, and the law of the choice."""

    pairs: tuple[tuple[int, int, int], ...]
    chosen: int
    sensitivity: Fraction
    scale: Fraction = Fraction(1)


@dataclass(frozen=True)
class AdaptiveMargins(Mechanism):
    """Noise on all pairs, again on those that noisy ones choose, and on triples: DP at the sum of all.

    ``shapes``: rows and columns of each pair; ``first``, ``again``: the noise of either round, on all
    cells of all pairs, and of all candidates too, with the sensitivity of all pairs and of all that the
    second one measures; ``size``: the cells of all tables, or of several statistics one after the other.
    """

    shapes: tuple[tuple[int, int], ...]
    chosen: int
    first: Noise
    again: Noise
    triples: Triples | None = None

    side_by_side = True

    @classmethod
    def within(
        cls,
        share: Budget,
        shapes: tuple[tuple[int, int], ...],
        chosen: int,
        sensitivity: Fraction,
        noise: Kind,
        triples: Triples | None = None,
    ) -> AdaptiveMargins:
        """The mechanism that spends all of the share's alpha, or of its alpha and beta.

        ``sensitivity``: of one table, in the L1 norm, or in the L2 norm and squared.
        """
        cells = sum(rows * columns for rows, columns in shapes)
        size, again, part = cells, chosen, Fraction(0)
        if triples:
            size += sum(map(math.prod, _shapes(shapes, triples)))
            again, part = chosen + triples.chosen, CHOICE_PART
        rounds = two_rounds(
            share,
            noise,
            (FIRST_PART, 1 - FIRST_PART - part),
            (cells, sensitivity * len(shapes)),
            (size, sensitivity * again),
        )
        if triples:
            if noise == "discrete-laplace" or share.rho:
                law = triples.sensitivity, triples.chosen, share * part
                scale = exponential_scale(*law)
            else:
                spent = sensitivity * len(shapes) / _law(rounds[0])[1] / FIRST_PART * part
                each = root_below(spent / (GAUSSIAN_PRICE * triples.chosen))
                scale = 2 * triples.sensitivity / each
            _validate.positive_rational("scale", scale, LARGEST_SCALE)
            triples = replace(triples, scale=scale)
        return cls(size, shapes, chosen, *rounds, triples)

    @property
    def event(self) -> AdaptiveMarginsEvent:
        rounds, chosen = rounds_drawn(self.first, self.again), self.triples
        if chosen is None:
            return AdaptiveMarginsEvent(*rounds)
        return AdaptiveTriplesEvent(*rounds, chosen.sensitivity, chosen.scale, chosen.chosen)

    def draw(self, values: Integers, cells: Integers | None, source: RandomSource) -> Noisy:
        exact = values.reshape(-1, self._sizes.sum())
        pairs = exact[:, : self.first.size]
        once = with_noise(self.first, pairs.ravel(), source).reshape(pairs.shape)
        chosen = self._choice(once)
        order = self._triples_chosen(self._scores(once, exact), source)
        measured = np.repeat(self._measured(chosen, order), self._sizes, axis=1)
        twice = np.full_like(exact, ABSENT)
        twice[measured] = with_noise(self.again, exact[measured], source)
        drawn = np.concatenate([once, twice, order], axis=1)
        return Noisy(drawn.ravel(), reproducible=source.reproducible)

    def rounds(self, outputs: Outputs) -> tuple[Outputs, Outputs, Outputs]:
        """Outputs (n, d) as round 1, round 2, and the triples chosen, in order (n, selections)."""
        first, both = self.first.size, self.first.size + int(self._sizes.sum())
        return outputs[:, :first], outputs[:, first:both], outputs[:, both:]

    def log_ratio(self, cells: Integers, near: Floats, far: Floats) -> LogRatio | None:
        pairs = slice(0, self.first.size)
        once = self.first.log_ratio(cells[pairs], near[pairs], far[pairs])
        twice = self.again.log_ratio(cells, near, far)
        assert once is not None
        assert twice is not None

        def ratio(outputs: Floats) -> Floats:
            first, again, order = self.rounds(outputs.astype(np.float64))
            # A table that was not measured again says nothing more: its cells score 0.
            found = once(first) + twice(np.where(np.isnan(again), (near + far) / 2, again))
            for side, sign in ((near, 1), (far, -1)):
                found += sign * self._chances(self._scores(first, side), order, 1.0)
            return np.round(found, 9)

        return ratio

    def rounds_of(self, outputs: Outputs, cells: Integers, exact: Floats) -> list[Round]:
        once, twice, order = self.rounds(outputs.astype(np.float64))
        pairs = slice(0, self.first.size)
        found = [
            *self.first.rounds_of(once, cells[pairs], exact[pairs]),
            *self.again.rounds_of(twice, cells, exact),
        ]
        chosen, picked = self._choice(once), order.astype(np.int64)
        measured = np.repeat(self._measured(chosen, picked), self._sizes, axis=1)
        follows = np.all(
            np.isnan(twice) != measured, axis=1
        )  # the choice of pairs has no chance in it
        if not follows.all():
            found.append(Round(lambda factor: np.where(follows, 0.0, -np.inf)))
        if self.triples:
            scores = self._scores(once, exact)
            logs = -scores / float(self.triples.scale)
            logs -= logs.max(axis=1, keepdims=True)
            chances = np.exp(logs) / np.exp(logs).sum(axis=1, keepdims=True)
            choice = picked[:, 0], chances
            found.append(Round(lambda factor: self._chances(scores, order, factor), choice=choice))
        return found

    @property
    def one_by_one(self) -> list[Event]:
        found: list[Event] = [self.first.event, self.again.event]
        if self.triples:
            choice = ExponentialEvent(self.triples.sensitivity, self.triples.scale, 1)
            found += self.triples.chosen * [choice]
        return found

    def moved_by(self, cells: Integers, near: Integers, far: Integers) -> float:
        pairs, kinds = slice(0, self.first.size), len(self.shapes)
        squares, sums = (
            np.add.reduceat(np.abs(near - far) ** power, self._starts) for power in (2, 1)
        )
        most = np.zeros((1, len(squares)), dtype=bool)
        most[0, np.argsort(-squares[:kinds])[: self.chosen]] = True
        found = [self.first.moved_by(cells[pairs], near[pairs], far[pairs])]
        if self.triples:
            most[0, kinds + np.argsort(-squares[kinds:])[: self.triples.chosen]] = True
            found.append(float(Fraction(int(sums[kinds:].max())) / self.triples.sensitivity))
        (chosen,) = np.repeat(most, self._sizes, axis=1)
        return max(*found, self.again.moved_by(cells[chosen], near[chosen], far[chosen]))

    def _choice(self, once: Integers) -> Booleans:
        """(n, pairs): which are measured again, from noisy values (n, cells) alone."""
        variance = self.first.stddev**2
        scores = np.stack([_association(table, variance) for table in self._pairs(once)], axis=1)
        order = np.argsort(-scores, axis=1, kind="stable")
        chosen = np.zeros(scores.shape, dtype=bool)
        np.put_along_axis(chosen, order[:, : self.chosen], True, axis=1)
        return chosen

    def _triples_chosen(self, scores: Integers, source: RandomSource) -> Integers:
        """(n, selections) the numbers of triples, in the order in which they are chosen."""
        draws, candidates = scores.shape
        left = np.tile(np.arange(candidates), (draws, 1))
        order = np.empty((draws, self.triples.chosen if self.triples else 0), dtype=np.int64)
        for selected in order.T:
            assert self.triples is not None
            among = np.take_along_axis(scores, left, axis=1)
            place = exponential_choices(among, self.triples.scale, source)[:, None]
            selected[:] = np.take_along_axis(left, place, axis=1)[:, 0]
            left = left[left != selected[:, None]].reshape(draws, -1)
        return order

    def _chances(self, scores: Integers, order: Outputs, factor: float) -> Floats:
        """(n,) the log chances of choosing triples in an order, at so many times the scale."""
        found = np.zeros(len(scores))
        if self.triples is None:
            return found
        left = scores / (float(self.triples.scale) * factor)
        rows = np.arange(len(scores))
        for selected in order.T.astype(np.int64):
            above = left - left.min(
                axis=1, keepdims=True
            )  # the least of those left, or all underflow
            found -= above[rows, selected] + np.log(np.exp(-above).sum(axis=1))
            left[rows, selected] = np.inf
        return found

    def _scores(self, once: Outputs, exact: Integers | Floats) -> Integers:
        """(n, candidates) scores of triples, the lower the better; ``exact``: (cells,) or (n, cells)."""
        if self.triples is None:
            return np.zeros((len(once), 0), dtype=np.int64)
        variance = self.first.stddev**2
        pairs = [shrunk_pairs(table, variance) for table in self._pairs(once)]
        counts = np.broadcast_to(exact, (len(once), exact.shape[-1])).astype(np.int64)
        tables = np.split(counts, self._starts[1:], axis=1)[len(pairs) :]
        scores = np.empty((len(once), len(tables)), dtype=np.int64)
        for alike in self._alike:  # many small tables take less time together
            table = np.stack([tables[number] for number in alike])
            three = zip(*(self.triples.pairs[number] for number in alike), strict=True)
            sides = [np.concatenate([pairs[place] for place in places]) for places in three]
            implied = implied_triples(*sides).reshape(table.shape)
            noise = round(math.sqrt(2 / math.pi) * self.again.stddev * table.shape[2])
            scores[:, alike] = (noise - np.abs(table - implied).sum(axis=2)).T
        return scores

    def _pairs(self, once: Outputs) -> list[Outputs]:
        """The noisy tables (n, rows, columns) of round 1."""
        parts = np.split(once, self._starts[1 : len(self.shapes)], axis=1)
        return [part.reshape(-1, *of) for part, of in zip(parts, self.shapes, strict=True)]

    def _measured(self, chosen: Booleans, order: Integers) -> Booleans:
        """(n, tables): what the second round measures."""
        candidates = len(self.triples.pairs) if self.triples else 0
        triples = np.zeros((len(chosen), candidates), dtype=bool)
        np.put_along_axis(triples, order, True, axis=1)
        return np.concatenate([chosen, triples], axis=1)

    @cached_property
    def _alike(self) -> list[list[int]]:
        """The candidates of each shape."""
        found: dict[tuple[int, int, int], list[int]] = {}
        for number, shape in enumerate(_shapes(self.shapes, self.triples) if self.triples else ()):
            found.setdefault(shape, []).append(number)
        return list(found.values())

    @cached_property
    def _sizes(self) -> Integers:
        """The cells of each table: the pairs, then the candidates."""
        shapes = [*self.shapes, *(_shapes(self.shapes, self.triples) if self.triples else ())]
        return np.array([math.prod(shape) for shape in shapes])

    @cached_property
    def _starts(self) -> Integers:
        return np.cumsum([0, *self._sizes[:-1]])


def _shapes(pairs: Sequence[tuple[int, int]], triples: Triples) -> list[tuple[int, int, int]]:
    """Of each candidate."""
    return [(*pairs[first], pairs[second][1]) for first, second, _ in triples.pairs]


def two_rounds(
    share: Budget,
    noise: Kind,
    parts: tuple[Fraction, Fraction],
    first: tuple[int, Fraction],
    again: tuple[int, Fraction],
) -> tuple[Noise, Noise]:
    """The noise of two rounds that together spend their parts of the share.

    ``first``, ``again``: cells and sensitivity of either, in the L1 norm, or in the L2 norm and
    squared; ``parts``: of the rho (of the precision), or of the alpha, that either round spends.
    """
    if noise == "discrete-laplace" or share.rho:
        kind = DiscreteGaussian if noise == "discrete-gaussian" else DiscreteLaplace
        return kind.within(share * parts[0], *first), kind.within(share * parts[1], *again)
    # Variances in these proportions spend the parts; as a single draw at the smaller of them, its
    # squared sensitivity is the smaller of these numbers.
    apart = first[1] / parts[0], again[1] / parts[1]
    among = Inherited(first[1] + again[1])
    unit = gaussian_variance(min(apart), share.alpha, share.beta, among) / min(apart)
    return DiscreteGaussian(*first, apart[0] * unit), DiscreteGaussian(*again, apart[1] * unit)


def rounds_drawn(first: Noise, again: Noise) -> tuple[str, Fraction, Fraction, Fraction, Fraction]:
    """What an event of two rounds records: which noise, then the sensitivity and scale of either."""
    return first.event.kind, *_law(first), *_law(again)


def _law(noise: Noise) -> tuple[Fraction, Fraction]:
    """Sensitivity and scale; both squared of Gaussian noise."""
    if isinstance(noise, DiscreteGaussian):
        return noise.l2_sensitivity_squared, noise.variance
    return noise.l1_sensitivity, noise.scale


def with_noise(noise: Noise, values: Integers, source: RandomSource) -> Integers:
    """Values (k,), however many, with noise on each."""
    return replace(noise, size=len(values)).draw(values, None, source).values


def _association(noisy: Integers, variance: float) -> Floats:
    """(k,) how far noisy tables (k, rows, columns) are from independence."""
    counts = noisy.astype(np.float64)
    _, distance = independent(counts)
    free = freedom(counts.shape[1:])
    noise = variance * (free + CERTAIN * math.sqrt(2 * free))
    return np.asarray(counts[0].size * (distance - noise))
