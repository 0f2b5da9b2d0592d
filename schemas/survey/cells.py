"""Chooses the cells of a column of numbers from public facts: type, bounds, step, special values.

Synthetic records get many cells, because their release merges cells with too few people (``compress``).
Up to ``MOST_VALUES`` values get a cell each. For more values, cells grow with the distance from zero,
near which amounts and counts of events concentrate, up to the width of equal cells. If the bounds are of
similar size, all cells are equal. Tables for readers get few cells.

    hours a week, 0 to 99             one for each value
    visits, 0 to 5,000                0, 1, ..., 20, then 22, 25, 28, ..., 950, 1000, 1100, ...
    income, 0 to 200,000              0 alone, then to 1.1, 1.2, ..., 19,000, 20,000, 22,000, ...
    turnover, 0 to 10,000 million     0 alone, then to 1.1, ...; in tables to 10, 100, 1000, ...
    temperature, 34 to 42             equal cells

>>> Numbers(Decimal(0), Decimal(5000), None, True).for_tables().edges
[0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5001]
>>> Numbers(Decimal(16), Decimal(95), None, True, unit="years").for_tables().edges
[16, 20, 30, 40, 50, 60, 70, 80, 90, 96]
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal
from typing import NamedTuple

MOST_VALUES = 1024
"""If a column has more values, several values share a cell."""

EQUAL = 100
"""The largest number of cells of equal width."""

ALIKE = 20
"""Positive bounds with a smaller ratio get equal cells."""

SPREAD, WRITTEN, WIDEST = Decimal(10_000), 1000, Decimal(10) ** 18
"""Growing cells begin at the smallest of 1, ``WRITTEN`` steps, and the larger bound divided by
``SPREAD``, because the median turnover of firms is a millionth of a bound for all firms. But they begin
at least at the step or, without a step, at the larger bound divided by ``WIDEST``."""

FINE = tuple(
    Decimal(step) / 10 for step in (*range(10, 16), 16, 18, 20, 22, 25, 28, *range(30, 100, 5))
)
FEW = tuple(map(Decimal, ("1", "2", "5")))

ALONE, ALONE_IN_TABLES = 20, 3
"""If cells grow, each whole number up to this has a separate cell."""

MOST_IN_TABLES, MOST_OF_SMALL = 12, 15
"""The most cells in tables or, if cells grow, on each side of zero (more if a cell would span more than
a power of ten). ``MOST_OF_SMALL`` applies to whole numbers, which may be small counts, and to numbers
within ``ALIKE``, such as a pH, whose cells grow only up to the width of equal cells."""

MEASURES = ("year", "%", "per cent", "percent", "degree", "cm", "kg", "mmhg", "point")
"""Units of numbers that are near a typical value other than zero, even if zero is a bound."""


def is_measure(unit: str) -> bool:
    return unit.lower().rstrip("s") in MEASURES


class Cells(NamedTuple):
    """``edges``: ascending; None if each value has a cell. ``points``: values with a separate cell."""

    edges: list[float] | None
    points: list[float]


@dataclass(frozen=True)
class Numbers:
    """Public facts on a column of numbers. ``step``: None if any number may occur; ``special``: values
    that many people have; ``cuts``: required edges of the cells of records."""

    lower: Decimal
    upper: Decimal
    step: Decimal | None
    whole: bool
    special: Sequence[Decimal] = ()
    unit: str = ""
    cuts: Sequence[Decimal] = ()

    @property
    def step_or_one(self) -> Decimal | None:
        """The step of all values; None if any number may occur."""
        return self.step or (Decimal(1) if self.whole else None)

    @property
    def number(self) -> Decimal:
        """The number of possible values."""
        return (
            (self.upper - self.lower) / self.step_or_one + 1
            if self.step_or_one
            else Decimal("Infinity")
        )

    @property
    def _top(self) -> Decimal:
        return self.upper + 1 if self.whole else self.upper

    @property
    def _end(self) -> Decimal:
        """The last edge, above all values; the last cell of real numbers includes it."""
        return self._top if self.whole else self.upper + (self.step_or_one or Decimal(1))

    def for_records(self, points: Sequence[float] | None = None) -> Cells:
        """Many cells, for synthetic records. ``points``: values with a separate cell in all tables."""
        if self.number > MOST_VALUES:
            even = self._equal(EQUAL, FEW) if self.alike else ()
            return self._as_cells([*(even or self._growing(FINE, ALONE)), *self.cuts], points)
        if self.step_or_one == 1 and self.whole:
            return Cells(None, [])
        assert self.step_or_one is not None
        edges = equal(self.lower, self._top, self.step_or_one)
        if not self.whole:  # edges between values, because the last cell includes its upper end
            half = self.step_or_one / 2
            edges = [each - half for each in (*edges, self.upper)] + [self.lower + half]
        own = [Decimal(str(point)) for point in points or ()]
        return Cells(self._written(edges, own), list(points or ()))

    def for_tables(self, points: Sequence[float] | None = None) -> Cells:
        """Few cells, for readers' tables."""
        if self.whole and self.step_or_one == 1 and self._top - self.lower <= MOST_IN_TABLES:
            return Cells(None, [])
        if self.alike or is_measure(self.unit):
            return self._as_cells(self._equal(MOST_IN_TABLES, FEW), points, self.special)
        events = self._largest <= MOST_VALUES
        return self._as_cells(self._growing(FEW, ALONE_IN_TABLES if events else 0), points)

    def for_periods(self, points: Sequence[float] | None = None) -> Cells:
        """Cells for records of a series, where cells are not merged: those of tables, cut at equal
        distances too."""
        few = self.for_tables(points)
        if few.edges is None:
            return few
        edges = [Decimal(str(edge)) for edge in few.edges]
        return self._as_cells([*edges, *self._equal(MOST_IN_TABLES, FEW), *self.cuts], few.points)

    @property
    def amount(self) -> bool:
        """Whether a logarithmic scale is suitable: most values near zero, some far away."""
        measure = self.alike or is_measure(self.unit)
        return self.lower >= 0 and self.upper >= MOST_VALUES and not measure

    @property
    def alike(self) -> bool:
        """Whether the bounds are of similar size. Then values need not be concentrated near zero."""
        ends = sorted((abs(self.lower), abs(self.upper)))
        beside_zero = self.lower * self.upper < 0 and self._top - self.lower > MOST_VALUES
        return self.lower * self.upper != 0 and ends[1] < ALIKE * ends[0] and not beside_zero

    def _equal(self, most: int, steps: Sequence[Decimal]) -> Sequence[Decimal]:
        width = round_width((self._top - self.lower) / most, steps, self.step_or_one)
        return equal(self.lower, self._top, width)

    def _growing(self, steps: Sequence[Decimal], alone: int) -> Sequence[Decimal]:
        """Edges of cells that grow away from zero; small whole numbers have separate cells."""
        if self.alike:
            return ()
        single = self.whole and self.step_or_one == 1
        small = range(-alone, alone + 2) if single else ()
        least = Decimal(alone) if single and alone else self._least
        above = growing(max(self.lower, least), self._top, self.step_or_one, steps)
        below = growing(max(-self.upper, least), -self.lower, self.step_or_one, steps)
        small_numbers = not self.whole and self._largest <= ALIKE
        if steps is FINE:  # equal cells too, in case values do not concentrate at zero
            even = self._equal(EQUAL, FEW)
        else:
            even = self._equal(MOST_OF_SMALL, FEW) if small_numbers else []
            most = MOST_OF_SMALL if single or even else MOST_IN_TABLES
            above, below = (
                thinned(with_even(grown, [way * edge for edge in even]), most)
                for grown, way in ((above, 1), (below, -1))
            )
        return [*map(Decimal, small), *above, *(-edge for edge in below), *even]

    @property
    def _largest(self) -> Decimal:
        return max(-self.lower, self.upper)

    @property
    def _least(self) -> Decimal:
        """The edge from which cells grow."""
        least = min(Decimal(1), self._largest / SPREAD, WRITTEN * (self.step_or_one or Decimal(1)))
        return max(least, self.step_or_one or self._largest / WIDEST)

    def _as_cells(
        self,
        inner: Iterable[Decimal],
        points: Sequence[float] | None,
        values: Sequence[Decimal] | None = None,
    ) -> Cells:
        """Cells with these ``inner`` edges. ``values``: points that may need a separate cell; by default
        the special values and zero."""
        zero = {Decimal(0)} if self.lower <= 0 <= self.upper else set[Decimal]()
        alone = {*self.special} | zero if values is None else {*values}
        own = sorted(p for p in alone if self._apart(p, {*inner, self.lower}))
        if points is not None:
            own = [Decimal(str(point)) for point in points]
        unit = self.step_or_one
        inner = {*inner, *(e for p in alone - {*own} if unit for e in (p, p + unit))}
        cast = int if self.whole else float
        return Cells(self._written(inner, own), [cast(point) for point in own])

    def _apart(self, point: Decimal, edges: Collection[Decimal]) -> bool:
        """Whether a value needs a separate cell: no bin has only this value, or would become empty."""
        if self.whole and {point, point + 1} <= {*edges}:
            return False
        below = point == self.lower or self._any(self.lower, point, False)
        return below and (point == self.upper or self._any(point, self._top, True))

    def _written(self, inner: Iterable[Decimal], points: Sequence[Decimal] = ()) -> list[float]:
        """Both bounds and the edges between them, except edges that would leave a cell empty."""
        kept = [self.lower]
        for edge in sorted({edge for edge in inner if self.lower < edge < self.upper}):
            begins = max([kept[-1], *(p for p in points if p < edge)])
            after = min([self._end, *(p for p in points if p > edge)])
            if self._any(begins, edge, begins in points) and self._any(edge, after, edge in points):
                kept.append(edge)
        cast = int if self.whole else float
        return [cast(edge) for edge in (*kept, self._top)]

    def _any(self, first: Decimal, last: Decimal, above: bool) -> bool:
        """Whether a multiple of the step lies in [first, last), or in (first, last) if ``above``."""
        if self.step_or_one is None:
            return first < last
        least = multiple(first, self.step_or_one)
        return least + self.step_or_one * (above and least == first) < last


