"""Curves of records: values at T public times, on the public grids of as many columns.

A curve is a vector of codes 0, ..., R_t, centred at their middle: v_t = 2 code - R_t lies in
[-R_t, R_t].  A record's curve is corrected by rules that depend on that record alone:

    a missing point    is interpolated between the record's own neighbouring points; beyond its first or
                       last point it is equal to that point.  A record without any point is left out
    a large step       if the plan states a largest step of s codes, the curve is replaced by the mean
                       of two curves without steps above s: the largest such curve below it, and the
                       least above it

**M** is the largest |A v|^2 over all curves, where

    A v = v_1, ..., v_T, q (v_2 - v_1), ..., q (v_T - v_(T-1))         q = 0 without a largest step

It is the sum of R_t^2 for q = 0.  Else all R_t are one R, and curves lie in the polytope of |v_t| <= R
and |v_t - v_(t+1)| <= 2 s.  A convex function is largest at a corner, where T independent bounds hold
with equality: every run of times that are joined by steps of 2 s touches R or -R.  So all v_t are among
R - 2 k s and 2 k s - R, k = 0, 1, ..., and ``longest`` finds the most over all curves of such values in
the polytope.  QED  If curves are smooth, differences cost little sensitivity and are informative.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpcore.arrays import Booleans, Floats, Integers
from dpcore.domain.axes import Grid
from dpcore.domain.cell_values import ends_of

MOST_TIMES = 1000
"""The most times of a curve; the fit needs the square of this many numbers."""

MOST_CELLS, MOST_STEPS = 2**17, 1000
"""The most cells of a column with a largest step, and the most steps of this size in its range."""


@dataclass(frozen=True)
class RecordCurves:
    """Curves; ``grids``: the column of each of ``times`` (T,), in ascending order; ``step_at_most``:
    the largest change between neighbouring times, in the unit of the curve, if stated; the grids are
    then equal."""

    grids: tuple[Grid, ...]
    times: tuple[float, ...]
    step_at_most: float | None = None

    def require_step(self) -> None:
        """Raise ``ValueError`` where the largest step cannot be kept on these grids."""
        if len({(axis.lower, axis.upper, axis.cells) for axis in self.grids}) > 1:
            raise ValueError("step_at_most: needs the same bounds for all columns of the curve")
        cells, fault = self.grids[0].cells, ""
        if cells > MOST_CELLS:
            fault = f"needs columns of at most {MOST_CELLS:,} cells; declare them as continuous"
        elif self.step * MOST_STEPS < cells:
            fault = f"must be at least 1/{MOST_STEPS} of the range of the curve"
        if fault:
            raise ValueError(f"step_at_most: {fault}")

    @cached_property
    def reach(self) -> Integers:
        """The largest codes R (T,), one for each time."""
        return np.array([axis.cells - 1 for axis in self.grids])

    @cached_property
    def step(self) -> int:
        """The largest step s in codes."""
        assert self.step_at_most is not None
        grid = self.grids[0]
        width = (grid.upper - grid.lower) / grid.cells
        # Rounding to cells may lengthen a step by up to one cell: the stated step must not be cut.
        return math.floor(self.step_at_most / width) + (not grid.integer)

    def length(self, weight: int) -> int:
        """The bound M on |A v|^2 for the factor q, which is ``weight``."""
        if not weight:
            return sum(int(reach) ** 2 for reach in self.reach)
        return longest(int(self.reach[0]), 2 * self.step, len(self.times), weight)

    def of(self, codes: Integers) -> tuple[Integers, Booleans]:
        """The curves v (j, T) of those j of k records, with codes (k, T), that have a value, and a mask
        (k,) that selects them."""
        present: Booleans = codes <= self.reach
        known: Booleans = np.any(present, axis=1)
        found = codes[known]
        some = ~present[known].all(axis=1)
        if some.any():
            found[some] = self._filled(found[some], present[known][some])
        if self.step_at_most is None:
            return 2 * found - self.reach, known
        last, below, above = len(self.times) - 1, found, found.copy()
        # Forwards, then backwards: after both passes no step is too large in either direction.
        steps = [(t, t - 1) for t in range(1, last + 1)] + [(t, t + 1) for t in range(last)][::-1]
        for t, other in steps:
            below[:, t] = np.minimum(below[:, t], below[:, other] + self.step)
            above[:, t] = np.maximum(above[:, t], above[:, other] - self.step)
        return below + above - self.reach, known

    def _filled(self, codes: Integers, present: Booleans) -> Integers:
        """Codes (k, T) with missing ones interpolated between their neighbours."""
        size, times, rows = len(self.times), np.array(self.times), np.arange(len(codes))[:, None]
        values = self.middle + self.half * (2 * np.minimum(codes, self.reach) - self.reach)
        before = np.maximum.accumulate(np.where(present, np.arange(size), -1), axis=1)
        after = np.where(present, np.arange(size), size)[:, ::-1]
        after = np.minimum.accumulate(after, axis=1)[:, ::-1]
        before, after = np.where(before < 0, after, before), np.where(after == size, before, after)
        part = (times - times[before]) / np.where(after > before, times[after] - times[before], 1.0)
        left, right = values[rows, before], values[rows, after]
        line = (left + part * (right - left) - self.middle) / self.half
        nearest = np.clip(np.rint((line + self.reach) / 2), 0, self.reach)
        return np.asarray(nearest, dtype=np.int64)

    @cached_property
    def middle(self) -> Floats:
        """The values (T,) at v = 0."""
        return np.array([sum(ends_of(grid)) / 2 for grid in self.grids])

    @cached_property
    def half(self) -> Floats:
        """The change (T,) of the value per unit of v."""
        return np.array([(grid.upper - grid.lower) / grid.cells / 2 for grid in self.grids])


def longest(reach: int, step: int, size: int, weight: int) -> int:
    """The largest sum of v_t^2 and of weight^2 (v_t - v_(t+1))^2 over ``size`` numbers of size at most
    ``reach`` that change by at most ``step``.

    >>> longest(3, 6, 2, 1), longest(3, 2, 3, 1)
    (54, 27)
    """
    up = np.arange(0, 2 * reach + 1, step)
    values = np.unique(np.r_[reach - up, up - reach])
    best = values**2
    for _ in range(size - 1):
        following = best.copy()  # no step; at most two values lie in (v, v + step]
        for off in (1, 2):
            steps = values[off:] - values[:-off]
            # Larger steps are not possible: they get a gain below all others.
            gain = np.where(steps <= step, weight**2 * steps**2, -(2**61))
            following[:-off] = np.maximum(following[:-off], gain + best[off:])
            following[off:] = np.maximum(following[off:], gain + best[:-off])
        best = values**2 + following
    return int(best.max())
