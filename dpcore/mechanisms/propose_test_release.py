"""The interquartile range by proposing, testing and releasing.

Claim.  Input: the counts of n = ``rows`` records over ``cells`` cells of one axis.  Neighbours: one
record is replaced, n being public.  With w the width of the range between the quartiles, in cells, and
H(w) = ln w / ln(1 + 1/ln n) in steps of 1/STEPS, output: the grid whose test was passed (1 or 2; 0 for
none) and, if one was, H with discrete Laplace noise.  With a = 1/test_scale = STEPS/scale it is
(3 a, beta, 0)-DP, and beta-approximately (3 a)^2/2-zCDP.

Two grids divide the line of H into cells, [k, k+1) and [k - 1/2, k + 1/2).  For one grid after the
other, A is how many records must be replaced to take H out of its cell.  Where A with discrete Laplace
noise of scale 1/a is above ``threshold``, H gets Laplace noise and is published; otherwise comes the
next grid, and after both of them no answer.  A width of 0 is a cell of its own, in which A counts as 0.

Preconditions.  n >= 3 and 0 < beta < 1 (``within`` checks them); 2/test_scale + STEPS/scale <= alpha and
twice the chance that a noisy 1 passes the test is at most beta, enclosed in whole numbers (the privacy
line checks them).

Proof.  Neighbours in the same cell: A moves by one and H by less than one: a for every test, a for
the noise.  In different cells: A is 1 at most in both, so that each test is passed with chance beta/2
at most.  H is rounded by a public table, whose entries in one cell are at most STEPS apart, so
rounding keeps the sensitivity.

Ranges.  H is a table of ``cells`` floats, the same for every survey; all else is whole numbers below
STEPS times the logarithm of the cells, or n.  Noise as for discrete Laplace noise.

Source.  Dwork & Lei 2009, section 4, with constants of our own: METHODS m.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise

import numpy as np

from dpcore.accounting.budget import Budget
from dpcore.accounting.threshold import least_threshold, passing_chance
from dpcore.arrays import Floats, Integers
from dpcore.line.mechanism import Event, Mechanism, Outputs, WorstTable, one_record_moved
from dpcore.line.statistic import Noisy
from dpcore.mechanisms.laplace import laplace_chances, laplace_scale, log_cdf
from dpcore.sampling import _validate
from dpcore.sampling.discrete_laplace import LARGEST_SCALE, discrete_laplace
from dpcore.sampling.source import RandomSource

STEPS = 2**10

_NEVER = 2**61


@dataclass(frozen=True)
class ProposeTestReleaseEvent(Event):
    """Two tests whether a distance, which a record changes by one, is above ``threshold`` with discrete
    Laplace noise of ``test_scale``; then, where one was passed, noise of ``scale`` on a number that a
    neighbour in the same cell of the test changes by ``sensitivity`` at most.
    """

    kind = "propose-test-release"

    test_scale: Fraction
    threshold: int
    sensitivity: Fraction
    scale: Fraction

    def covered_by(self, share: Budget) -> bool:
        if min(self.test_scale, self.scale) <= 0 or self.threshold < 0 or share.beta <= 0:
            return False
        passing = passing_chance(self.test_scale, self.threshold, share.beta / 2)
        return self._alpha <= share.alpha and 2 * passing <= share.beta

    @property
    def concentrated(self) -> tuple[Fraction, Fraction] | None:
        if min(self.test_scale, self.scale) <= 0 or self.threshold < 0:
            return None
        return self._alpha**2 / 2, 2 * passing_chance(self.test_scale, self.threshold)

    @property
    def _alpha(self) -> Fraction:
        return 2 / self.test_scale + self.sensitivity / self.scale


@dataclass(frozen=True)
class ProposeTestRelease(Mechanism):
    """H with discrete Laplace noise, or no answer where a noisy distance is ``threshold`` at most:
    (2/test_scale + STEPS/scale, beta)-DP, beta twice the chance to pass at distance 1.

    The result is the grid that was passed (1 or 2; 0 for none) and H in steps, from the counts of
    ``cells`` cells of one axis.
    """

    cells: int
    rows: int
    test_scale: Fraction
    threshold: int
    scale: Fraction

    sparse = True
    side_by_side = True

    @classmethod
    def within(cls, share: Budget, cells: int, rows: int) -> ProposeTestRelease:
        """The mechanism that spends the share: a third of alpha for each test and for the release."""
        if rows < 3:
            raise ValueError("propose-test-release needs at least 3 rows")
        if not 0 < share.beta < 1:
            raise ValueError("propose-test-release needs beta between 0 and 1")
        test_scale = laplace_scale(Fraction(1), share.pure_alpha / 3)
        for scale in (test_scale, STEPS * test_scale):
            _validate.positive_rational("scale", scale, LARGEST_SCALE)
        threshold = least_threshold(test_scale, share.beta / 2)
        return cls(cells, cells, rows, test_scale, threshold, STEPS * test_scale)

    @property
    def event(self) -> ProposeTestReleaseEvent:
        return ProposeTestReleaseEvent(self.test_scale, self.threshold, Fraction(STEPS), self.scale)

    @property
    def base(self) -> float:
        """Of the logarithm H."""
        return 1 + 1 / math.log(self.rows)

    @cached_property
    def logarithms(self) -> Floats:
        """(cells,) H of every width; that of 0 is never published."""
        return np.log(np.maximum(np.arange(self.cells), 1)) / math.log(self.base)

    def width(self, steps: int) -> float:
        """The interquartile range, in cells, that a number of steps represents."""
        return math.exp(min(steps / STEPS * math.log(self.base), math.log(self.cells)))

    def draw(self, values: Integers, cells: Integers | None, source: RandomSource) -> Noisy:
        assert cells is not None  # the privacy line checks the layout
        ends = np.searchsorted(cells, self.cells * np.arange(self.size // self.cells + 1))
        tables = []
        for i, j in pairwise(ends.tolist()):
            tables.append(np.zeros(self.cells, dtype=np.int64))
            tables[-1][cells[i:j] % self.cells] = values[i:j]
        alike, which = np.unique(tables, axis=0, return_inverse=True)
        exact = np.array([[*self.distances(counts), self.steps(counts)] for counts in alike])[which]
        result = np.zeros((len(exact), 2), dtype=np.int64)
        for grid in (2, 1):  # the first grid whose test is passed
            noisy = exact[:, grid - 1] + discrete_laplace(self.test_scale, len(exact), source)
            result[noisy > self.threshold, 0] = grid
        noisy = exact[:, 2] + discrete_laplace(self.scale, len(exact), source)
        result[:, 1] = np.where(result[:, 0] > 0, noisy, 0)
        return Noisy(result.ravel(), reproducible=source.reproducible)

    def log_chances(
        self, outputs: Outputs, cells: Integers, exact: Floats, factors: Floats
    ) -> Floats | None:
        counts = np.zeros(self.cells, dtype=np.int64)
        counts[cells] = exact
        grid = outputs[:, 0].astype(np.int64)
        noise = np.where(grid > 0, outputs[:, 1] - self.steps(counts), np.nan)
        logs = laplace_chances(noise[:, None], float(self.scale), factors)
        short = self.threshold - np.array(self.distances(counts), dtype=np.float64)
        for i, wide in enumerate(float(self.test_scale) * factors):
            failed, passed = log_cdf(short, wide), log_cdf(-short - 1, wide)
            logs[:, i] += np.array([failed.sum(), passed[0], failed[0] + passed[1]])[grid]
        return logs

    @property
    def one_by_one(self) -> list[Budget]:
        """Two tests, each of which may fail, and the release."""
        passed = passing_chance(self.test_scale, self.threshold)
        return 2 * [Budget(1 / self.test_scale, passed)] + [Budget(STEPS / self.scale)]

    def moved_by(self, cells: Integers, near: Integers, far: Integers) -> float:
        return one_record_moved(near, far)

    def worst_counts(self, rows: int) -> Iterator[WorstTable]:
        """Records in two cells, with the quartiles ``threshold`` moves from meeting in one of them."""
        first, third = self._ranks
        low, wide = first - 1 + self.threshold, self.cells // 2
        if rows == self.rows and wide > 0 and low + self.threshold < third:
            yield "a test at its threshold", {0: low, wide: rows - 1 - low}, wide, 0

    def steps(self, counts: Integers) -> int:
        """H in steps: private."""
        return int(np.rint(self.logarithms[self._spread(counts)] * STEPS))

    def distances(self, counts: Integers) -> tuple[int, int]:
        """A of both grids: private."""
        spread = self._spread(counts)
        if spread == 0:
            return 0, 0
        up_to = np.concatenate([[0], np.cumsum(counts)])
        found = []
        for shift in (0.0, 0.5):
            number = np.floor(self.logarithms + shift)
            low = max(int(np.searchsorted(number, number[spread])), 1)
            high = int(np.searchsorted(number, number[spread], side="right"))
            found.append(min(self._to_narrow(up_to, low), self._to_widen(up_to, high)))
        return found[0], found[1]

    @property
    def _ranks(self) -> tuple[int, int]:
        return -(-self.rows // 4), -(-3 * self.rows // 4)

    def _spread(self, counts: Integers) -> int:
        first, third = np.searchsorted(np.cumsum(counts), self._ranks)
        return int(third - first)

    def _to_narrow(self, up_to: Integers, low: int) -> int:
        """Replacements that make the width less than ``low``: both quartiles among ``low`` cells."""
        first, third = self._ranks
        starts = np.arange(self.cells)
        ends = np.minimum(starts + low, self.cells)
        below = np.maximum(up_to[starts] + 1 - first, 0)
        return int((below + np.maximum(third - up_to[ends], 0)).min())

    def _to_widen(self, up_to: Integers, high: int) -> int:
        """Replacements that make the width ``high`` at least."""
        first, third = self._ranks
        starts = np.arange(self.cells - high)
        if not len(starts):
            return _NEVER
        below = np.maximum(first - up_to[starts + 1], 0)
        return int((below + np.maximum(up_to[starts + high] + 1 - third, 0)).min())
