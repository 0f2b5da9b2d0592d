"""The public coding of one survey column into cells.

An axis maps the values of a column to cells 0, 1, ..., size - 1 by a public rule that acts on each
record alone.  A nullable axis has one more cell, the last, for null.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from dpcore.arrays import Floats, Integers
from dpcore.domain.transforms import TRANSFORMS, Transform, TransformName

Category = str | int | float | bool


@dataclass(frozen=True)
class Categories:
    """One cell per listed category; ``ordered``: categories are numbers, in ascending order.

    ``rest``: the last category holds all values that are not listed.
    ``compares``: two columns of numbers.  If there are two categories, the second is for records with
    equal numbers, the first for all others.  If there are three, the first number is less than, equal
    to or more than the second; null if either is missing.
    """

    name: str
    categories: tuple[Category, ...]
    nullable: bool = False
    ordered: bool = False
    rest: bool = False
    compares: tuple[str, str] | None = None

    @property
    def size(self) -> int:
        return len(self.categories) + self.nullable


@dataclass(frozen=True)
class Bins:
    """One cell per interval [edges[i], edges[i+1]); the last also holds its upper edge.

    For an integer column the edges are whole numbers and the last one is the largest value plus
    one, so that a cell holds the integers from ``edges[i]`` to ``edges[i+1] - 1``.

    For real numbers an edge that is listed twice is a point mass: a cell that holds only this value,
    which the cell above excludes.

        edges   0, 0, 1000, 5000, 5000      cells   {0}   (0, 1000)   [1000, 5000)   {5000}

    ``step``: values are multiples of it, except the value of a cell that has only one.  ``masses``:
    whole numbers that many records share; each is an ordinary cell of one number.
    """

    name: str
    edges: tuple[float, ...]
    nullable: bool = False
    integer: bool = False
    step: Fraction | None = None
    masses: tuple[float, ...] = ()

    @property
    def cells(self) -> int:
        """The number of cells for values, without the null cell."""
        return len(self.edges) - 1

    @property
    def size(self) -> int:
        return self.cells + self.nullable

    @property
    def lower(self) -> float:
        return self.edges[0]

    @property
    def upper(self) -> float:
        return self.edges[-1]

    def edge(self, positions: Integers) -> Floats:
        """The edges (k,) at the given positions (k,), from 0 to ``cells``."""
        return np.asarray(self.edges)[positions]

    @cached_property
    def starts(self) -> tuple[float, ...]:
        """The smallest number of each cell: its lower edge, or the next double above a point mass."""
        before = (None, *self.edges)
        return tuple(
            math.nextafter(edge, math.inf) if edge == last and edge != after else edge
            for last, edge, after in zip(before, self.edges, self.edges[1:], strict=False)
        )

    @property
    def points(self) -> tuple[int, ...]:
        """The cells of point masses."""
        ends = zip(self.edges, self.edges[1:], strict=False)
        return tuple(code for code, (lower, upper) in enumerate(ends) if lower == upper)


@dataclass(frozen=True)
class Grid:
    """A fine grid of equal cells over [lower, upper]; integers have one cell per value.

    As for ``Bins``, ``upper`` of an integer column is its largest value plus one, and values are written
    as multiples of ``step``.  With a ``transform`` cells are equal on its scale: real numbers only.
    ``points``: values that have cells of their own, after those of the grid and before null.
    """

    name: str
    lower: float
    upper: float
    cells: int
    nullable: bool = False
    integer: bool = False
    step: Fraction | None = None
    transform: TransformName = "none"
    points: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if self.transform == "none":
            return
        if self.integer:
            raise ValueError(
                f"transform: {self.name} has whole numbers; declare it as continuous, with step 1"
            )
        if not self._scale.valid(self.lower):
            raise ValueError(
                f"transform: {self.transform} of {self.name} needs {self._scale.needs}"
            )

    @property
    def _scale(self) -> Transform:
        return TRANSFORMS[self.transform]

    @cached_property
    def _ends(self) -> tuple[float, float]:
        """The bounds on the scale of the transform."""
        start, end = self._scale.forward(np.array(self.bounds)).tolist()
        return start, end

    @property
    def span(self) -> float:
        """The length of the axis on the scale of the transform."""
        start, end = self._ends
        return end - start

    def to_unit(self, values: Floats) -> Floats:
        """Convert numbers (k,) within the bounds into fractions of the (transformed) axis."""
        inside = (self._scale.forward(np.asarray(values)) - self._ends[0]) / self.span
        return np.asarray(np.clip(inside, 0.0, 1.0))

    def from_unit(self, parts: Floats) -> Floats:
        """The numbers (k,) at these fractions of the axis."""
        values = self._scale.backward(self._ends[0] + parts * self.span)
        return np.asarray(np.clip(values, *self.bounds))

    def slope(self, values: Floats) -> Floats:
        """The derivatives (k,) of ``to_unit``, which turn a density of fractions into one of numbers."""
        with np.errstate(divide="ignore"):
            return np.asarray(self._scale.slope(np.asarray(values, dtype=np.float64)) / self.span)

    @property
    def size(self) -> int:
        return self.cells + len(self.points) + self.nullable

    @property
    def edges(self) -> tuple[float, ...]:
        return tuple(self.edge(np.arange(self.cells + 1)).tolist())

    @property
    def starts(self) -> tuple[float, ...]:
        """The lower edge of each cell."""
        return self.edges[:-1]

    @property
    def bounds(self) -> tuple[float, float]:
        """The ends of the axis; cells of whole numbers extend half a unit to each side."""
        half = 0.5 if self.integer else 0.0
        return self.lower - half, self.upper - half

    def edge(self, positions: Integers) -> Floats:
        """The edges (k,) at the given positions (k,), for grids whose edges do not all fit in memory."""
        inner = self.lower + positions * ((self.upper - self.lower) / self.cells)
        if self.transform != "none":
            inner = np.where(positions == 0, self.lower, self.from_unit(positions / self.cells))
        # Rounding must not move the bounds, which the plan states.
        return np.where(positions == self.cells, self.upper, inner)


Axis = Categories | Bins | Grid


MOST_EXAMINED = 2**20
"""Of an axis with more cells, one number for each cell would take much memory."""


def at_most(axis: Axis, cells: int) -> Axis:
    """The axis; a grid of more than ``cells`` cells becomes one of ``cells`` wider ones.

    A column of whole numbers may have more cells than fit into memory.
    """
    if not isinstance(axis, Grid) or axis.cells <= cells:
        return axis
    return replace(axis, cells=cells, integer=False)


def in_order(axis: Axis) -> bool:
    """Whether adjacent cells of an axis hold adjacent values."""
    return axis.ordered if isinstance(axis, Categories) else True


def read_columns(axis: Axis) -> tuple[str, ...]:
    """The columns that determine the cell of a record."""
    return (isinstance(axis, Categories) and axis.compares) or (axis.name,)


def middles(axis: Axis) -> Any:
    """A value (size,) in each cell; null is masked."""
    if isinstance(axis, Categories):
        found: Any = np.ma.masked_array([*axis.categories, *[axis.categories[0]] * axis.nullable])
    else:
        lower, upper = axis.edge(np.arange(axis.cells)), axis.edge(np.arange(1, axis.cells + 1))
        values = np.floor((lower + upper - 1) / 2) if axis.integer else (lower + upper) / 2
        values = np.r_[values, axis.points if isinstance(axis, Grid) else ()]
        found = np.ma.masked_array(np.r_[values, values[:1]] if axis.nullable else values)
    if axis.nullable:
        found[-1] = np.ma.masked
    return found


def next_written(axis: Bins | Grid, edge: float) -> float:
    """Move an edge up to the next multiple of the step, because no value lies between; move the upper
    bound down to the last multiple.

    >>> next_written(Bins("age", (0.0, 20.15, 99.0), step=Fraction(1, 10)), 20.15)
    20.2
    """
    if axis.integer or axis.step is None:
        return float(edge)
    # The decimal that was written: the double itself is hardly ever a multiple of 1/10.
    steps = Fraction(str(float(edge))) / axis.step
    whole = math.floor(steps) if edge == axis.upper else math.ceil(steps)
    return float(whole * axis.step)


def one_value(axis: Bins | Grid, low: float, high: float) -> bool:
    """Whether exactly one multiple of the step lies between two edges.

    >>> axis = Bins("age", (0.0, 19.95, 20.05, 99.0), step=Fraction(1, 10))
    >>> one_value(axis, 19.95, 20.05), one_value(axis, 0.0, 19.95)
    (True, False)
    """
    step = Fraction(1) if axis.integer else axis.step
    start, end = next_written(axis, low), next_written(axis, high)
    if start == end or step is None or (high == axis.upper and not axis.integer):
        return start == end
    return round((end - start) / float(step)) == 1
