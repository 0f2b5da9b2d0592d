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

Proof.  Given Y1 the counts that pairs imply are fixed whole numbers, and so is what the score adds for
expected noise; the L1 distance of a table from them moves by at most D.  So each selection, given Y1 and
those before it, is a choice among known candidates (``selection``).  The second round, given Y1 and the
choices, is noise on a vector of m + s tables, whichever they are, and the choice of pairs is
post-processing of Y1.  ``rounds`` proves both prices.

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
from typing import Any

import numpy as np

from dpcore.accounting.budget import Budget, root_below
from dpcore.arrays import Booleans, Floats, Integers
from dpcore.line.mechanism import AS_STATED, Mechanism, Outputs, Round
from dpcore.line.statistic import ABSENT
from dpcore.mechanisms.exponential import exponential_scale
from dpcore.mechanisms.gaussian import DiscreteGaussian
from dpcore.mechanisms.rounds import Kind, Noise, Rounds, RoundsEvent, two_rounds
from dpcore.mechanisms.selection import GAUSSIAN_PRICE, Selection
from dpcore.mechanisms.third_order import freedom, implied_triples, independent, shrunk_pairs
from dpcore.sampling import _validate
from dpcore.sampling.discrete_laplace import LARGEST_SCALE

FIRST_PART = Fraction(4, 5)
"""The part of the budget for the first round, which all pairs share."""

CHOICE_PART = Fraction(1, 40)
"""The part of the budget for choosing triples, if any are chosen; the rest is for the second round."""

CERTAIN = 3
"""Standard deviations of noise that a pair must exceed to look dependent: among many tables some always
exceed the expected noise."""


@dataclass(frozen=True)
class Triples:
    """Candidates of three columns, by the places of their pairs (a, b), (a, c), (b, c) among all pairs;
    how many are chosen, and the law of the choice."""

    pairs: tuple[tuple[int, int, int], ...]
    chosen: int
    sensitivity: Fraction
    scale: Fraction = Fraction(1)


@dataclass(frozen=True)
class AdaptiveMargins(Rounds):
    """Noise on all pairs, again on those that noisy ones choose, and on triples: DP at the sum of all.

    ``shapes``: rows and columns of each pair; ``first``, ``again``: the noise of either round, on all
    cells of all pairs, and of all candidates too, with the sensitivity of all pairs and of all that the
    second one measures; ``size``: the cells of all tables.
    """

    shapes: tuple[tuple[int, int], ...]
    chosen: int
    first: Noise
    again: Noise
    triples: Triples | None = None

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
                assert isinstance(rounds[0], DiscreteGaussian)
                spent = sensitivity * len(shapes) / rounds[0].variance / FIRST_PART * part
                each = root_below(spent / (GAUSSIAN_PRICE * triples.chosen))
                scale = 2 * triples.sensitivity / each
            _validate.positive_rational("scale", scale, LARGEST_SCALE)
            triples = replace(triples, scale=scale)
        return cls(size, shapes, chosen, *rounds, triples)

    @property
    def event(self) -> RoundsEvent:
        choice = self._selection.event if self._selection else None
        return RoundsEvent.of(self.first, self.again, choice)

    @property
    def _selection(self) -> Selection | None:
        if self.triples is None:
            return None
        law = self.triples.chosen, self.triples.sensitivity, self.triples.scale
        candidates = len(self.triples.pairs)
        return Selection(candidates, candidates, *law)

    @property
    def laws(self) -> list[Mechanism]:
        chosen = [self._selection] if self._selection else []
        return [self.first, *chosen, self.again]

    @property
    def widths(self) -> tuple[int, ...]:
        chosen = (self.triples.chosen,) if self.triples else ()
        return self.first.size, *chosen, int(self._sizes.sum())

    @property
    def order(self) -> tuple[int, ...]:
        """What was chosen comes last."""
        return (0, 2, 1) if self.triples else (0, 1)

    def rounds(self, outputs: Outputs) -> tuple[Outputs, Outputs, Outputs]:
        """Outputs (n, d) as round 1, round 2, and the triples chosen, in order (n, selections)."""
        once, *order, twice = self.by_round(outputs)
        return once, twice, order[0] if order else outputs[:, :0]

    def records(self, values: Integers, cells: Integers | None) -> Integers:
        return values

    def first_point(self, times: int) -> int:
        return times

    def exact(self, number: int, records: Integers, point: Any) -> Integers:
        if number == 0:
            return np.tile(records[: self.first.size], (point, 1))
        if number == len(self.laws) - 1:
            return np.where(point, records, ABSENT)
        return self._scores(point, records)

    def next_point(self, number: int, point: Any, noisy: Integers) -> Integers | Booleans:
        """The noisy pairs by which triples are scored; after them, which cells are measured again."""
        if self.triples is None:
            return self._measured_cells(self._choice(noisy), noisy[:, :0])
        return noisy if number == 0 else self._measured_cells(self._choice(point), noisy)

    def rounds_of(
        self, outputs: Outputs, cells: Integers, exact: Floats, factors: Floats = AS_STATED
    ) -> list[Round]:
        found = super().rounds_of(outputs, cells, exact, factors)
        once, twice, order = self.rounds(outputs.astype(np.float64))
        measured = self._measured_cells(self._choice(once), order.astype(np.int64))
        # The choice of pairs has no chance in it.
        follows = np.all(np.isnan(twice) != measured, axis=1)
        if not follows.all():
            logs = np.where(follows, 0.0, -np.inf)
            found.append(Round(np.tile(logs[:, None], len(factors))))
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

    def _scores(self, once: Outputs, exact: Integers | Floats) -> Integers:
        """(n, candidates) scores of triples, the lower the better; ``exact``: (cells,)."""
        assert self.triples is not None
        variance = self.first.stddev**2
        pairs = [shrunk_pairs(table, variance) for table in self._pairs(once)]
        tables = np.split(exact.astype(np.int64), self._starts[1:])[len(pairs) :]
        scores = np.empty((len(once), len(tables)), dtype=np.int64)
        for alike in self._alike:  # many small tables take less time together
            table = np.stack([tables[number] for number in alike])[:, None]
            three = zip(*(self.triples.pairs[number] for number in alike), strict=True)
            sides = [np.concatenate([pairs[place] for place in places]) for places in three]
            implied = implied_triples(*sides).reshape(len(alike), len(once), -1)
            noise = round(math.sqrt(2 / math.pi) * self.again.stddev * table.shape[2])
            scores[:, alike] = (noise - np.abs(table - implied).sum(axis=2)).T
        return scores

    def _pairs(self, once: Outputs) -> list[Outputs]:
        """The noisy tables (n, rows, columns) of round 1."""
        parts = np.split(once, self._starts[1 : len(self.shapes)], axis=1)
        return [part.reshape(-1, *of) for part, of in zip(parts, self.shapes, strict=True)]

    def _measured_cells(self, chosen: Booleans, order: Integers) -> Booleans:
        """(n, cells) whether the second round measures each cell."""
        return np.repeat(self._measured(chosen, order), self._sizes, axis=1)

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


def _association(noisy: Integers, variance: float) -> Floats:
    """(k,) how far noisy tables (k, rows, columns) are from independence."""
    counts = noisy.astype(np.float64)
    _, distance = independent(counts)
    free = freedom(counts.shape[1:])
    noise = variance * (free + CERTAIN * math.sqrt(2 * free))
    return np.asarray(counts[0].size * (distance - noise))
