"""Is each choice made with the stated chances?  A test of how often each candidate is chosen.

In each of n draws a candidate has a chance p, given all earlier draws.  Hits minus the sum of p is then
a sum of n martingale differences, each within an interval of length 1 (Azuma 1967; Hoeffding 1963), so

    P(|hits - sum of p| >= t) <= 2 exp(-2 t^2/n)

The audit of width checks the scale of a choice; this test checks its scores.  It finds choices that
use exact instead of noisy counts: their scale is right.
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
    """The test of choices; ``apart``: the largest difference of a candidate's share from its chance."""

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
        """The test's result; it rejects correct choices with a probability of at most ``error``."""
        if not self.excess:
            return None
        every = sum(len(each) for each in self.excess.values())
        evidence, apart = max(
            (2 * float(np.abs(e).max()) ** 2 / n, float(np.abs(e).max()) / n)
            for e, n in zip(self.excess.values(), self.draws.values(), strict=True)
        )
        # A union bound over all candidates of all choices.
        return Frequencies(apart, evidence < math.log(2 * every / error))
