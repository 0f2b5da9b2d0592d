"""Several of many candidates, chosen one after the other by the exponential mechanism.

This is a round of ``rounds``.  Each choice is made among the candidates that are left.  Given earlier
choices these are known, so it is e-bounded-range, e-DP and e^2/8-zCDP for e = 2 sensitivity/scale
(``exponential``); s choices cost s e and s e^2/8.

Lemma.  A choice whose log-ratios all lie in an interval of length e is mu-GDP for mu = e sqrt(pi/8).
For every test, let p and q be the chances that it rejects under either table.  Then p/q <= exp(t) and
(1 - p)/(1 - q) >= exp(t - e) for one t, so logit p - logit q <= e.  Now z = F^-1(p), F the normal
distribution function and f its density, has dz/dlogit p = F(1 - F)/f(z), and F(1 - F) <= exp(-z^2/2)/4:
2 F(|z|) - 1 is the chance that a normal number lies within |z|, its square that of two numbers, which is
at least that of the disc inside their square, 1 - exp(-z^2/2).  So dz/dlogit p <= sqrt(2 pi)/4 =
sqrt(pi/8), and F^-1(p) - F^-1(q) <= e sqrt(pi/8) for every test, which is mu-GDP.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from scipy.special import softmax

from dpcore.arrays import Floats, Integers
from dpcore.line.mechanism import AS_STATED, Mechanism, Outputs, Round
from dpcore.line.statistic import Noisy
from dpcore.mechanisms.exponential import ExponentialEvent
from dpcore.sampling.choice import exponential_choices
from dpcore.sampling.source import RandomSource

GAUSSIAN_PRICE = Fraction(3927, 10000)
"""At least pi/8: what a choice costs as Gaussian noise does, by the square of its alpha."""


@dataclass(frozen=True)
class Selection(Mechanism):
    """``selections`` of ``candidates``, P(i) proportional to exp(-score_i/scale), without replacement.

    The scores of several repetitions lie one after the other; so do, in the result, the numbers of the
    chosen candidates, in order.  ``sensitivity``: the most by which a neighbour changes any score.
    """

    candidates: int
    selections: int
    sensitivity: Fraction
    scale: Fraction

    @property
    def event(self) -> ExponentialEvent:
        return ExponentialEvent(self.sensitivity, self.scale, self.selections)

    @property
    def one_by_one(self) -> list[ExponentialEvent]:
        return self.selections * [ExponentialEvent(self.sensitivity, self.scale, 1)]

    def draw(self, values: Integers, cells: Integers | None, source: RandomSource) -> Noisy:
        scores = values.reshape(-1, self.candidates)
        left = np.tile(np.arange(self.candidates), (len(scores), 1))
        order = np.empty((len(scores), self.selections), dtype=np.int64)
        for selected in order.T:
            among = np.take_along_axis(scores, left, axis=1)
            place = exponential_choices(among, self.scale, source)[:, None]
            selected[:] = np.take_along_axis(left, place, axis=1)[:, 0]
            left = left[left != selected[:, None]].reshape(len(scores), -1)
        return Noisy(order.ravel(), reproducible=source.reproducible)

    def rounds_of(
        self, outputs: Outputs, cells: Integers, exact: Floats, factors: Floats = AS_STATED
    ) -> list[Round]:
        """``exact``: (n, candidates) scores; how often the first one is chosen is counted."""
        order, scores = outputs.astype(np.int64), exact / float(self.scale)
        logs = [self._log_chances(scores / factor, order) for factor in factors]
        return [Round(np.stack(logs, axis=1), choice=(order[:, 0], softmax(-scores, axis=1)))]

    def _log_chances(self, costs: Floats, order: Integers) -> Floats:
        """(n,) the log chances of choosing in this order, by scores over the scale."""
        found, left, rows = np.zeros(len(costs)), costs.copy(), np.arange(len(costs))
        for selected in order.T:
            above = left - left.min(axis=1, keepdims=True)  # of those left, or all underflow
            found -= above[rows, selected] + np.log(np.exp(-above).sum(axis=1))
            left[rows, selected] = np.inf
        return found
