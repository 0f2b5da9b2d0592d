"""Is each choice made with the chances that are stated?  By how often each candidate is chosen.

With the chances p of a candidate in n draws, given all that was drawn before, hits less the sum of p is
a sum of n differences of mean zero, each within an interval of length 1, whatever the draws before were
(Azuma 1967; Hoeffding 1963), so that

    P(|hits - sum of p| >= t) <= 2 exp(-2 t^2/n)

The width of a choice's law says whether it is as blunt as stated; this says whether it is made from what
is stated: a score of exact counts where noisy ones were to decide is neither blunter nor sharper.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from dpcore.arrays import Floats
from dpcore.line.mechanism import Choice


@dataclass(frozen=True)
class Frequencies:
    """``apart``: the largest difference between a candidate's share of the choices
    and its stated chance, as a part of all draws; ``passed``: whether chance may explain it."""

    apart: float
    passed: bool


@dataclass
class Hits:
    """For each choice: hits minus expected hits of each candidate (candidates,), and number of draws."""

    excess: dict[int, Floats] = field(default_factory=dict)
    draws: dict[int, int] = field(default_factory=dict)

    def add(self, choices: Sequence[Choice]) -> None:
        for number, (chosen, chances) in enumerate(choices):
            hits = np.bincount(chosen, minlength=chances.shape[1]) - chances.sum(axis=0)
            self.excess[number] = self.excess.get(number, 0.0) + hits
            self.draws[number] = self.draws.get(number, 0) + len(chosen)

    def bound(self, error: float) -> Frequencies | None:
        """The finding; it accuses right choices with a probability of at most ``error``."""
        if not self.excess:
            return None
        every = sum(len(each) for each in self.excess.values())
        evidence, apart = max(
            (2 * float(np.abs(e).max()) ** 2 / n, float(np.abs(e).max()) / n)
            for e, n in zip(self.excess.values(), self.draws.values(), strict=True)
        )
        return Frequencies(apart, evidence < math.log(2 * every / error))
