"""Is noise drawn anew for every number, in every round?  An exact test on signs of the noise.

If two noise values are independent and symmetric, their signs agree with probability 1/2, whatever their
laws and widths.  So over the ``seen`` outputs where neither value is zero (Hoeffding 1963),

    P(|agreements - disagreements| >= t) <= 2 exp(-t^2/(2 seen))

Numbers are compared within a round, across rounds, and with the same number of an earlier call: noise
that is reused, negated, or made from few draws agrees (or differs) far too often.  The audit of width
misses these faults, because each number has the right marginal law.

>>> noise = np.random.default_rng(1).laplace(size=(200, 3))
>>> def is_fresh(*rounds):
...     signs = Signs()
...     signs.add(rounds)
...     return signs.bound(1e-6).passed
>>> is_fresh(noise), is_fresh(noise, noise), is_fresh(noise, -noise[:, ::-1])
(True, False, False)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dpcore.arrays import Floats

MOST = 128
"""The most numbers that are compared over all rounds; each compared round contributes at least one."""

MOST_ROUNDS = 1024
"""The most rounds that are compared, evenly spaced: time and memory grow with their square."""


@dataclass(frozen=True)
class Freshness:
    """The test of freshness; ``alike``: the largest excess, over all pairs, of equal signs over
    different ones or the reverse (0 to 1); ``pairs``: how many pairs of numbers were compared."""

    alike: float
    pairs: int
    passed: bool


@dataclass
class Signs:
    """For each pair of numbers: sign agreements minus disagreements over all outputs, and their total
    number.

    ``each``: how many numbers of a round are compared.
    """

    excess: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    seen: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    before: NDArray[np.float32] | None = None
    each: int = 0

    def add(self, rounds: Sequence[Floats]) -> None:
        """Add the noise (n, k) of each round in n outputs; NaN where none was drawn."""
        if not rounds:
            return
        kept = np.linspace(0, len(rounds) - 1, min(len(rounds), MOST_ROUNDS)).astype(int)
        rounds = [rounds[number] for number in kept]
        if not self.each:
            longest = max(noise.shape[1] for noise in rounds)
            self.each = max(1, min(longest, MOST // len(rounds)))
        each = self.each
        # In single precision sums of signs are exact up to 2^24 outputs.
        several = np.zeros((len(rounds[0]), len(rounds), each), dtype=np.float32)
        for number, noise in enumerate(rounds):
            count = noise.shape[1]
            kept = noise[:, np.linspace(0, count - 1, min(count, each)).astype(int)]
            several[:, number, : kept.shape[1]] = np.nan_to_num(np.sign(kept))
        signs = several.reshape(len(several), -1)
        counted = np.abs(signs)
        if not len(self.seen):
            self.excess, self.seen = np.zeros((2, signs.shape[1], signs.shape[1]))
        self.excess += np.triu(signs.T @ signs, 1)
        self.seen += np.triu(counted.T @ counted, 1)
        if self.before is not None:  # on the diagonal: the same number in the previous call
            both = signs[: len(self.before)] * self.before[: len(signs)]
            self.excess += np.diag(both.sum(axis=0))
            self.seen += np.diag(np.abs(both).sum(axis=0))
        self.before = signs

    def bound(self, error: float) -> Freshness | None:
        """The test's result; it rejects fresh noise with a probability of at most ``error``."""
        pairs = np.triu_indices(len(self.seen))
        excess, seen = np.abs(self.excess[pairs]), self.seen[pairs]
        if not seen.any():
            return None
        evidence = excess**2 / (2 * np.maximum(seen, 1))
        alike = float((excess / np.maximum(seen, 1))[np.argmax(evidence)])
        limit = math.log(2 * len(seen) / error)
        return Freshness(alike, len(seen), bool(evidence.max() < limit))
