"""The numbers that a cell contains, as people write them.

    cell                                        numbers in it
    [0, 20) of whole numbers                    0, 1, ..., 19
    [0, 20) of whole numbers, step 5            0, 5, 10, 15
    [0.3, 1) of real numbers, step 0.1          0.3, 0.4, ..., 0.9
    [0.3, 1) of real numbers                    all doubles of it
    {99999}, a point mass or a level            99999, even if it is no multiple of the step

Multiples of a step that is a decimal number, such as 1/10, are the doubles nearest to them, as they
would be read from a file: 0.3, and not 3 * 0.1.

>>> axis = Bins("x", (0.0, 0.3, 1.0), step=Fraction(1, 10))
>>> inside = CellNumbers.of(axis, np.array([1, 1, 1]))
>>> inside.first.tolist(), inside.last.tolist()
([0.3, 0.3, 0.3], [1.0, 1.0, 1.0])
>>> inside.at(np.array([0.0, 0.5, 0.999])).tolist()
[0.3, 0.7, 1.0]
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from dpcore.arrays import Floats, Integers
from dpcore.domain.axes import Axis, Bins, Categories, Grid, in_order

QuantileFunction = Callable[[Floats, Floats, Floats], Floats]
"""From ``lower``, ``upper`` and positions from 0 to 1 to values, all (k,)."""


@dataclass(frozen=True, eq=False)
class CellNumbers:
    """The numbers in the cells of some records; all arrays are (k,).

    ``first``, ``last``: the smallest and the largest number; ``first`` is above ``last`` if there is
    none.  ``lower``, ``upper``: the interval that the cell represents.  ``step``: None if every double
    counts.
    """

    lower: Floats
    upper: Floats
    first: Floats
    last: Floats
    step: Fraction | None

    @classmethod
    def of(cls, axis: Axis, codes: Integers) -> CellNumbers:
        """The numbers in cells (k,) of an axis, none of which is null.

        On a fine grid of real numbers, which the plan did not choose, a cell with a step contains only
        the multiple nearest to it.
        """
        if isinstance(axis, Categories):
            assert in_order(axis)
            values = np.asarray(axis.categories, dtype=np.float64)[codes]
            return cls(values, values, values, values, None)
        if isinstance(axis, Grid) and axis.points:
            return cls._beside_points(axis, codes)
        lower, upper = axis.edge(codes), axis.edge(codes + 1)
        first = np.asarray(axis.starts)[codes] if isinstance(axis, Bins) else lower
        closed = (codes == axis.cells - 1) & (not axis.integer)
        last = np.where(closed | (lower == upper), upper, np.nextafter(upper, lower))
        step = Fraction(1) if axis.integer and axis.step is None else axis.step
        if step is None:
            return cls(lower, upper, first, last, None)
        if isinstance(axis, Grid) and not axis.integer:
            ends = np.array([axis.lower]), np.array([axis.upper])
            nearest = times_step(np.rint((lower + upper) / 2 / float(step)), step)
            first = last = np.clip(nearest, multiple(ends[0], step, 1), multiple(ends[1], step, -1))
        alone = upper - lower == axis.integer  # a cell of one number, which need not be a multiple
        first = np.where(alone, lower, multiple(first, step, 1))
        last = np.where(alone, lower, multiple(last, step, -1))
        return cls(lower, upper, first, last, step)

    @classmethod
    def _beside_points(cls, axis: Grid, codes: Integers) -> CellNumbers:
        grid = cls.of(replace(axis, points=()), np.minimum(codes, axis.cells - 1))
        there = codes >= axis.cells
        points = np.asarray(axis.points)[np.maximum(codes - axis.cells, 0)]
        lower, upper, first, last = (
            np.where(there, points, end) for end in (grid.lower, grid.upper, grid.first, grid.last)
        )
        return cls(lower, upper, first, last, grid.step)

    @property
    def size(self) -> Floats:
        """The number of values, or the length of their interval if every double is a value."""
        if self.step is None:
            return self.upper - self.lower
        return np.rint((self.last - self.first) / float(self.step)) + 1

    def select(self, rows: Integers) -> CellNumbers:
        """The cells of some of the records."""
        lower, upper, first, last = (
            part[rows] for part in (self.lower, self.upper, self.first, self.last)
        )
        return CellNumbers(lower, upper, first, last, self.step)

    def within(self, least: Floats, most: Floats) -> CellNumbers:
        """Restrict the numbers to those from ``least`` to ``most`` (k,)."""
        first, last = np.maximum(self.first, least), np.minimum(self.last, most)
        if self.step is None:
            return replace(self, lower=first, upper=last, first=first, last=last)
        first = np.where(first > self.first, multiple(first, self.step, 1), first)
        last = np.where(last < self.last, multiple(last, self.step, -1), last)
        lower = np.where(first > self.first, first, self.lower)
        upper = np.where(last < self.last, last + float(self.step), self.upper)
        return replace(
            self, lower=lower, upper=np.minimum(upper, self.upper), first=first, last=last
        )

    def at(self, positions: Floats, density: QuantileFunction | None = None) -> Floats:
        """The number at each position (k,), from 0 to below 1, in each cell.

        ``density``: the distribution of numbers inside their cells; by default uniform.
        """
        positions = self._warped(positions, density)
        if self.step is None:
            values = self.first + positions * (self.last - self.first)
        else:
            above = np.clip(np.floor(positions * self.size), 0, self.size - 1)
            values = times_step(np.rint(self.first / float(self.step)) + above, self.step)
        return np.where(self.first == self.last, self.first, np.clip(values, self.first, self.last))

    def _warped(self, positions: Floats, density: QuantileFunction | None) -> Floats:
        """Positions among the numbers of each cell, transformed to follow the density there."""
        if density is None:
            return positions
        lower, upper = (self.first, self.last) if self.step is None else (self.lower, self.upper)
        width = np.where(upper > lower, upper - lower, 1.0)
        return np.asarray((density(lower, upper, positions) - lower) / width)


def multiple(values: Floats, step: Fraction, direction: int) -> Floats:
    """The nearest multiples of the step from values (k,) upwards; downwards for direction -1."""
    # The quotient is rounded: the multiple may be one before it, or one or two after.
    number = np.rint(values / float(step)) - direction
    with np.errstate(invalid="ignore"):  # bounds without an end
        for _ in range(3):
            beyond = (times_step(number, step) - values) * direction >= 0
            number = np.where(beyond, number, number + direction)
    return times_step(number, step)


def times_step(numbers: Floats | Integers, step: Fraction) -> Floats:
    """The doubles nearest to the multiples (k,) of the step."""
    # Rounded once, as a decimal is when it is read from a file.
    return np.asarray(numbers * step.numerator / step.denominator)


def ends_of(grid: Grid) -> tuple[float, float]:
    """The values of the first and the last code: the middle of a cell, or the whole number itself."""
    step = (grid.upper - grid.lower) / grid.cells
    first = grid.lower + (0.0 if grid.integer else step / 2)
    return first, grid.upper - step + (first - grid.lower)
