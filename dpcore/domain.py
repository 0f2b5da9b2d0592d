"""The public coding of survey columns into cells.

An axis maps the values of one column to cells 0, 1, ..., size - 1 by a public rule that acts on each
record alone.  A domain is a list of axes, and numbers its cells in row-major order:

    axes      sex: F, M        age: [0, 40), [40, 90]
    cell      0 = F, [0, 40)   1 = F, [40, 90]   2 = M, [0, 40)   3 = M, [40, 90]

A nullable axis has one more cell, the last, for null.  Nothing here depends on survey data.

>>> domain = Domain((Categories("sex", ("F", "M")), Bins("age", (0.0, 40.0, 90.0))))
>>> domain.size, domain.unpack(np.array([2])).tolist()
(4, [[1, 0]])
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from dpcore.arrays import Floats, Integers

Category = str | int | float | bool

LARGEST_DOMAIN = 2**62
"""Cells are numbered by signed 64-bit integers, with room to add."""


@dataclass(frozen=True)
class Categories:
    """One cell per listed category; ``ordered``: they are numbers, in ascending order."""

    name: str
    categories: tuple[Category, ...]
    nullable: bool = False
    ordered: bool = False

    @property
    def size(self) -> int:
        return len(self.categories) + self.nullable


@dataclass(frozen=True)
class Bins:
    """One cell per interval [edges[i], edges[i+1]); the last also holds its upper edge.

    For an integer column the edges are whole numbers and the last one is the largest value plus
    one, so that a cell holds the integers from ``edges[i]`` to ``edges[i+1] - 1``.

    For real numbers an edge that is listed twice is a point mass: a cell that holds this value alone,
    and the cell above it does not.

        edges   0, 0, 1000, 5000, 5000      cells   {0}   (0, 1000)   [1000, 5000)   {5000}

    ``step``: values are written as multiples of it, except that of a cell with one value.
    """

    name: str
    edges: tuple[float, ...]
    nullable: bool = False
    integer: bool = False
    step: Fraction | None = None

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
        """(k,) edges at the given positions (k,), from 0 to ``cells``."""
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
    as multiples of ``step``.
    """

    name: str
    lower: float
    upper: float
    cells: int
    nullable: bool = False
    integer: bool = False
    step: Fraction | None = None

    @property
    def size(self) -> int:
        return self.cells + self.nullable

    @property
    def edges(self) -> tuple[float, ...]:
        return tuple(self.edge(np.arange(self.cells + 1)).tolist())

    @property
    def bounds(self) -> tuple[float, float]:
        """The ends of the axis, where the cell of a whole number reaches half a unit to each side."""
        half = 0.5 if self.integer else 0.0
        return self.lower - half, self.upper - half

    def edge(self, positions: Integers) -> Floats:
        """(k,) edges at the given positions (k,), for grids of which not all edges fit in memory."""
        inner = self.lower + positions * ((self.upper - self.lower) / self.cells)
        return np.where(positions == self.cells, self.upper, inner)


Axis = Categories | Bins | Grid


def in_order(axis: Axis) -> bool:
    """Whether neighbouring cells of an axis hold neighbouring values."""
    return axis.ordered if isinstance(axis, Categories) else True


@dataclass(frozen=True)
class Domain:
    """The cells of several axes together: public."""

    axes: tuple[Axis, ...]

    def __post_init__(self) -> None:
        names = [axis.name for axis in self.axes]
        if len(set(names)) != len(names):
            raise ValueError(f"a column appears twice in {names}")
        if self.size > LARGEST_DOMAIN:
            raise ValueError(
                f"{self.size:.3g} cells are more than the {LARGEST_DOMAIN:.3g} that can be numbered"
            )

    @cached_property
    def shape(self) -> tuple[int, ...]:
        return tuple(axis.size for axis in self.axes)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(axis.name for axis in self.axes)

    def unpack(self, cells: Integers) -> Integers:
        """Cell ids (k,) to codes (k, axes)."""
        codes = np.empty((len(cells), len(self.axes)), dtype=np.int64)
        rest = np.asarray(cells, dtype=np.int64)
        for i in reversed(range(len(self.axes))):
            rest, codes[:, i] = np.divmod(rest, self.shape[i])
        return codes

    def pack(self, codes: Integers) -> Integers:
        """Codes (k, axes) to cell ids (k,)."""
        cells = np.zeros(len(codes), dtype=np.int64)
        for i, size in enumerate(self.shape):
            cells = cells * size + codes[:, i]
        return cells

    def select(self, names: tuple[str, ...]) -> Domain:
        """The domain of some of the columns, in the order given."""
        by_name = {axis.name: axis for axis in self.axes}
        return Domain(tuple(by_name[name] for name in names))


@dataclass(frozen=True, eq=False)
class Tally:
    """The number of records in each occupied cell: private.

    ``cells``: (k,) ascending cell ids; ``counts``: (k,) positive counts.
    """

    domain: Domain
    cells: Integers
    counts: Integers

    def __repr__(self) -> str:
        return f"<tally over {' x '.join(self.domain.names)}: withheld>"

    def __reduce__(self) -> str:
        raise TypeError("a tally does not leave the process that computed it")

    def codes(self, position: int) -> Integers:
        """(k,) codes of the occupied cells on one axis."""
        stride = math.prod(self.domain.shape[position + 1 :])
        upwards = self.cells // stride
        size = self.domain.shape[position]
        return upwards - upwards // size * size  # twice as fast as a remainder

    def roll_up(self, names: tuple[str, ...]) -> Tally:
        """The tally over some of the columns, in the order given."""
        if names == self.domain.names:
            return self
        target = self.domain.select(names)
        packed = np.zeros(len(self.cells), dtype=np.int64)
        for name, size in zip(names, target.shape, strict=True):
            packed = packed * size + self.codes(self.domain.names.index(name))
        if target.size <= len(packed):
            counts = summed(packed, self.counts, target.size)
            cells = np.flatnonzero(counts)
            return Tally(target, cells, counts[cells])
        order = np.argsort(packed)
        packed = packed[order]
        first = np.flatnonzero(np.diff(packed, prepend=-1))
        return Tally(target, packed[first], np.add.reduceat(self.counts[order], first))

    def dense(self) -> Integers:
        """(domain.size,) counts of every cell."""
        counts = np.zeros(self.domain.size, dtype=np.int64)
        counts[self.cells] = self.counts
        return counts


def summed(cells: Integers, counts: Integers, size: int) -> Integers:
    """(size,) the sum of the counts of each cell: exact below 2^63, since no float takes part.

    ``cells``, ``counts`` (k,): a cell may occur several times.
    """
    result = np.zeros(size, dtype=np.int64)
    np.add.at(result, cells, counts)
    return result
