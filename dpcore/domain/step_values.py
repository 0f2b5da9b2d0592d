"""The multiples of a column's step, and how round each of them is.

income, in dollars    decimal power    multiple of
50,000                4                50,000
52,000                4                1,000
137                   2                1

If a column has too many multiples, only multiples of a round number are counted, because values that
many people share are round: for an income between 0 and 10,000,000 the multiples of 10, for example.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

import numpy as np

from dpcore.arrays import Floats, Integers
from dpcore.domain.axes import Grid


class Roundness(NamedTuple):
    """How round each value is, in classes of equal size and roundness.

    ``of`` (values,): the class of each value, -1 for zero.  For each class (k,): ``power``, the decimal
    power of its values; ``every``, the round number, in steps, that divides them; ``values``, how many
    there are.
    """

    of: Integers
    power: Integers
    every: Integers
    values: Integers


@dataclass(frozen=True)
class StepValues:
    """All multiples of a column's step, one per cell of ``axis``; ``first``: the smallest, in steps."""

    axis: Grid
    step: Fraction
    first: int

    @classmethod
    def of(
        cls,
        name: str,
        bounds: tuple[float | Fraction, float | Fraction],
        step: Fraction,
        nullable: bool,
    ) -> StepValues:
        """The multiples from the nearest to the lower bound to the nearest to the upper bound.

        A cell extends half a step around its multiple, so other values count as the nearest multiple.
        """
        half, (least, most) = Fraction(1, 2), (Fraction(bound) / step for bound in bounds)
        first, last = math.floor(least + half), math.ceil(most - half)
        cells, edges = last - first + 1, (first - half, last + half)
        if step == 1:
            axis = Grid(name, first, last + 1, cells, nullable, integer=True)
        else:
            lower, upper = (float(edge * step) for edge in edges)
            axis = Grid(name, lower, upper, cells, nullable, step=step)
        return cls(axis, step, first)

    @property
    def coarser(self) -> StepValues | None:
        """The multiples of the next round number; None if no round number is a multiple of the step."""
        axis, half = self.axis, Fraction(1, 2)
        if (larger := next(_round_numbers(self.step, axis.cells), None)) is None:
            return None
        # The ends of its outer cells, not its multiples, so that every value still has a cell.
        ends = (self.first + part for part in (-half, axis.cells - half))
        lower, upper = (end * self.step for end in ends)
        return StepValues.of(axis.name, (lower, upper), larger * self.step, axis.nullable)

    def numbers(self, cells: Integers) -> Floats | Integers:
        """The values of cells (k,), as a file reader would parse them."""
        multiples = (self.first + cells) * self.step.numerator
        return multiples if self.step.denominator == 1 else multiples / self.step.denominator

    @cached_property
    def roundness(self) -> Roundness:
        """Classes by decimal power and by the largest of 1, 5, 10, 50, ... that divides the values."""
        steps = np.abs(self.first + np.arange(self.axis.cells))
        every = np.array([1, *_round_numbers(self.step, int(steps.max(initial=1)))])
        level = np.zeros(len(steps), dtype=np.int64)
        for i, number in enumerate(every[1:].tolist(), 1):
            level[steps % number == 0] = i
        # All powers of ten that 64 bits hold.
        powers = 10 ** np.arange(19)
        power = np.searchsorted(powers, steps, side="right") - 1
        found, of = np.unique(
            np.where(steps > 0, power * len(every) + level, -1), return_inverse=True
        )
        none = int(found[0] == -1)
        kinds = found[none:]
        values = np.bincount(of, minlength=len(found))[none:]
        return Roundness(
            of.reshape(-1) - none, kinds // len(every), every[kinds % len(every)], values
        )


def coarsened(columns: Sequence[StepValues], most: int) -> tuple[StepValues, ...]:
    """The columns, made coarser until all have at most ``most`` values in total, where possible.

    The column with most values is made coarser first, so a column with few values keeps all of them.
    """
    fitted = [*columns]
    while sum(each.axis.cells for each in fitted) > most:
        widest = max(range(len(fitted)), key=lambda i: fitted[i].axis.cells)
        coarser = fitted[widest].coarser
        if coarser is None:
            break
        fitted[widest] = coarser
    return tuple(fitted)


def _round_numbers(step: Fraction, most: int) -> Iterator[int]:
    """The numbers 1, 5, 10, 50, ... and their decimal fractions, up to ``most``, if multiples of it."""
    power = Fraction(10) ** math.floor(math.log10(step))
    while power / step <= most:
        for number in (power, 5 * power):
            if (number / step).denominator == 1 and 1 < number / step <= most:
                yield int(number / step)
        power *= 10
