"""Count tables of pairs, and once more those that the first noisy tables show to be most dependent.

Claim.  Input: the counts of several two-way tables.  Neighbours: any relation under which one table
moves by at most D in the L1 norm, or D^2 in the squared L2 norm.  Output:

    round 1   all k tables, with noise ``first``                       Y1
    choice    the m = ``chosen`` tables that look farthest from independence in Y1 alone
    round 2   the chosen tables, with fresh noise ``again``            Y2

Laplace noise: (a + b, 0, 0)-DP with a = k D/scale and b = m D/again_scale, and (a^2 + b^2)/2-zCDP.
Gaussian noise: rho-zCDP with rho = k D^2/(2 variance) + m D^2/(2 again_variance), and
(alpha, beta, 0)-DP wherever a single draw of discrete Gaussian noise at the variance v, the smaller of
both, and the squared sensitivity S = k D^2 v/variance + m D^2 v/again_variance is, by either proof of
``gaussian`` with (k + m) D^2 coordinates that may differ.

Preconditions.  Those of the noise of either round; the alphas, or the price of the single draw, are
covered by the share (the privacy line checks it).

Proof.  Given Y1 the second round is noise on a vector of m tables, whichever they are; the choice is
post-processing of Y1.  So the whole is an adaptive composition of two mechanisms, whose rho (Bun &
Steinke 2016, Lemma 2.3) or alpha add up: S/(2 v) is that rho.  For the proof by rounding
(``accounting.analytic``) let both rounds set apart the same part of their variance, r of v.  Continuous
rounds with what is left are mu-GDP for mu^2 = S/(v - r), as squares of mu add over adaptive composition
(Dong, Roth & Su 2022, Theorem 3.2), and the choice stays post-processing of the first of them.  Rounding
changes the joint law by one factor for each coordinate; at most k D^2 and m D^2 of them differ between
neighbours, and each by no more than at r, the smaller part.

Ranges.  Those of the noise.  The choice is made in floating point from noisy numbers, so nothing
depends on its rounding.

Source.  Bun & Steinke 2016; Dong, Roth & Su 2022; METHODS q.

A table is scored by the squared distance of its noisy counts y from the product of its own margins,
less what noise of variance v adds to it, times its cells, as a table of many cells has most to gain:

    cells (sum of (y_ij - y_i. y_.j / y..)^2 - v (rows - 1)(columns - 1))

The statistic has one value per cell of all tables; the noisy one has the values of both rounds side
by side, with ``ABSENT`` where a cell was not measured again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Literal

import numpy as np

from dpcore.accounting.analytic import Inherited
from dpcore.accounting.gaussian import covers_gaussian, gaussian_variance
from dpcore.arrays import Booleans, Floats, Integers
from dpcore.budget import Budget
from dpcore.mechanism import Event, LogRatio, Mechanism, Outputs, Widths
from dpcore.mechanisms.gaussian import DiscreteGaussian
from dpcore.mechanisms.laplace import DiscreteLaplace
from dpcore.sampling.source import RandomSource
from dpcore.statistic import ABSENT, Noisy

Noise = DiscreteGaussian | DiscreteLaplace
Kind = Literal["discrete-laplace", "discrete-gaussian"]

FIRST_PART = Fraction(4, 5)
"""Of the budget goes to the first round, which all tables share."""


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
    def pure_alpha(self) -> Fraction | None:
        return self._spent if self.noise == "discrete-laplace" else None

    @property
    def concentrated(self) -> tuple[Fraction, Fraction] | None:
        if min(self.sensitivity, self.scale, self.again_sensitivity, self.again_scale) <= 0:
            return None
        if self.noise == "discrete-gaussian":
            return self._spent / 2, Fraction(0)
        rounds = self.sensitivity / self.scale, self.again_sensitivity / self.again_scale
        return (rounds[0] ** 2 + rounds[1] ** 2) / 2, Fraction(0)

    def covered_by(self, share: Budget) -> bool:
        if min(self.scale, self.again_scale, share.alpha) <= 0:
            return False
        if self.noise == "discrete-gaussian":
            first, again = self.sensitivity, self.again_sensitivity
            if min(first, again) <= 0:
                return False
            least = min(self.scale, self.again_scale)
            single, among = self._spent * least, Inherited(first + again)
            return covers_gaussian(single, least, share.alpha, share.beta, among)
        return self.noise == "discrete-laplace" and self._spent <= share.alpha

    @property
    def _spent(self) -> Fraction:
        return self.sensitivity / self.scale + self.again_sensitivity / self.again_scale


@dataclass(frozen=True)
class AdaptiveMarginsEvent(TwoRoundsEvent):
    """Two rounds on count tables; the first noisy ones chose which tables are measured again."""

    kind = "adaptive-margins"


@dataclass(frozen=True)
class AdaptiveMargins(Mechanism):
    """Noise on all tables, and again on some that the noisy ones choose: DP at the sum of both rounds.

    ``shapes``: rows and columns of each table; ``first``, ``again``: the noise of either round, on
    all cells, with the sensitivity of all tables and of ``chosen`` of them; ``size``: the cells of
    all tables, or of several statistics one after the other.
    """

    shapes: tuple[tuple[int, int], ...]
    chosen: int
    first: Noise
    again: Noise

    side_by_side = True

    @classmethod
    def within(
        cls,
        share: Budget,
        shapes: tuple[tuple[int, int], ...],
        chosen: int,
        sensitivity: Fraction,
        noise: Kind,
    ) -> AdaptiveMargins:
        """The mechanism that spends all of the share's alpha, or of its alpha and beta.

        ``sensitivity``: of one table, in the L1 norm, or in the L2 norm and squared.
        """
        cells = _cells(shapes)
        first, again = two_rounds(
            share,
            noise,
            FIRST_PART,
            (cells, sensitivity * len(shapes)),
            (cells, sensitivity * chosen),
        )
        return cls(cells, shapes, chosen, first, again)

    @property
    def event(self) -> AdaptiveMarginsEvent:
        return AdaptiveMarginsEvent(*rounds_drawn(self.first, self.again))

    def draw(self, values: Integers, cells: Integers | None, source: RandomSource) -> Noisy:
        exact = values.reshape(-1, _cells(self.shapes))
        once = with_noise(self.first, exact.ravel(), source).reshape(exact.shape)
        measured = self._cells_of(self._choice(once))
        twice = np.full_like(exact, ABSENT)
        twice[measured] = with_noise(self.again, exact[measured], source)
        both = np.concatenate([once, twice], axis=1)
        return Noisy(both.ravel(), reproducible=source.reproducible)

    def log_ratio(self, cells: Integers, near: Floats, far: Floats) -> LogRatio | None:
        once, twice = (noise.log_ratio(cells, near, far) for noise in (self.first, self.again))
        assert once is not None
        assert twice is not None

        def ratio(outputs: Floats) -> Floats:
            first, again = np.split(outputs.astype(np.float64), 2, axis=1)
            # A table that was not measured again says nothing more: its cells score 0.
            return np.round(
                once(first) + twice(np.where(np.isnan(again), (near + far) / 2, again)), 9
            )

        return ratio

    def widths(self, outputs: Outputs, cells: Integers, exact: Floats) -> Widths | None:
        rounds = np.split(outputs.astype(np.float64), 2, axis=1)
        both = [
            noise.widths(noisy, cells, exact)
            for noise, noisy in zip((self.first, self.again), rounds, strict=True)
        ]
        return lambda factor: np.asarray(sum(widths(factor) for widths in both if widths))

    def moved_by(self, cells: Integers, near: Integers, far: Integers) -> float:
        tables = np.add.reduceat((near - far) ** 2, self._starts)
        most = np.zeros(len(tables), dtype=bool)
        most[np.argsort(-tables)[: self.chosen]] = True
        (chosen,) = self._cells_of(most[None])
        return max(
            self.first.moved_by(cells, near, far),
            self.again.moved_by(cells[chosen], near[chosen], far[chosen]),
        )

    def _choice(self, once: Integers) -> Booleans:
        """(k, tables): which tables are measured again, from noisy values (k, cells) alone."""
        scores = np.stack(
            [
                _association(part.reshape(-1, *shape), self.first.stddev**2)
                for part, shape in zip(
                    np.split(once, self._starts[1:], axis=1), self.shapes, strict=True
                )
            ],
            axis=1,
        )
        order = np.argsort(-scores, axis=1, kind="stable")
        chosen = np.zeros(scores.shape, dtype=bool)
        np.put_along_axis(chosen, order[:, : self.chosen], True, axis=1)
        return chosen

    def _cells_of(self, tables: Booleans) -> Booleans:
        return np.repeat(tables, [rows * columns for rows, columns in self.shapes], axis=1)

    @cached_property
    def _starts(self) -> Integers:
        return np.cumsum([0, *(rows * columns for rows, columns in self.shapes[:-1])])


def two_rounds(
    share: Budget,
    noise: Kind,
    part: Fraction,
    first: tuple[int, Fraction],
    again: tuple[int, Fraction],
) -> tuple[Noise, Noise]:
    """The noise of two rounds that together spend all of the share.

    ``first``, ``again``: cells and sensitivity of either, in the L1 norm, or in the L2 norm and
    squared; ``part``: of the rho (of the precision), or of the alpha, that the first round spends.
    """
    parts = part, 1 - part
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


def _cells(shapes: tuple[tuple[int, int], ...]) -> int:
    return sum(rows * columns for rows, columns in shapes)


def _association(noisy: Integers, variance: float) -> Floats:
    """(k,) how far noisy tables (k, rows, columns) are from independence."""
    counts = noisy.astype(np.float64)
    rows, columns = counts.sum(axis=2, keepdims=True), counts.sum(axis=1, keepdims=True)
    total = np.maximum(counts.sum(axis=(1, 2), keepdims=True), 1.0)
    distance = ((counts - rows * columns / total) ** 2).sum(axis=(1, 2))
    free = (counts.shape[1] - 1) * (counts.shape[2] - 1)
    return np.asarray(counts[0].size * (distance - variance * free))
