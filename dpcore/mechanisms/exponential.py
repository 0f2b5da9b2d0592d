"""The exponential mechanism over finite public sets, drawn exactly.

Claim.  Input: several choices, each with a whole-number score for every candidate; lower is better.
Neighbours: any relation under which every score moves by at most ``sensitivity`` = D, and the largest
moves of all choices add up to at most k D, k = ``selections``: the number of choices, or less where no
neighbour changes all of them, because each is about one group of records.  Output: for each choice the
number i of a candidate, independently, with P(i) proportional to exp(-score_i/scale).  It is (2 k
D/scale, 0, 0)-DP, and k (2 D/scale)^2/8-zCDP.

    values   scores of choice 0, then of choice 1, ...      size = choices x candidates
    result   the number of the chosen candidate, for each choice

Preconditions.  scale lies between 2^-45 and 2^45 (``within`` checks it), there is a choice, and
2 k D <= alpha scale (the privacy line checks it).  D is the release's claim, proved there.

Proof.  Where no score of a choice moves by more than d, a neighbour changes the weight exp(-score/scale)
of each candidate by a factor of at most exp(d/scale), and the sum of all weights by at most the same
factor in the opposite direction; choices are independent, and the sum of all d is at most k D. The
log-ratios of all candidates of a choice lie within an interval of length a = 2 d/scale, not 2 a: the
choice is a-bounded-range, and so a^2/8-zCDP; rho adds up over choices, and the sum of all d^2 is at most
D times the sum of all d, so at most k D^2.  Where d = 0 a choice has the same law for both neighbours:
groups that no neighbour reaches cost nothing.

Lemma (``relative_scores``; Raskhodnikova & Smith 2016).  Where a neighbour moves the value v_i of
candidate i by at most d_i, the score max over j of (v_i - v_j)/(d_i + d_j) moves by at most 1: each of
its terms does, as v_i - v_j moves by at most d_i + d_j.  Rounded to whole steps of 1/``WHOLE``, it moves
by at most two steps more.  The candidate of least v scores 0.  So with probability at least 1 - p the
chosen candidate i scores at most T = (scale/WHOLE) ln(candidates/p), and v_i exceeds any v_j by at most
T (d_i + d_j).

Ranges.  Every release checks that |score| < 2^61 (``largest_statistic``), so differences fit in 64 bits.
Candidates are drawn uniformly and kept by a geometric number (``sampling.choice``): no weight is ever
computed.

Source.  McSherry & Talwar 2007, Theorem 6; Cesar & Rogers 2021, Lemma 3.4 (zCDP).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from scipy.special import softmax

from dpcore.accounting.budget import Budget, root_below
from dpcore.arrays import Floats, Integers
from dpcore.line.mechanism import AS_STATED, Event, Mechanism, Outputs, Round
from dpcore.line.statistic import Noisy, Statistic
from dpcore.sampling import _validate
from dpcore.sampling.choice import exponential_choices
from dpcore.sampling.discrete_laplace import LARGEST_SCALE
from dpcore.sampling.source import RandomSource

WHOLE = 2**20
"""The steps of a relative score per unit."""

LARGEST_RELATIVE = 2**48
"""The largest relative score: up to here double precision errs by less than half a step."""

COUNTED = 256
"""With more candidates than this, an audit does not count how often each is chosen."""


@dataclass(frozen=True)
class ExponentialEvent(Event):
    """Choices i from finite sets, P(i) proportional to exp(-score_i/scale).

    ``sensitivity``: the largest change of any score between neighbours; ``selections``: the largest
    changes of all choices add up to at most ``selections`` times ``sensitivity``.
    """

    kind = "exponential"

    sensitivity: Fraction
    scale: Fraction
    selections: int

    @property
    def pure_alpha(self) -> Fraction:
        return 2 * self.sensitivity * self.selections / self.scale

    @property
    def concentrated(self) -> tuple[Fraction, Fraction]:
        return exponential_rho(self.pure_alpha, self.selections), Fraction(0)

    def covered_by(self, share: Budget) -> bool:
        spent = 2 * self.sensitivity * self.selections
        return self.scale > 0 and self.selections > 0 and spent <= share.alpha * self.scale


@dataclass(frozen=True)
class ExponentialMechanism(Mechanism):
    """P(i) proportional to exp(-score_i/scale): (2 sensitivity/scale)-DP for each choice, exactly.

    ``candidates``: how many each choice has; ``sensitivity``: the largest change of any score between
    neighbours; ``selections``: the largest changes of all choices add up to at most ``selections``
    times ``sensitivity``.
    """

    candidates: int
    sensitivity: Fraction
    scale: Fraction
    selections: int

    side_by_side = True
    comparable = True

    @classmethod
    def within(
        cls,
        share: Budget,
        choices: int,
        candidates: int,
        sensitivity: Fraction,
        selections: int = 0,
    ) -> ExponentialMechanism:
        """Return the mechanism that spends all of the share's alpha, with the same scale for each
        choice.

        ``selections``: as for the class; by default the number of choices.
        """
        selections = selections or choices
        scale = exponential_scale(sensitivity, selections, share)
        _validate.positive_rational("scale", scale, LARGEST_SCALE)
        return cls(choices * candidates, candidates, sensitivity, scale, selections)

    @classmethod
    def relative(cls, share: Budget, candidates: int) -> ExponentialMechanism:
        """Return the mechanism for one choice that is scored by ``relative_scores``."""
        # One step more for rounding to whole steps, and one for double precision.
        return cls.within(share, 1, candidates, Fraction(WHOLE + 2))

    def shortfall(self, chance: float) -> float:
        """The bound T of the module's lemma for one choice by ``relative_scores``; ``chance``: p."""
        return float(self.scale) / WHOLE * math.log(self.candidates / chance)

    @property
    def choices(self) -> int:
        """The number of choices."""
        return self.size // self.candidates

    @property
    def event(self) -> ExponentialEvent:
        return ExponentialEvent(self.sensitivity, self.scale, self.selections)

    def draw(self, statistic: Statistic, source: RandomSource) -> Noisy:
        scores = statistic.values.reshape(-1, self.candidates)
        chosen = exponential_choices(scores, self.scale, source)
        return Noisy(chosen, reproducible=source.reproducible)

    def rounds_of(
        self, outputs: Outputs, exact: Statistic, factors: Floats = AS_STATED
    ) -> list[Round]:
        """The rounds of outputs; ``exact``: scores (k,) for all outputs, or (n, k)
        for each output."""
        number, choices = outputs.shape
        costs = exact.values.reshape(-1, choices, self.candidates) / float(self.scale)
        costs -= costs.min(axis=2, keepdims=True)
        # Broadcast, not tiled: costs that all outputs share are not copied for each of them.
        of_each = np.broadcast_to(costs, (number, choices, self.candidates))
        places = outputs.astype(np.int64)[:, :, None]
        chosen = np.take_along_axis(of_each, places, axis=2).sum(axis=(1, 2))
        # The least cost is zero, so that no sum is below 1.
        sums = [np.log(np.exp(-costs / each).sum(axis=2)).sum(axis=1) for each in factors]
        logs = -np.outer(chosen, 1 / factors) - np.stack(sums, axis=1)
        if self.candidates > COUNTED:
            return [Round(logs)]
        chances = np.broadcast_to(softmax(-costs[:, 0], axis=1), (number, self.candidates))
        return [Round(logs, choice=(places[:, 0, 0], chances))]

    def moved_by(self, near: Statistic, far: Statistic) -> float:
        moves = np.abs(near.values - far.values).reshape(-1, self.candidates).max(axis=1)
        most = max(Fraction(int(moves.max())), Fraction(int(moves.sum())) / self.selections)
        return float(most / self.sensitivity)

    def distance(self, near: Statistic, far: Statistic) -> float:
        spans = np.ptp((near.values - far.values).reshape(-1, self.candidates), axis=1)
        return float(spans.sum()) / float(self.scale)


def relative_scores(values: Floats, moves: Floats) -> Integers:
    """The whole-number scores (k,) of candidates whose values (k,) change by at most ``moves`` (k,)."""
    behind = (values[:, None] - values) / (moves[:, None] + moves)
    # Cutting scores at a public number increases no difference between them.
    cut = np.minimum(np.rint(behind.max(axis=1) * WHOLE), LARGEST_RELATIVE)
    return np.asarray(cut.astype(np.int64))


def exponential_scale(sensitivity: Fraction, selections: int, share: Budget) -> Fraction:
    """The scale at which ``selections`` choices together cost the share's alpha, or its rho."""
    alpha = root_below(8 * share.rho * selections) if share.rho else share.alpha
    if alpha <= 0:
        raise ValueError("alpha must be positive")
    return 2 * sensitivity * selections / alpha


def exponential_rho(alpha: Fraction, selections: int = 1) -> Fraction:
    """The price in rho of ``selections`` choices that together cost ``alpha``."""
    return alpha**2 / (8 * selections)
