"""The distribution of the lengths of scores in their long tail, estimated from noisy counts.

Scores are cut at a radius C. With N(l) scores longer than l, the parts cut off add up to at most

    excess(C) = integral of N(l) dl from C to the longest possible score,

which biases the estimate.  Relative to scores cut at C, the squares of scores cut at B lack

    lacking(B, C) = integral of 2 l N(l) dl from B to C.

N is assumed to fall as a power of the length, whose exponent is constant or grows with the length, as
for Pareto, log-normal, exponential and normal laws.  From one of the first ends on,

    N(l) = m exp(-a x - d x^2),    x = log(l / end),

while bins before that end may have any count: much of a skew response is a little below its mean.  All
averages are over the posterior of m, a, d and the end, with a flat prior, given the noisy counts.  So
the less is known of a tail, the larger the estimated loss from cutting.  In a linear model
nearly all of the mean square would come from long tails that noise does not rule out, but that are
unlikely.  There the squared excess is the square of its mean plus the fraction ``UNSEEN`` of its
variance.  A group of long scores follows no such law: it is counted where noise allows it (``CERTAIN``),
and otherwise missed.

The tail of a mean with weights may begin at nearly any end: few records may have most of a total.  Then
a few very long and unlikely tails make most of the mean square of the excess.  The standard error is
therefore 1/1.96 of the 95% point of a log-normal excess with the same mean and mean square.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np
from scipy.special import ndtr

from dpcore.arrays import Booleans, Floats
from dpcore.post.levels import SIGMAS_95
from dpcore.releases.models.point import ScorePoint
from dpcore.releases.models.scores import ModelSums

FALLS = np.arange(0.5, 6.1, 0.5)
BENDS = np.array([0.0, 0.15, 0.3, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 9.0])
"""The grid of a and d."""

FREE, FREE_BY_WEIGHTS = (3, 2.0), (9, 1.0)
"""The most bins with a free count, and the cost of each in log likelihood; then the same for a mean
with weights."""

FINE, DOUBLINGS = 8, 10
"""The number of lengths between a length and its double, and how often the first length is doubled."""

EXCESS, HARM = 0.4, 0.5
"""The average relative excess of scores beyond C; and to choose C, the bias from cutting counts 1/HARM
times as much as noise."""

UNSEEN = 0.3
"""The fraction of the variance of the excess that counts in a linear model.  With all of it, intervals
of usual models hold 98 to 100% of the time at 5,000 units and alpha 1."""

UNLIKE = 2.0
"""How far predictors move in groups of a quarter of the records, relative to the average, if nothing
moves in the others."""

SPREAD, NARROW_SPREAD = 0.1, 0.01
"""Usual variances of a response with bounds -1 and 1; the second, cautious one (a standard deviation of
a twentieth of the range) is for scores that are not cut, whose errors are proportional to the bounds."""

ONE_SIDED_95 = NormalDist().inv_cdf(0.95)
"""The 95% quantile of the standard normal law."""

FEW_LONGER = 0.1
"""Usually more than this fraction of units, times the root of their records, have long scores."""

CERTAIN = 3.0
"""A count of this many standard errors cannot be noise only."""


@dataclass(frozen=True, eq=False)
class ScoreTail:
    """The tail of scores at possible radii ``lengths`` (m,).

    ``excess``, ``longer``: (t, m) root mean squares of the excess (of the mean and a fraction of the
    variance in a linear model) and of the number N of longer scores.
    """

    lengths: Floats
    excess: Floats
    longer: Floats

    @classmethod
    def of(
        cls,
        ends: Floats,
        counts: Floats,
        noise: Floats,
        longest: Floats,
        weights: bool = False,
        unseen: float = 1.0,
    ) -> ScoreTail:
        """The tail from noisy counts (t, ends + 1) of the scores between ``ends``, below and above
        them.

        ``noise``: (t,) the standard deviation in each count; ``longest``: (t,) a bound on the length of
        scores; ``weights``: whether the scores are those of a mean with weights; ``unseen``: the
        fraction of the variance of the excess that counts.
        """
        most, cost = FREE_BY_WEIGHTS if weights else FREE
        lengths = ends[0] * 2.0 ** (np.arange(DOUBLINGS * FINE + 1) / FINE)
        laws = [_law(ends[i:], counts[:, 1 + i :], noise) for i in range(most + 1)]
        shapes = np.concatenate([_shapes(lengths, end) for end in ends[: len(laws)]])  # (s, m)
        means, squares = (
            np.concatenate([each[k] for each in laws], axis=1) for k in (0, 1)
        )  # (t, s)
        likely = np.concatenate([each - cost * i for i, (*_, each) in enumerate(laws)], axis=1)
        likely = np.exp(likely - likely.max(axis=1, keepdims=True))
        likely /= likely.sum(axis=1, keepdims=True)
        weight = squares * likely
        parts = (shapes[:, 1:] + shapes[:, :-1]) / 2 * np.diff(lengths)
        beyond = np.c_[np.cumsum(parts[:, ::-1], axis=1)[:, ::-1], np.zeros(len(parts))]
        # The mean square of an integral that ends at the longest score.
        end = beyond[:, np.minimum(np.searchsorted(lengths, longest), len(lengths) - 1)].T
        squared = weight @ beyond**2 - 2 * (weight * end) @ beyond
        squared += np.sum(weight * end**2, axis=1, keepdims=True)
        within = lengths < longest[:, None]
        means *= likely
        mean = np.maximum(means @ beyond - np.sum(means * end, axis=1, keepdims=True), 0.0) * within
        excess = np.sqrt(np.maximum(squared, mean**2)) * within
        if weights:
            excess = _standing_for(mean, excess)
        excess = np.sqrt(unseen * excess**2 + (1 - unseen) * mean**2)
        # A group of long scores, such as those of a rare category, follows no law: it is counted.
        certain = np.where(counts[:, 1:] > CERTAIN * noise[:, None], counts[:, 1:], 0.0)
        middles = ends * 2**0.25
        beyond = np.maximum(middles[:, None] - lengths, 0.0)
        excess = np.maximum(excess, certain @ beyond * within)
        longer = np.maximum(np.sqrt(weight @ shapes**2), certain @ (middles[:, None] > lengths))
        return cls(lengths, excess, longer * within)

    def lacking(self, cut: float) -> Floats:
        """For each length (t, m): squares of scores cut at it, minus squares cut at ``cut``."""
        weighted = 2 * self.lengths * self.longer * (self.lengths >= cut)
        parts = (weighted[:, 1:] + weighted[:, :-1]) / 2 * np.diff(self.lengths)
        return np.asarray(np.c_[np.zeros(len(parts)), np.cumsum(parts, axis=1)])


def _standing_for(mean: Floats, root: Floats) -> Floats:
    """The standard error for an excess with this mean and root mean square; at least the mean."""
    part = np.clip(mean / np.maximum(root, 1e-300), 1e-6, 1.0)
    point = part**2 * np.exp(ONE_SIDED_95 * np.sqrt(-2 * np.log(part)))
    return np.asarray(root * np.maximum(point / SIGMAS_95, part))


def _shapes(lengths: Floats, end: float) -> Floats:
    """How N falls from its value m at this end: N/m (s, lengths) for each a and d."""
    falls, bends = (each.ravel()[:, None] for each in np.meshgrid(FALLS, BENDS))
    far = np.log(np.maximum(lengths / end, 1.0))
    return np.asarray(np.exp(-falls * far - bends * far**2))


def _law(ends: Floats, seen: Floats, noise: Floats) -> tuple[Floats, Floats, Floats]:
    """The mean and mean square (t, s) of m for each a and d, and their log likelihood, if N falls from
    the first of ``ends`` on; ``seen``: (t, ends) the noisy counts beyond each end."""
    shapes = _shapes(ends, ends[0])
    in_bins = -np.diff(np.c_[shapes, np.zeros(len(shapes))], axis=1)
    # Counts of long scores vary between surveys, nearly as in a Poisson law, besides their noise.
    precision = 1 / (noise[:, None] ** 2 + np.maximum(seen, 1.0))
    known = precision @ in_bins.T**2
    number = np.maximum((precision * seen) @ in_bins.T, 0.0) / known
    left = np.sum(precision * seen**2, axis=1, keepdims=True) - known * number**2
    # Half of a normal law, where the likeliest m is 0.
    mean = np.sqrt(number**2 + 2 / math.pi / known)
    return mean, number**2 + 1 / known, -(left + np.log(known)) / 2


def _excess_at(radius: Floats, tail: ScoreTail) -> Floats:
    """The excess (t, 1) of scores that are cut at ``radius`` (t,)."""
    place = np.searchsorted(tail.lengths, radius, side="right") - 1
    return np.take_along_axis(tail.excess, np.maximum(place, 0)[:, None], axis=1)


def least_error(variance: Floats, bias: Floats, other: Floats, its_bias: Floats) -> Floats:
    """The weight of an estimate, averaged with an independent one of the ``other`` variance, that
    minimises the mean squared error, if biases add up."""
    apart = bias - its_bias
    found = (other - apart * its_bias) / np.maximum(variance + other + apart**2, 1e-300)
    return np.asarray(np.clip(found, 0.0, 1.0))


def uneven(point: ScorePoint) -> Floats:
    """|1 - 2p| (t,) of a typical share p, from p (1 - p)."""
    return np.asarray(np.sqrt(np.maximum(1 - 4 * point.slope, 0.0)))


@dataclass(frozen=True, eq=False)
class CutScores(ModelSums):
    """The sums of scores, and the radius at which those of the last round are cut."""

    def usually(self, point: ScorePoint, sampling: float) -> tuple[float, float]:
        """The variances of the sum of scores from sampling (``sampling``, given) and from noise and
        cutting, if no scores are unusually long: averaged over repetitions with noise in their
        counts."""
        one, (first, last) = np.ones(len(point.theta)), self.terms.ends
        # Counts are not brought to bounds of -1 and 1.
        spread = NARROW_SPREAD if self.whole and not self.terms.binary else SPREAD
        spread *= ((last - first) / 2) ** 2 if self.family == "poisson" else 1.0
        radius = self.radii["shortest"] if self.weighed else self.rough_radius
        white = np.ones((len(one), 1, 1))
        usual = replace(point, white=white, spread=spread * one, radius=radius * one)
        heard = self.per_step("scores", usual) * self.stddev
        usual = replace(usual, last=replace(usual.last, heard=heard))
        counted = None
        if not self.weighed:
            noise = self.per_step("counts", usual) * self.stddev
            # A fixed seed: the width that a plan states must not change from one reading to the next.
            drawn = np.random.default_rng(0).normal(0, 1, (len(one), len(self.lengths) + 1))
            counted = self._usual_counts + drawn * noise[:, None], noise
        cut, tail, lacking, trusted = self.clipped_at(usual, counted, sampling * one)
        end = replace(usual, number=usual.number + 1, radius=cut)
        noise = trusted * self.per_step("scores", end) * self.stddev
        added = noise**2 + ((1 - trusted) * heard) ** 2 + tail**2
        return sampling + float(np.mean(lacking)), float(np.mean(added))

    @property
    def _usual_counts(self) -> Floats:
        """Counts (ends + 1,) of the lengths of scores: exponential, as of residuals that follow a
        Laplace law; or, if there are weights, log-normal with a coefficient of variation of 1."""
        longer = np.exp(-self.lengths * math.sqrt(2 / self.terms.size) / self.design.size)
        if self.design.steps:
            sigma = math.sqrt(math.log(2.0))
            far = np.log(self.lengths / math.sqrt(self.design.members)) / sigma + sigma / 2
            longer = ndtr(-far)
        return np.asarray(-np.diff(self.rows / self.design.members * np.r_[1.0, longer, 0.0]))

    @property
    def whole(self) -> bool:
        """Whether no score is cut: scores of a mean are bounded by the bounds of the response, and this
        costs little compared with the bias from cutting a long tail."""
        return self._one_mean and not self.design.steps

    @property
    def _one_mean(self) -> bool:
        return self.terms.size == 1 and self.terms.constant == 0 and self.family == "gaussian"

    def clipped_at(
        self, point: ScorePoint, counted: tuple[Floats, Floats] | None, typical: Floats
    ) -> tuple[Floats, Floats, Floats, Floats]:
        """The best radius C (t,) for the last round, and its consequences.

        These are the approximate bias from cutting in one direction; how much squares fall short of
        those of scores cut at C; and the weight of the last round, averaged with the scores of this
        round, that minimises the error.

        ``counted``: noisy counts (t, ends + 1) of the lengths of scores and the noise (t,) in each, if
        scores are cut; ``typical``: (t,) the variance of the sum of scores in one direction.  Terms are
        whitened, so one of p directions has 1/p of the squares of what is cut.
        """
        none = np.zeros(len(typical))
        one = replace(point, number=point.number + 1, radius=none + 1)
        by_noise = self.per_step("scores", one) * self.stddev
        if counted is None:
            variance = (by_noise * point.radius) ** 2
            # Where curvature may change over the step before the last, that step is wrong.
            astray = self.bent(point, point.last.aimed) * np.linalg.norm(point.last.aimed, axis=1)
            astray *= point.rows / math.sqrt(self.terms.size)
            trusted = least_error(variance, none, point.last.heard**2, astray)
            return point.radius, none, none, trusted
        counts, noise = counted
        if self.design.steps and self.terms.size > 1:
            return *self._by_weights(point, counts, noise, typical), none, none + 1
        p, longest = self.terms.size, self._longest(point)
        weights = self.design.steps > 0
        unseen = UNSEEN if self.family == "gaussian" and p > 1 else 1.0
        tail = ScoreTail.of(self.lengths, counts, noise, longest, weights, unseen)
        moved, lacking = tail.excess / math.sqrt(p), tail.lacking(self.radii["squared"]) / p
        radii = np.maximum(tail.lengths, self.radii["shortest"])
        variance = (by_noise[:, None] * radii) ** 2
        if self.whole or self.design.steps:
            trusted = np.ones(variance.shape)
        else:
            heard, cut = point.last.heard[:, None], _excess_at(point.radius, tail) / math.sqrt(p)
            trusted = least_error(variance, moved, heard**2, cut)
            variance = trusted**2 * variance + (1 - trusted) ** 2 * heard**2
            moved = trusted * moved + (1 - trusted) * cut
        errors = typical[:, None] + lacking + variance + moved**2
        if self.whole:
            # Few units may have all of the longest scores, as those with a rare answer in every wave.
            squares = np.minimum(self.lengths * 2**0.25, longest[:, None]) ** 2
            squares = np.maximum(squares - self.radii["squared"] ** 2, 0.0)
            lacking = np.maximum(lacking, np.sum(counts[:, 1:] * squares, axis=1, keepdims=True))
        end = np.minimum(longest, tail.lengths[-1])[:, None]
        whole = self._uncut(point, counts, noise)[:, None]
        errors = np.where(whole & (tail.lengths < end), np.inf, errors)
        best = np.argmin(errors, axis=1)[:, None]
        found = (np.take_along_axis(each, best, axis=1)[:, 0] for each in (moved, lacking, trusted))
        return np.minimum(radii[best[:, 0]], longest), *found

    def _uncut(self, point: ScorePoint, counts: Floats, noise: Floats) -> Booleans:
        """Whether (t,) no score may be cut.

        This is so for a mean with weights if noise hides all scores that are longer than typical: by the
        definition of their variance some must be, so a few units may have nearly all of a total.  The
        variance of a binary response follows from its mean.
        """
        if not self.design.steps or self.terms.binary:
            return np.full(len(counts), self.whole)
        longer = counts[:, 1:].sum(axis=1)
        chance = noise * math.sqrt(counts.shape[1] - 1)
        usual = FEW_LONGER * point.rows / math.sqrt(self.design.members)
        return np.asarray(longer < np.minimum(CERTAIN * chance, usual))

    def bent(self, point: ScorePoint, moved: Floats) -> Floats:
        """The approximate relative change (t,) of curvature in some group over a step (t, p), beyond
        its average change (``steps``): an intermediate solution may be wrong by this fraction of the
        step.  The same holds for Poisson models, but their intervals are wide enough without it."""
        if self.family != "binomial":
            return np.zeros(len(moved))
        far = point.unit * np.linalg.norm(moved, axis=1)
        return np.asarray(np.minimum(UNLIKE * uneven(point) * far, 1.0))

    def _by_weights(
        self, point: ScorePoint, counts: Floats, noise: Floats, typical: Floats
    ) -> tuple[Floats, Floats]:
        """The radius C (t,) of the last round with weights, and the approximate bias from cutting."""
        shortest, times = self.radii["shortest"], len(counts)
        lengths = self.lengths[self.lengths * math.sqrt(2) > shortest]
        excess = EXCESS * lengths * self._beyond(counts, noise)[:, -len(lengths) :]
        last = replace(point, number=point.number + 1)
        at = [replace(last, radius=np.full(times, max(each, shortest))) for each in lengths]
        steps = np.stack([self.per_step("scores", each) for each in at], axis=1)
        errors = typical[:, None] + (steps * self.stddev) ** 2 + (excess / HARM) ** 2
        best = np.argmin(errors, axis=1)
        radius = np.maximum(lengths, shortest)[best]
        return radius, HARM * excess[np.arange(times), best]

    def _beyond(self, counts: Floats, noise: Floats) -> Floats:
        """About how many (t, ends) scores are longer than each end of ``lengths``."""
        number = np.arange(counts.shape[1], 0, -1)
        longer = np.cumsum(counts[:, ::-1], axis=1)[:, ::-1]
        chance = noise[:, None] * np.sqrt(number)
        found = np.maximum(longer - 0.7 * chance, 0.0)
        # Where counts are mostly noise, counts of shorter scores say more: tails fall at least as the
        # square of the length.
        for k in range(1, len(number)):
            at_most = np.minimum(found[:, k], found[:, k - 1] / 2)
            found[:, k] = np.where(longer[:, k] < CERTAIN * chance[:, k], at_most, found[:, k])
        return np.asarray(found[:, 1:])

    def _longest(self, point: ScorePoint) -> Floats:
        """A bound (t,) on the length of scores: exact for a mean, approximate for a model with means
        within the bounds of the response."""
        weight = self.design.members * max(self.design.steps / self.design.usual, 1.0)
        if self._one_mean:
            far = np.max(np.abs(np.array(self.terms.ends) - point.theta), axis=1)
            far = weight * point.white[:, 0, 0] * far
        else:
            first, last = self.terms.ends
            far = (last - first) * self.radii["leverage"] * math.sqrt(weight)
        return np.asarray(np.maximum(far / np.sqrt(point.spread), 0.1 * self.radii["shortest"]))

    def lacking_by_weights(self, counts: Floats, noise: Floats) -> Floats:
        """How much (t,) the squares fall short in each direction, with weights, because their scores
        are shortened to B S."""
        short = self.radii["squared"]
        shorter = np.maximum(self.lengths, short)
        lacking = np.maximum(2 * self.lengths**2 - shorter**2, 0.0)
        # If N falls as the cube, its mean over squared lengths of a bin, relative to N at the lower end.
        between = 2 - math.sqrt(2)
        beyond = self._beyond(counts, noise) * (self.lengths / shorter) ** 3
        cut = between * beyond @ lacking / self.terms.size
        return np.asarray(cut)
