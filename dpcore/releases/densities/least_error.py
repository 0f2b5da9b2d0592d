"""A bandwidth for one column by cross-validation (Hall, Rinaldo & Wasserman 2013, 4.1.2).

Let f_h be the kernel estimate with bandwidth h from the records x_1, ..., x_n.  Its integrated squared
error is estimated, up to a constant that does not depend on h, by

    J(h) = integral of f_h^2 - (2/n) sum_i f_h(x_i without record i)
         = (1/n^2) sum_ij K2(x_i, x_j) - 2/(n (n - 1)) sum_(i != j) K(x_i, x_j)

with the kernel K of h, and K2 = K * K. The exponential mechanism chooses the bandwidth from a public
ladder, with relative scores of the values J(h) + V(h) (``mechanisms.exponential``), where V(h) is the
squared error of the noise.

**Sensitivity.**  Replacing record a by b moves J(h) by the mean over the n - 1 others y of
g(b, y) - g(a, y), g = 2 (n - 1)/n^2 K2 - (4/n) K, and by (K2(b, b) - K2(a, a))/n^2.  A periodic K(x, y)
is P(x - y), a reflected one P(x - y) + P(x + y), for one function P of period 1 or 2; likewise K2 of P2.
So with p = 1 or 2 such terms

    D = p range(2 (n - 1)/n^2 P2 - (4/n) P) + (p - 1) range(P2)/n^2,

about 1.08 p/(n h).  P is a sum of w_j cos(2 pi j t/period).  It is even and periodic, so its slope is
zero at each extreme, which differs from the nearest value on a grid of step s by at most max |P''|
s^2/8.  Fewer records than n move no more.

**Rounding.**  A mean of a basis function is a sum over at most C cells of weights that add up to 1, and
errs by at most (C + 64) u times its height, u = 2^-53.  The two sums that make J multiply such means by
numbers of at most lambda and 4 lambda, so J errs by at most 32 (C + 64) u times the sum of lambda and
squared heights.  D counts this twice.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpcore.accounting.budget import Budget
from dpcore.arrays import Floats, Integers
from dpcore.domain.tally import Tally
from dpcore.line.statistic import Noisy
from dpcore.mechanisms.exponential import ExponentialMechanism, relative_scores
from dpcore.releases.base import ErrorStatement
from dpcore.releases.densities.bandwidth import silverman
from dpcore.releases.densities.basis import Basis
from dpcore.releases.densities.density import Density
from dpcore.releases.table import LEVEL

_BLOCK = 2**12
"""The number of occupied cells whose basis functions are in memory at a time."""


@dataclass(frozen=True)
class LeastError:
    """A cross-validated choice; ``densities``: at each bandwidth, ascending; ``share``: its price."""

    densities: tuple[Density, ...]
    share: Budget

    @property
    def _smallest(self) -> Density:
        return self.densities[0]

    @property
    def smallest(self) -> float:
        """The smallest bandwidth."""
        return self._smallest.bandwidths[0]

    @property
    def ladder(self) -> Floats:
        """The bandwidths (candidates,)."""
        return np.array([density.bandwidths[0] for density in self.densities])

    @property
    def widest(self) -> float:
        """The largest bandwidth."""
        return float(self.ladder[-1])

    @cached_property
    def mechanism(self) -> ExponentialMechanism:
        return ExponentialMechanism.relative(self.share, len(self.densities))

    @cached_property
    def _basis(self) -> Basis:
        """All functions that the smallest bandwidth keeps, on the column's own grid."""
        shape = self._smallest.answered.shape
        return self._smallest.functions(shape, (self.smallest,), shape)

    @cached_property
    def _damping(self) -> Floats:
        """lambda (candidates, coefficients)."""
        size, kept = self._basis.shape[0], self._basis.frequencies[:, 0]
        return np.stack([self._basis.line(size, h)[kept] for h in self.ladder.tolist()])

    @cached_property
    def sensitivities(self) -> Floats:
        """The sensitivities D (candidates,)."""
        basis, n = self._basis, self._smallest.rows
        terms = 2 // basis.half_turns
        steps = math.ceil(8 / self.smallest)
        waves = basis.functions(np.linspace(0, 1, steps + 1)[:, None])
        kernel = waves[0] * waves / terms  # of P at these points, except for the constant
        turns = np.pi * basis.frequency(basis.frequencies[:, 0])
        once, twice = self._damping, self._damping**2

        def spread(weights: Floats) -> Floats:
            """The range, over all points, of the sum over k of weights_k kernel_k."""
            found = weights @ kernel.T
            curved = np.abs(weights) @ (waves[0] ** 2 * turns**2) / terms
            return np.asarray(np.ptp(found, axis=1) + 2 * curved / (8 * steps**2))

        moved = spread(2 * (n - 1) / n**2 * twice - 4 / n * once)
        own = spread(twice) / n**2
        rounded = 64 * (basis.shape[0] + 64) * 2.0**-53 * (once @ basis.heights)
        return np.asarray((terms * moved + (terms - 1) * own) * (1 + 2.0**-30) + rounded)

    @cached_property
    def noise(self) -> Floats:
        """The squared errors V (candidates,) of the noise."""
        return np.array([density.noise_squared for density in self.densities])

    def errors(self, tally: Tally) -> Floats:
        """The estimated errors J (candidates,): private."""
        n = self._smallest.rows
        means, own = np.zeros(self._basis.size), np.zeros(len(self.densities))
        for start in range(0, len(tally.cells), _BLOCK):
            block = slice(start, start + _BLOCK)
            weights = tally.counts[block] / n
            places = (tally.cells[block] + 0.5) / self._basis.shape[0]
            waves = self._basis.functions(places[:, None])
            means += weights @ waves
            own += self._damping @ (weights @ waves**2)
        squared = means**2
        # Pairs of a record with itself are excluded.
        paired = self._damping @ squared - own / n
        return np.asarray(self._damping**2 @ squared - 2 * n / max(n - 1, 1) * paired)

    def scores(self, tally: Tally) -> Integers:
        """The exact scores (candidates,): private."""
        return relative_scores(self.errors(tally) + self.noise, self.sensitivities)

    def bandwidths(self, noisy: Noisy) -> tuple[float]:
        """The bandwidth that was chosen."""
        return (float(self.ladder[noisy.values[0]]),)

    def stated(self, noisy: Noisy) -> dict[str, object]:
        """The chosen bandwidth, for the manifest."""
        return {"candidates": len(self.densities), "largest": self.widest}

    def expected_error(self) -> tuple[ErrorStatement, ...]:
        """The expected error of the choice, compared with the rule of thumb."""
        usual = silverman(0.25, self._smallest.rows)
        nearest = int(np.argmin(np.abs(np.log(self.ladder / usual))))
        moves = float(self.sensitivities[nearest] + self.sensitivities.max())
        worse = self.mechanism.shortfall(1 - LEVEL) * moves
        return (
            ErrorStatement(
                "90% bound on the error that the noisy choice of the bandwidth adds to the density, as a"
                " fraction of a uniform density",
                math.sqrt(worse),
                "the square root of an integrated squared error, in addition to the one at the"
                f" rule-of-thumb bandwidth ({usual:.3g} if the middle half of the records spans a"
                " quarter of the range)",
            ),
        )
