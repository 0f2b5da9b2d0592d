"""Inequalities between numbers of a record: end >= start + 5, weight < 30.

A difference says how far one number must at least lie above another one, or above zero; a number that
is null has nothing to keep.  What it says of cells is exact: two cells may stand together if and only if
some numbers in them do.

    start in [0, 10)    end in [0, 10)      end >= start       may: 3 and 7
    start in [10, 20)   end in [0, 10)      end >= start       may not
    start in {9}        end in [0, 10)      end > start, whole numbers    may not

Along a chain of inequalities the numbers between take room too (a < b < c, whole numbers, is
a <= c - 2), so each chain is a rule about its two ends.  Chains never close: then from any first number
that leaves room, the next ones can be chosen in turn, and drawing always ends.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import NamedTuple

import numpy as np

from dpcore.arrays import Booleans, Floats
from dpcore.cell_values import Inside
from dpcore.domain import Axis, Domain

LARGEST_AXIS = 2**12
"""The most cells of a column in an inequality."""

MOST_CHAINS = 200

Columns = Mapping[int, Floats]
"""Numbers (rows,) by the position of their column; NaN for null."""


class Difference(NamedTuple):
    """``high`` - ``low`` >= ``least``, or > where ``strict``: positions of columns, None for zero."""

    high: int | None
    low: int | None
    least: float
    strict: bool

    def above(self, low: Floats) -> Floats:
        """The least that ``high`` may be, from numbers (k,) of ``low``."""
        bound = low + self.least
        return np.nextafter(bound, np.inf) if self.strict else bound

    def below(self, high: Floats) -> Floats:
        """The most that ``low`` may be, from numbers (k,) of ``high``."""
        bound = high - self.least
        for _ in range(2):  # the difference was rounded
            beyond = self.above(bound) > high
            bound = np.where(beyond, np.nextafter(bound, -np.inf), bound)
        return np.asarray(bound)

    def broken(self, columns: Columns) -> Booleans:
        """(rows,) whether numbers that are not null break it."""
        zero = np.zeros(len(next(iter(columns.values()))))
        high = zero if self.high is None else columns[self.high]
        low = zero if self.low is None else columns[self.low]
        return np.asarray(high < self.above(low))  # nothing is below NaN

    @property
    def columns(self) -> tuple[int, ...]:
        return tuple(c for c in (self.low, self.high) if c is not None)


class Chain(NamedTuple):
    """What inequalities one after the other say of the cells of their ends.

    ``used``: positions of the inequalities; ``between``: columns that must not be null; ``low``,
    ``high``: the ends.  ``least[i]``: the first cell of ``high`` that may stand with cell i of ``low``;
    where an end is zero, it has one cell.
    """

    used: tuple[int, ...]
    between: tuple[int, ...]
    low: int | None
    high: int | None
    least: tuple[int, ...]


def chains(domain: Domain, differences: Sequence[Difference]) -> list[Chain]:
    """Every chain of the inequalities, each of them alone among them.

    Raises ``ValueError`` where they close a circle, or are too many.
    """
    in_turn(differences)
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
                on = (i for i, more in enumerate(differences) if more.low == last.high)
                waiting += [((*used, i), reached) for i in on]
    return found


def in_turn(differences: Sequence[Difference]) -> list[int]:
    """The columns of inequalities, each after those that are below it; ``ValueError`` for a circle."""
    above = {c: set[int]() for each in differences for c in each.columns}
    for each in differences:
        if each.high is not None and each.low is not None:
            above[each.high].add(each.low)
    try:
        return list(TopologicalSorter(above).static_order())
    except CycleError:
        raise ValueError("inequalities close a circle: each column is above the next") from None


def drawn_in_turn(
    insides: Mapping[int, Inside],
    applying: Sequence[tuple[Difference, Booleans]],
    draw: Callable[[int, Inside], Floats],
) -> dict[int, Floats]:
    """Numbers (rows,) of the columns of inequalities that obey all of them, column by column.

    ``insides``: the cells of the records, which allow such numbers; ``applying``: each inequality, and
    the records (rows,) that it applies to; ``draw(column, inside)`` draws from what is left.
    """
    order = in_turn([difference for difference, _ in applying])
    rows = len(next(iter(insides.values())).first)
    left = dict(insides)
    for column in reversed(order):  # room for what comes above
        most = np.full(rows, np.inf)
        for difference, applies in applying:
            if difference.low == column:
                high = difference.high
                bound = difference.below(np.zeros(rows) if high is None else left[high].last)
                most = np.where(applies, np.minimum(most, bound), most)
        left[column] = left[column].within(np.full(rows, -np.inf), most)
    found: dict[int, Floats] = {}
    for column in order:
        least = np.full(rows, -np.inf)
        for difference, applies in applying:
            if difference.high == column:
                low = np.zeros(rows) if difference.low is None else found[difference.low]
                least = np.where(applies, np.maximum(least, difference.above(low)), least)
        found[column] = draw(column, left[column].within(least, np.full(rows, np.inf)))
    return found


def _numbers(axis: Axis) -> Inside:
    """The numbers of each cell of an axis."""
    cells = axis.size - axis.nullable
    if cells > LARGEST_AXIS:
        raise ValueError(f"{axis.name} has too many cells for an inequality; state bins of it")
    return Inside.of(axis, np.arange(cells))


def _next(inside: Inside, values: Floats) -> Floats:
    """The least numbers of a column, in any of its cells, from values (k,) on; infinite without any."""
    cells = np.searchsorted(inside.last, values, side="left")
    some = cells < len(inside.last)
    found = (
        inside.select(np.where(some, cells, 0)).within(values, np.full(len(values), np.inf)).first
    )
    return np.where(some, found, np.inf)
