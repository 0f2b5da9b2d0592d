"""Inequalities between numbers of a record: end >= start + 5, weight < 30, months >= 12 * age.

A difference states the least amount by which a multiple of one number must exceed a multiple of another
number, or zero; it does not apply if a number is null.  Rules on cells are exact: two cells may occur
together if and only if some numbers in them may.

    start in [0, 10)    end in [0, 10)      end >= start       may: 3 and 7
    start in [10, 20)   end in [0, 10)      end >= start       may not
    start in {9}        end in [0, 10)      end > start, whole numbers    may not
    age in {3, 4}       months in [24, 36)  months >= 12 * age            may not

In a chain of inequalities the numbers between need room too (a < b < c, whole numbers, is
a <= c - 2), so each chain is a rule about its two ends.  A chain passes no column twice; inequalities
may close a circle that leaves room and leads back to the same multiple (start <= end <= start + 10,
12 * age <= months <= 12 * age + 11), or that excludes no number (a <= b <= 2 * a, not negative).
From any first number that leaves room, the next ones can be chosen in turn, and drawing always ends.

Source: R. Dechter, I. Meiri and J. Pearl, Artificial Intelligence 49 (1991), 61-95, on systems of
differences: section 3 for circles and for numbers that are chosen in turn.  The argument only needs that
a larger number requires a larger one, which is true because multiples are positive.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from dpcore.arrays import Booleans, Floats
from dpcore.domain.axes import Axis
from dpcore.domain.cell_values import CellNumbers
from dpcore.domain.domain import Domain

LARGEST_AXIS = 2**12
"""The most cells of a column in an inequality."""

MOST_CHAINS = 200

Columns = Mapping[int, Floats]
"""Numbers (rows,) of each column, keyed by its position; NaN for null."""


class Difference(NamedTuple):
    """``of_high`` times ``high`` minus ``of_low`` times ``low`` is at least ``least``, or more if
    ``strict``.

    ``high`` and ``low`` are positions of columns, or None for zero; the multiples are positive.
    """

    high: int | None
    low: int | None
    least: float
    strict: bool
    of_high: float = 1.0
    of_low: float = 1.0

    def above(self, low: Floats) -> Floats:
        """The smallest value that ``high`` may have, given numbers (k,) of ``low``."""
        bound = (self.of_low * low + self.least) / self.of_high
        return np.nextafter(bound, np.inf) if self.strict else bound

    def below(self, high: Floats) -> Floats:
        """The largest value that ``low`` may have, given numbers (k,) of ``high``."""
        bound = (self.of_high * high - self.least) / self.of_low
        for _ in range(2):  # because the difference was rounded
            beyond = self.above(bound) > high
            bound = np.where(beyond, np.nextafter(bound, -np.inf), bound)
        return np.asarray(bound)

    def broken(self, columns: Columns) -> Booleans:
        """Whether (rows,) the numbers, if not null, break the inequality."""
        zero = np.zeros(len(next(iter(columns.values()))))
        high = zero if self.high is None else columns[self.high]
        low = zero if self.low is None else columns[self.low]
        return np.asarray(high < self.above(low))  # nothing is below NaN

    @property
    def columns(self) -> tuple[int, ...]:
        return tuple(c for c in (self.low, self.high) if c is not None)


class Chain(NamedTuple):
    """The constraint that consecutive inequalities put on the cells of the two end columns.

    ``used``: positions of the inequalities; ``between``: columns that must not be null; ``low``,
    ``high``: the ends.  ``least[i]``: the first cell of ``high`` that is allowed with cell i of
    ``low``; an end that is zero has one cell.
    """

    used: tuple[int, ...]
    between: tuple[int, ...]
    low: int | None
    high: int | None
    least: tuple[int, ...]


def chains(
    domain: Domain,
    differences: Sequence[Difference],
    together: Callable[[Sequence[int]], bool],
) -> list[Chain]:
    """All chains of the inequalities, including each inequality by itself.

    ``together``: whether inequalities at these positions ever apply to one record; if not, they form no
    chain and no circle.  Raises ``ValueError`` if they form a circle that no numbers satisfy, or if
    there are too many.
    """
    numbers = {c: _numbers(domain.axes[c]) for each in differences for c in each.columns}
    found: list[Chain] = []
    for start, first in enumerate(differences):
        low = np.zeros(1) if first.low is None else numbers[first.low].first
        waiting: list[tuple[tuple[int, ...], Floats]] = [((start,), low)]
        while waiting:
            used, values = waiting.pop()
            last = differences[used[-1]]
            reached = last.above(values)
            most = np.zeros(1) if last.high is None else numbers[last.high].last
            least = np.searchsorted(most, reached, side="left")
            between = tuple(c for c in (differences[i].high for i in used[:-1]) if c is not None)
            found.append(Chain(used, between, first.low, last.high, tuple(least.tolist())))
            if len(found) > MOST_CHAINS:
                raise ValueError("too many inequalities depend on each other; state fewer")
            if last.high is not None:
                reached = _next(numbers[last.high], reached)
                passed = {first.low, *(differences[i].high for i in used)}
                for i, more in enumerate(differences):
                    if more.low != last.high or not together((*used, i)):
                        continue
                    if more.high not in passed:
                        waiting.append(((*used, i), reached))
                    elif first.low is not None and more.high == first.low:
                        _check_circle(domain, [differences[j] for j in (*used, i)])
    return found


def _check_circle(domain: Domain, differences: Sequence[Difference]) -> None:
    """Raise ``ValueError`` if a circle of inequalities rises in total.

    ``end >= start`` and ``start >= end - 10`` rise by -10 in total, so they are satisfiable.
    """
    multiple, rise = 1.0, 0.0
    for each in differences:
        multiple *= each.of_low / each.of_high
        rise = (each.of_low * rise + each.least) / each.of_high
    strict = any(each.strict for each in differences)
    assert differences[0].low is not None
    start = _numbers(domain.axes[differences[0].low])
    if all((multiple * v + rise, strict) <= (v, False) for v in (start.first[0], start.last[-1])):
        return
    names = [domain.names[each.low] for each in differences if each.low is not None]
    circle = " below ".join([*names, names[0]])
    if not math.isclose(multiple, 1.0, rel_tol=1e-9):
        raise ValueError(
            f"inequalities form a circle, {circle}, with different multiples; bound a column from both"
            " sides by the same multiple of another, or leave one inequality out (`often_equal` has one"
            " for each side)"
        )
    if (rise, strict) > (0.0, False):
        raise ValueError(
            f"inequalities form a circle, {circle}, which no numbers satisfy; leave one out, or state"
            " conditions so that they never all apply"
        )


def drawn_in_turn(
    insides: Mapping[int, CellNumbers],
    applying: Sequence[tuple[Difference, Booleans]],
    draw: Callable[[int, CellNumbers], Floats],
) -> dict[int, Floats]:
    """Draw numbers (rows,) for each column of the inequalities so that all inequalities hold.

    ``insides``: the numbers that the cells of the records allow; ``applying``: each inequality with the
    records (rows,) to which it applies; ``draw(column, inside)`` draws from the remaining numbers.
    """
    left, found = dict(insides), dict[int, Floats]()
    for column in left:
        _leave_room(left, applying)
        found[column] = draw(column, left[column])
        left[column] = left[column].within(found[column], found[column])
    return found


def _leave_room(
    left: dict[int, CellNumbers], applying: Sequence[tuple[Difference, Booleans]]
) -> None:
    """Narrow each column to the numbers that can be completed in the other columns.

    The bounds of all columns are final after as many rounds as there are columns.  Then the smallest
    numbers of all columns satisfy every inequality together, so do the largest, and any number between
    the bounds of one column can be completed in the others.
    """
    rows = len(next(iter(left.values())).first)
    zero, end = np.zeros(rows), np.full(rows, np.inf)
    for _ in left:
        for difference, applies in applying:
            low, high = difference.low, difference.high
            if high is not None:
                least = difference.above(zero if low is None else left[low].first)
                left[high] = left[high].within(np.where(applies, least, -end), end)
            if low is not None:
                most = difference.below(zero if high is None else left[high].last)
                left[low] = left[low].within(-end, np.where(applies, most, end))


def _numbers(axis: Axis) -> CellNumbers:
    """The numbers in each cell of an axis."""
    cells = axis.size - axis.nullable
    if cells > LARGEST_AXIS:
        raise ValueError(f"{axis.name} has too many cells for an inequality; state bins of it")
    return CellNumbers.of(axis, np.arange(cells))


def _next(inside: CellNumbers, values: Floats) -> Floats:
    """The smallest number of a column that is at least each value (k,); infinite if none is."""
    cells = np.searchsorted(inside.last, values, side="left")
    some = cells < len(inside.last)
    found = (
        inside.select(np.where(some, cells, 0)).within(values, np.full(len(values), np.inf)).first
    )
    return np.where(some, found, np.inf)
