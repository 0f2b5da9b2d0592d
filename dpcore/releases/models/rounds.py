r"""Clipped scores of a model: the sums in each round, and their sensitivity.

With rows x, responses y and coefficients theta (``terms``), the score of a record is x r, where
r = y - mean, and its curvature x x' slope, of the predictor x.theta (``estimates.families``).  A
whitening matrix V, public, makes u = V x have about unit second moments.  The rounds measure:

    response   how many responses, and values of each numeric term, lie in public bins: location and
               spread of y, and an interval that holds most values of each term (``located``)
    moments    (x, y)(x, y)', of terms relative to these intervals: a first V, and a first theta by least
               squares
    rough      scores and curvature: a Newton step, and a better V
    again      the same once more
    middle     scores, curvature, squared scores, and counts of their lengths: a Newton step, the
               variance of scores, and where to clip them
    last       scores: the last Newton step, averaged with the one before by their precisions

In a binomial model the first round measures terms only; a linear model has no round ``again``.  If no
score is shortened, lengths are not counted.  Records of large leverage count less; if the model is
right, the estimating equation keeps its solution.  Their curvature counts still less: then its noise is
small, and errors are stated too large rather than too small.

A privacy unit has up to m records, which count by their weights g, 1 without (``design``).  The sums
are over its records, and its total contribution is clipped.  S is the typical length of a unit's score
relative to that of one record, M = S^2, l^2 = sum g |u|^2 slope and w = min(1, L S/l):

    response   sum g e, e = 1 in the bin of the value, for the response and each of t terms, and
    moments    sum g (x, y)(x, y)', all times min(1, M/sum g)
    score      w sum g u r, shortened to length C.  In a binomial model without weights u is Q u, for a
               public matrix Q, and w is at most C/sum g |Q u| max(mean, 1 - mean): then no score is
               shortened, and none has a bias (Kuensch, Stefanski & Carroll 1989)
    curvature  min(w, A^2 M/l^2) sum g slope u u', of norm at most A^2 M
    squares    s s', s the score without Q, shortened to length B S
    counts     1 in the bin of the length of the score
    strata     s in the position of the unit's stratum
    sizes      1 in the position of the stratum

Q squeezes the directions of far values of an amount, with its powers (``ModelTerms.farthest``).  Records
there then count more, and only these directions have more noise.  There is no Q if scores are shortened:
it would hide groups of long scores in the noise of their counts.

If units lie in clusters that were drawn, the squares are those of clusters: z z', where z is the sum of
s over the units of a cluster, shortened to length R.

The solution weighted by g estimates the population's, and squares of units' scores show its variance
between surveys, however similar the records of one unit are (Binder 1983).  Let a stratum have n units
and Z as the sum of their scores.  If N units are drawn independently within H strata, the variance is
N/(N - H) times (the squares less the sum of Z Z'/n): the usual n/(n - 1) if all strata have equal sizes.
The same holds for clusters, all of which the plan lists; a stratum has the same share of clusters as of
units.

Claim.  Let the parts of a round be divided by the largest norms above and multiplied by roots of weights
that add up to 1.  One record then adds a vector v with |v|^2 <= 1, and two records' vectors differ by
at most |v - v'|^2 <= 2 + 2 (weight of the scores and strata); the squares of clusters are divided by 2
R B S. The same holds for units.

Separate groups of records (``groups``) are measured side by side, each with its own rounds: a unit whose
records are in k of them adds k such vectors, in different coordinates.  Its vector has at most the
squared norm k, and the vectors of two units differ by at most k times the bound above, also if they are
in different groups.

Proof.  Each part has norm at most 1 before it is multiplied: a sum of matrices g x x' has at most the
norm sum g |x|^2.  Scores differ by at most 2, in strata too.  The inner product of two units' other
parts is a sum of weights, none negative, times (u.u')^2, (s.s')^2, 0 or 1: never negative, so they
differ by at most sqrt(2) in norm.  For clusters: shortening z to length R increases no distance of two
z, and |z z' - y y'| <= (|z| + |y|) |z - y| <= 2 R |z - y|.  A unit that comes moves one z by at most B
S, one that is replaced moves one z by twice, or two by once, that: over 2 R B S by at most 1, and 2.
QED

A unit adds the vector in K whole steps, rounded: norms grow by at most sqrt(d)/2 + 2 steps, and those
of differences by at most sqrt(d) + 2, for d numbers, rounding of floating point included.  Every
operation acts on each unit alone, number by number: there are no matrix products, whose rounding may
depend on the position of a row, and means are looked up in a public table.  So a unit's vector is the
same to the last bit, whatever the other units are.  All numbers have noise of the same variance in
steps, and K gives each round its share.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Literal

import numpy as np

from dpcore.arrays import Floats
from dpcore.domain.adjacency import Adjacency
from dpcore.releases.models.design import SIMPLE, SurveyDesign
from dpcore.releases.models.point import ScorePoint
from dpcore.releases.models.terms import ModelTerms

STEPS = 2**18
"""K of the round with the largest share."""

FEW, MANY = 1_250, 50_000
"""The two numbers of units, at ``USUAL_NOISE``, between which shares and radii are interpolated as
powers of the number."""

USUAL_NOISE = 12.0
"""The noise at alpha 1, in lengths of a unit's vector.  Units with a third of it count as three times as
many."""

SHARES = {
    "response": (0.06, 0.01),
    "moments": (0.14, 0.03),
    "rough": (0.12, 0.04),
    "again": (0.14, 0.06),
    "middle": (0.38, 0.2),
}
"""Shares of the precision, with few and with many units; the last round has the rest, including the
shares of rounds that a family does not have."""

PARTS = {
    "response": {"bins": 0.4, "terms": 0.6},
    "moments": {"moments": 1.0},
    "rough": {"scores": 0.5, "curvature": 0.5},
    "again": {"scores": 0.5, "curvature": 0.5},
    "middle": {"scores": 0.2, "curvature": 0.3, "squares": 0.1, "counts": 0.4},
    "last": {"scores": 1.0},
}
"""The parts of each round, with weights."""

WEIGHED_PARTS = {"scores": 0.4, "curvature": 0.5, "squares": 0.1}
"""The parts of the middle round if no score is shortened, so that lengths are not counted."""

CLUSTERED = 0.5
"""The weight of the squares of clusters in the middle round of a mean: sums over dozens of units are
long, so the noise of their squares is the largest error."""

BY_STRATUM = {"strata": 0.15, "sizes": 0.05}
"""Additional parts of the middle round if there are strata."""

CURVED, LEVERAGE, SQUARED = (1.3, 3.7), (1.3, 7.4), (2.2, 6.0)
"""A, L and B, in roots of the number of terms.  The less records of large leverage count, the more
coefficients move if the model is wrong."""

SHORTEST, CONDITIONAL = (2.8, 2.8), (3.0, 4.2)
"""The smallest C (shortening, or bounding by weights), in roots of the number of terms."""

ROUGHLY = (3.5, 6.0)
"""C of the rough Newton steps, in square roots of the number of terms and in units of S.  If a rare
category has lower counts, cutting moves only its coefficient.  With a small radius this coefficient did
not converge, and more often so with a larger budget."""

WIDE, ALIKE = (1.9, 4.0), 0.1
"""R, in lengths of the sum of a cluster's typical scores if they have this correlation."""

