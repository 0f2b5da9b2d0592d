"""The exponential mechanism over finite public sets (McSherry & Talwar 2007), sampled exactly.

The statistic is a score for every candidate of every choice, whole numbers, the lower the better:

    values   scores of choice 0, then of choice 1, ...      size = choices x candidates
    result   the number of the chosen candidate, for each choice
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpcore.accounting import exponential_scale
from dpcore.budget import Budget
from dpcore.events import ExponentialEvent
from dpcore.sampling import _validate
from dpcore.sampling.choice import exponential_choices
from dpcore.sampling.discrete_laplace import LARGEST_SCALE
from dpcore.sampling.source import RandomSource
from dpcore.statistic import Noisy


@dataclass(frozen=True)
class ExponentialMechanism:
    """P(i) proportional to exp(-score_i/scale): (2 sensitivity/scale)-DP for each choice, exactly.

    ``candidates``: how many each choice has; ``sensitivity``: the most by which a neighbour changes
    any score.
    """

    size: int
    candidates: int
    sensitivity: Fraction
    scale: Fraction

    sparse = False

    @classmethod
    def within(
        cls, share: Budget, choices: int, candidates: int, sensitivity: Fraction
    ) -> ExponentialMechanism:
        """The mechanism that spends all of the share's alpha, the same for each choice."""
        scale = exponential_scale(sensitivity, choices, share.alpha)
        _validate.positive_rational("scale", scale, LARGEST_SCALE)
        return cls(choices * candidates, candidates, sensitivity, scale)

    @property
    def event(self) -> ExponentialEvent:
        return ExponentialEvent(self.sensitivity, self.scale, self.size // self.candidates)

    def draw(
        self, values: NDArray[np.int64], cells: NDArray[np.int64] | None, source: RandomSource
    ) -> Noisy:
        scores = values.reshape(-1, self.candidates)
        chosen = exponential_choices(scores, self.scale, source)
        return Noisy(chosen, reproducible=source.reproducible)
