"""The interquartile range by proposing, testing and releasing (Dwork & Lei 2009, section 4).

Widths w = 1, 2, ... of the range between the quartiles, in cells of the grid, are told apart by

    H(w) = ln w / ln(1 + 1/ln n)

and by two grids of its cells, [k, k+1) and [k - 1/2, k + 1/2).  For one grid after the other, let A be
how many records must be replaced to take H out of its cell.  Where A with discrete Laplace noise of
scale 1/a is above a threshold, H gets Laplace noise of scale 1/a and is told; otherwise comes the
next grid, and after both of them no answer (METHODS m).

    the same cell       A moves by one, H by less than one: a for every test, a for the noise
    different cells     A is 1 at most in both, so that each test is passed with chance beta/2 at most

so (3 a, beta)-DP.  A width of 0 is a cell of its own, in which A counts as 0.  H is rounded to steps
of 1/STEPS by a public table, whose entries in one cell are STEPS apart at most.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from dpcore.accounting import laplace_scale, stability_threshold
from dpcore.budget import Budget
from dpcore.events import ProposeTestReleaseEvent
from dpcore.sampling.discrete_laplace import discrete_laplace
from dpcore.sampling.source import RandomSource
from dpcore.statistic import Noisy

STEPS = 2**10

_NEVER = 2**61


@dataclass(frozen=True)
class ProposeTestRelease:
    """H with discrete Laplace noise, or no answer where a noisy distance is ``threshold`` at most:
    (2/test_scale + STEPS/scale, beta)-DP, beta twice the chance to pass at distance 1.

    The result is the grid that was passed (1 or 2; 0 for none) and H in steps, from the counts of
    ``cells`` cells of one axis.
    """

    size: int
    cells: int
    rows: int
    test_scale: Fraction
    threshold: int
    scale: Fraction

    sparse = True

    @classmethod
    def within(cls, share: Budget, cells: int, rows: int) -> ProposeTestRelease:
        """The mechanism that spends the share: a third of alpha for each test and for the release."""
        if rows < 3:
            raise ValueError("propose-test-release needs 3 rows at least")
        if not 0 < share.beta < 1:
            raise ValueError("propose-test-release needs beta between 0 and 1")
        test_scale = laplace_scale(Fraction(1), share.alpha / 3)
        threshold = stability_threshold(test_scale, share.beta / 2)
        return cls(cells, cells, rows, test_scale, threshold, STEPS * test_scale)

    @property
    def event(self) -> ProposeTestReleaseEvent:
        return ProposeTestReleaseEvent(self.test_scale, self.threshold, Fraction(STEPS), self.scale)

    @property
    def base(self) -> float:
        """Of the logarithm H."""
        return 1 + 1 / math.log(self.rows)

    @cached_property
    def logarithms(self) -> NDArray[np.float64]:
        """(cells,) H of every width; that of 0 is never told."""
        return np.log(np.maximum(np.arange(self.cells), 1)) / math.log(self.base)

    def width(self, steps: int) -> float:
        """The interquartile range, in cells, that a number of steps stands for."""
        return math.exp(min(steps / STEPS * math.log(self.base), math.log(self.cells)))

    def draw(
        self, values: NDArray[np.int64], cells: NDArray[np.int64] | None, source: RandomSource
    ) -> Noisy:
        assert cells is not None  # the privacy line checks the layout
        ends = np.searchsorted(cells, self.cells * np.arange(self.size // self.cells + 1))
        tables = []
        for i, j in pairwise(ends.tolist()):
            tables.append(np.zeros(self.cells, dtype=np.int64))
            tables[-1][cells[i:j] % self.cells] = values[i:j]
        alike, which = np.unique(tables, axis=0, return_inverse=True)
        told = np.array([[*self.distances(counts), self.steps(counts)] for counts in alike])[which]
        result = np.zeros((len(told), 2), dtype=np.int64)
        for grid in (2, 1):  # the first that is passed is told
            noisy = told[:, grid - 1] + discrete_laplace(self.test_scale, len(told), source)
            result[noisy > self.threshold, 0] = grid
        noisy = told[:, 2] + discrete_laplace(self.scale, len(told), source)
        result[:, 1] = np.where(result[:, 0] > 0, noisy, 0)
        return Noisy(result.ravel(), reproducible=source.reproducible)

    def steps(self, counts: NDArray[np.int64]) -> int:
        """H in steps: private."""
        return int(np.rint(self.logarithms[self._spread(counts)] * STEPS))

    def distances(self, counts: NDArray[np.int64]) -> tuple[int, int]:
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

    def _spread(self, counts: NDArray[np.int64]) -> int:
        first, third = np.searchsorted(np.cumsum(counts), self._ranks)
        return int(third - first)

    def _to_narrow(self, up_to: NDArray[np.int64], low: int) -> int:
        """Replacements that make the width less than ``low``: both quartiles among ``low`` cells."""
        first, third = self._ranks
        starts = np.arange(self.cells)
        ends = np.minimum(starts + low, self.cells)
        below = np.maximum(up_to[starts] + 1 - first, 0)
        return int((below + np.maximum(third - up_to[ends], 0)).min())

    def _to_widen(self, up_to: NDArray[np.int64], high: int) -> int:
        """Replacements that make the width ``high`` at least."""
        first, third = self._ranks
        starts = np.arange(self.cells - high)
        if not len(starts):
            return _NEVER
        below = np.maximum(first - up_to[starts + 1], 0)
        return int((below + np.maximum(up_to[starts + high] + 1 - third, 0)).min())