def growing(
    least: Decimal, upper: Decimal, unit: Decimal | None, steps: Sequence[Decimal]
) -> list[Decimal]:
    """Round edges above ``least`` that are multiples of the unit and grow by about the same factor."""
    powers = range(least.adjusted(), upper.adjusted() + 1) if upper > 0 else ()
    found = (step * Decimal(10) ** power for power in powers for step in steps)
    multiples = (edge if unit is None else multiple(edge, unit) for edge in found)
    return [edge for edge in multiples if least < edge < upper]


def with_even(grown: Sequence[Decimal], even: Sequence[Decimal]) -> list[Decimal]:
    """The growing edges below the first positive equal edge, and then the equal edges."""
    after = sorted(edge for edge in even if edge > 0)
    return [*(edge for edge in grown if not after or edge < after[0]), *after]


def thinned(edges: Sequence[Decimal], most: int) -> list[Decimal]:
    """At most ``most`` edges, if possible: the smallest ones that are no power of ten are left out."""
    others = [edge for edge in edges if edge != Decimal(10) ** edge.adjusted()]
    left_out = others[: max(len(edges) - most, 0)]
    return [edge for edge in edges if edge not in left_out]


def equal(lower: Decimal, upper: Decimal, width: Decimal) -> list[Decimal]:
    """Multiples of the width between the bounds."""
    first = multiple(lower, width) / width
    return [
        edge
        for i in range(int((upper - lower) / width) + 3)
        if lower < (edge := (first + i) * width) < upper
    ]


def round_width(least: Decimal, steps: Sequence[Decimal], unit: Decimal | None) -> Decimal:
    """A round number that is at least ``least``, and a multiple of the unit."""
    power = Decimal(10) ** least.adjusted()
    width = next(power * s for s in (*steps, Decimal(10)) if power * s >= least)
    return width if unit is None else multiple(width, unit)


def multiple(number: Decimal, unit: Decimal) -> Decimal:
    """The smallest multiple of the unit that is not below the number."""
    return (number / unit).to_integral_value(ROUND_CEILING) * unit