WIDER = 2.0
"""The factor on R for a single mean: noise allows it, and sums over similar units are long."""

LARGER = 2.0
"""The factor on B with weights, because large weights make long tails."""

LENGTHS = 11
"""The number of ends of length bins: the first is 1, or S/2, and each is sqrt(2) times the one before;
with weights there are more."""

BINS = 32
"""The number of bins of the response."""

Family = Literal["gaussian", "binomial", "poisson"]


@dataclass(frozen=True, eq=False)
class ModelRounds:
    """The rounds of a model.

    ``stddev``: the standard deviation of the noise in a number, in steps; ``groups``: the number of
    separate groups of records, of which this is one; ``clear``: ``USUAL_NOISE`` over the noise.
    """

    terms: ModelTerms
    family: Family
    rows: int
    adjacency: Adjacency
    stddev: float = 0.0
    design: SurveyDesign = SIMPLE
    groups: int = 1
    clear: float = 1.0

    @property
    def rounds(self) -> tuple[str, ...]:
        left_out = "again" if self.family == "gaussian" else ""
        if not self.parts_of("response"):
            left_out = "response"
        return tuple(name for name in PARTS if name != left_out)

    @property
    def located(self) -> Mapping[int, Floats]:
        """The edges of bins of the terms of which an interval is found (``ModelTerms.edges``).

        Empty in a Poisson model.  There, if the interval leaves out a small cluster far away, the
        cluster's records have so much leverage that they count for nothing, and no later round notices.
        """
        return {} if self.family == "poisson" else self.terms.edges

    @property
    def weighed(self) -> bool:
        """Whether scores are bounded by weights beforehand, instead of shortened.  With the survey's
        weights this would be biased if they depend on the response."""
        return self.family == "binomial" and not self.design.steps

    def scaled(self, few_and_many: tuple[float, float], least: float = 1.0) -> float:
        """Interpolate between the numbers for few and for many units, as if at least ``least``."""
        few, many = few_and_many
        units = self.rows / self.design.members * self.clear
        if self.design.steps:  # usual weights leave half of the information
            units /= 2
        units = max(units, least)
        place = math.log(units / FEW) / math.log(MANY / FEW)
        return float(few * (many / few) ** min(max(place, 0.0), 1.0))

    @cached_property
    def shares(self) -> dict[str, float]:
        """The share of the precision for each round."""
        # A single mean converges in the first rounds, however few units there are.
        least = 4.0 * FEW if self.terms.size == 1 else 1.0
        found = {name: self.scaled(SHARES[name], least) for name in self.rounds[:-1]}
        return found | {"last": 1 - sum(found.values())}

    @cached_property
    def radii(self) -> dict[str, float]:
        """The clipping radii: A, B and the smallest C of the module's docstring, in units of S."""
        root, size = math.sqrt(self.terms.size), self.design.size
        shortest = root * self.scaled(CONDITIONAL if self.weighed else SHORTEST)
        pairs = (("leverage", LEVERAGE), ("squared", SQUARED), ("curvature", CURVED))
        found = {name: root * size * self.scaled(pair) for name, pair in pairs}
        if self.design.steps:
            found["squared"] *= LARGER
        # A whole cluster may lie in one of the separate groups.
        rows, clusters = self.rows * self.groups, max(self.design.clusters_in_survey, 1)
        units = max(rows / self.design.members / clusters, 1.0)
        alike = math.sqrt(units * (1 + ALIKE * (units - 1)))
        found["cluster"] = root * size * self.scaled(WIDE) * alike
        if self.terms.size == 1:
            found["cluster"] *= WIDER
        found["curvature"] *= math.sqrt(self.design.members) / size
        return found | {"shortest": shortest * size}

    @property
    def rough_radius(self) -> float:
        """The radius C to which scores are clipped in the rough Newton steps."""
        return self.scaled(ROUGHLY) * math.sqrt(self.terms.size) * self.design.size

    @cached_property
    def lengths(self) -> Floats:
        """The ends of the bins of lengths of scores."""
        first = math.sqrt(self.terms.size) * max(self.design.size / 2, 1.0)
        number = LENGTHS + 3 * bool(self.design.steps)
        return np.asarray(first * 2.0 ** (np.arange(number) / 2))

    def parts_of(self, name: str) -> Mapping[str, float]:
        """The parts that a round measures, with weights that add up to 1."""
        if name == "response":
            needed = {"bins": self.family != "binomial", "terms": bool(self.located)}
            parts = {part: weight for part, weight in PARTS[name].items() if needed[part]}
            return {part: weight / sum(parts.values()) for part, weight in parts.items()}
        if name != "middle":
            return PARTS[name]
        parts = WEIGHED_PARTS if self.weighed else PARTS[name]
        if self.design.clusters and self.terms.size == 1:
            rest = (1 - CLUSTERED) / (1 - parts["squares"])
            parts = {part: rest * weight for part, weight in parts.items()} | {"squares": CLUSTERED}
        if not self.design.strata:
            return parts
        rest = 1 - sum(BY_STRATUM.values())
        return {part: rest * weight for part, weight in parts.items()} | BY_STRATUM

    # Rounds as vectors of whole numbers

    def numbers_of(self, part: str) -> int:
        p = self.terms.size
        together = self.moments_size * (self.moments_size + 1) // 2
        curved = p * (p + 1) // 2
        (strata, _), ends = self.design.sizes, len(self.lengths)
        sizes = {"bins": BINS, "moments": together, "scores": p, "counts": ends + 1}
        sizes["terms"] = sum(len(each) - 1 for each in self.located.values())
        return (sizes | {"strata": strata * p, "sizes": strata}).get(part, curved)

    @property
    def moments_size(self) -> int:
        """The rows of the matrix of moments, which always has a constant and the response."""
        return self.terms.size + 1 + (self.terms.constant is None)

    @cached_property
    def steps(self) -> dict[str, int]:
        """The scale K of each round: a vector of length one is K whole steps."""
        # All rounds have the same noise, so a round's price is K^2 times its squared sensitivity.
        wanted = {n: math.sqrt(self.shares[n] / self._moved(n, 1.0)) for n in self.rounds}
        return {n: round(STEPS * each / max(wanted.values())) for n, each in wanted.items()}

    def _moved(self, name: str, squared: float) -> float:
        """The squared sensitivity, for vectors of length 1 times ``squared``."""
        moved = 2 + 2 * self._signed(name)
        return self._shared * self.adjacency.squared(moved=moved * squared, present=squared)

    @property
    def _shared(self) -> int:
        """The largest number of groups that contain one unit's records."""
        return min(self.groups, self.design.members)

    def _signed(self, name: str) -> float:
        """The weight of components that may have opposite signs for two units."""
        signed = {"scores", "strata"} | ({"squares"} if self.design.clusters else set())
        return sum(weight for part, weight in self.parts_of(name).items() if part in signed)

    @cached_property
    def laws(self) -> tuple[tuple[int, Fraction], ...]:
        """For each round, the number of values of all parts and the squared sensitivity of its sums."""
        found = []
        for name in self.rounds:
            numbers, steps = self.width(name), self.steps[name]
            rounded = math.isqrt(numbers) + 1
            if self.design.clusters:  # two clusters may be rounded
                rounded *= 2
            moved = 2 + 2 * Fraction(self._signed(name))
            # Whole numbers with roots rounded up, so that the bound holds exactly.
            far = math.isqrt(math.ceil(moved * steps**2)) + 1 + rounded + 2
            near = steps + rounded // 2 + 1 + 2
            squared = self.adjacency.squared(moved=far**2, present=near**2)
            found.append((self.groups * numbers, self._shared * Fraction(squared)))
        return tuple(found)

    def width(self, name: str) -> int:
        return sum(self.numbers_of(part) for part in self.parts_of(name))

    @property
    def largest(self) -> int:
        """The largest number, in size, that one record contributes."""
        return max(self.steps.values()) + 2

    def radius_of(self, part: str, point: ScorePoint) -> Floats:
        """The largest norm (t,) of a unit's contribution to a part of a round, such as "moments"."""
        most = float(self.design.members)
        constant = {
            "bins": most,
            "terms": most * math.sqrt(len(self.located)),
            "counts": 1.0,
            "moments": most * (self.terms.norm_squared + 1.0 + (self.terms.constant is None)),
            "curvature": self.radii["curvature"] ** 2,
            "squares": self.radii["squared"] ** 2,
            "strata": self.radii["squared"],
            "sizes": 1.0,
        }
        if part == "scores":
            return point.radius
        if part == "squares" and self.design.clusters:
            # Scores are rounded before they are added up.
            constant[part] = 2.01 * self.radii["cluster"] * self.radii["squared"]
        return np.full(len(point.theta), constant[part])

    def per_step(self, part: str, point: ScorePoint) -> Floats:
        """The size (t,) of a step of a part."""
        name = self.rounds[point.number]
        weight = self.parts_of(name)[part]
        return self.radius_of(part, point) / (math.sqrt(weight) * self.steps[name])

    @cached_property
    def edges(self) -> Floats:
        """The edges (BINS + 1,) of the bins of the response."""
        first, last = self.terms.ends
        if self.family == "poisson":
            # Bounds of counts are often far above most counts.
            return np.asarray(np.r_[0.0, np.geomspace(min(1.0, last / 2), last, BINS)])
        return np.linspace(first, last, BINS + 1)

    def _place(self, name: str, part: str) -> int:
        parts = [*self.parts_of(name)]
        return sum(self.numbers_of(each) for each in parts[: parts.index(part)])
