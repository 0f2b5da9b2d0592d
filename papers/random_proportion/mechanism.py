"""One count, exact if few records are on one side: random differential privacy.

Claim.  Input: the number C of n records that satisfy a condition.  Neighbours: n + 1 independent draws
of one population, the last of which replaces the last but one.  Output: C itself where C < u or
C > n - u, for the public number u = ``exact_below``; otherwise C with discrete Laplace noise.  It is
(alpha, 0, gamma)-random DP with alpha = l1_sensitivity/scale and

    gamma = 2 u (n + 1 - u) / (n (n + 1)),    u <= (n + 1)/2.

Preconditions.  Those of discrete Laplace noise; 0 < gamma <= the share's gamma < 1 (the privacy line
checks them); only releases of one record per person, n being public, make this mechanism.

Proof.  Let s of the n + 1 draws satisfy the condition.  If the last two draws agree, both tables have
the same count.  If not, which happens with probability f(s) = 2 s (n + 1 - s)/(n (n + 1)) given s, one
table has the count s and the other s - 1.  If one of these is published exactly, then s <= u or
s >= n + 1 - u, and f(s) <= f(u) = gamma, as f is symmetric and grows up to (n + 1)/2.  Otherwise both
get noise, and the counts differ by 1.

Ranges.  As for discrete Laplace noise; gamma is an exact fraction.

Source.  Hall 2012, section 5.2.2, equation 5.1, in the sharper form for both directions.

>>> RandomProportion.within(Budget.of("1", 0, "0.1"), Fraction(1), 6366).exact_below
336
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dpcore.accounting.budget import Budget
from dpcore.arrays import Booleans, Floats, Integers
from dpcore.mechanisms.laplace import laplace_scale
from dpcore.mechanisms.random_laplace import RandomLaplace


@dataclass(frozen=True)
class RandomProportion(RandomLaplace):
    """Discrete Laplace noise on a count; exact if fewer than ``exact_below`` are on one side."""

    rows: int

    @classmethod
    def within(  # type: ignore[override]
        cls, share: Budget, l1_sensitivity: Fraction, rows: int
    ) -> RandomProportion:
        """The mechanism that spends all of the share's alpha, with the highest u for its gamma.

        Raises ``ValueError`` if the share's gamma does not allow an exact count of 0.
        """
        possible = range((rows + 1) // 2 + 1)
        below = bisect_right(possible, share.gamma, key=lambda u: chance_of_change(u, rows)) - 1
        if below < 1:
            raise ValueError(
                f"random differential privacy of a count of {rows} records costs a gamma of at least"
                f" {2 / (rows + 1):.3g}; the release has {float(share.gamma):.3g}. Use more gamma, or"
                " the mechanism discrete-laplace"
            )
        scale = laplace_scale(l1_sensitivity, share.pure_alpha)
        return cls(1, l1_sensitivity, scale, below, chance_of_change(below, rows), rows)

    def exact(self, counts: Integers | Floats) -> Booleans:
        return np.asarray(np.minimum(counts, self.rows - counts) < self.exact_below)


def chance_of_change(s: int, rows: int) -> Fraction:
    """f(s): the probability that two of rows + 1 draws differ, if s of them satisfy the condition."""
    return Fraction(2 * s * (rows + 1 - s), rows * (rows + 1))
