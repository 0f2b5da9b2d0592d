"""The public coding of survey columns into cells.

An axis maps the values of one column to cells 0, 1, ..., size - 1 by a public rule that acts on each
record alone.  A domain is a list of axes, and numbers its cells in row-major order:

    axes      sex: F, M        age: [0, 40), [40, 90]
    cell      0 = F, [0, 40)   1 = F, [40, 90]   2 = M, [0, 40)   3 = M, [40, 90]

A nullable axis has one more cell, the last, for null.  Nothing here depends on survey data.

A cell is numbered by one 64-bit integer as long as there are at most 2^62.  A wider domain cuts its axes
into as few blocks of consecutive ones as can be numbered, and a cell is a row of these *words*:

    200 axes of 8 cells    words of 20 axes each    cells (k, 10), in lexicographic order

>>> domain = Domain((Categories("sex", ("F", "M")), Bins("age", (0.0, 40.0, 90.0))))
>>> domain.size, domain.unpack(np.array([2])).tolist()
(4, [[1, 0]])
>>> wide = Domain(tuple(Categories(f"q{i}", ("no", "yes")) for i in range(70)))
>>> wide.words, wide.pack(np.ones((1, 70), dtype=np.int64)).tolist() == [[2**62 - 1, 2**8 - 1]]
((4611686018427387904, 256), True)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcore.arrays import Booleans, Floats, Integers
from dpcore.transforms import TRANSFORMS, Transform, TransformName

Category = str | int | float | bool

LARGEST_WORD = 2**62
"""Cells are numbered by signed 64-bit integers, with room to add."""

LARGEST_EXACT = 2.0**52
"""Floats add up whole numbers exactly as long as no sum is larger."""


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
        """(k,) numbers within the bounds to parts of the axis, on the scale of the transform."""
        inside = (self._scale.forward(np.asarray(values)) - self._ends[0]) / self.span
        return np.asarray(np.clip(inside, 0.0, 1.0))

    def from_unit(self, parts: Floats) -> Floats:
        """(k,) the numbers at these parts of the axis."""
        values = self._scale.backward(self._ends[0] + parts * self.span)
        return np.asarray(np.clip(values, *self.bounds))

    def slope(self, values: Floats) -> Floats:
        """(k,) derivatives of ``to_unit``: a density of parts times them is one of the numbers."""
        with np.errstate(divide="ignore"):
            return np.asarray(self._scale.slope(np.asarray(values, dtype=np.float64)) / self.span)

    @property
    def size(self) -> int:
        return self.cells + len(self.points) + self.nullable

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
        if self.transform != "none":
            inner = np.where(positions == 0, self.lower, self.from_unit(positions / self.cells))
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
        for axis in self.axes:
            if axis.size > LARGEST_WORD:
                raise ValueError(f"{axis.name} has more cells than the 2^62 that can be numbered")

    @cached_property
    def shape(self) -> tuple[int, ...]:
        return tuple(axis.size for axis in self.axes)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(axis.name for axis in self.axes)

    @cached_property
    def blocks(self) -> tuple[range, ...]:
        """The positions of the axes in each word."""
        return blocks(self.shape)

    @cached_property
    def words(self) -> tuple[int, ...]:
        """The size of each word: one, unless there are more than ``LARGEST_WORD`` cells."""
        return tuple(math.prod(self.shape[i] for i in block) for block in self.blocks)

    def require_one_word(self, what: str) -> None:
        """Raise ``ValueError`` where there are more cells than ``what`` can number."""
        if len(self.words) > 1:
            raise ValueError(
                f"columns: {size_text(self.size)} cells are more than the 2^62 (4.61e+18) that {what}"
                " can number; use fewer columns or wider bins, or margins or microdata-margins, which"
                " take any number"
            )

    def unpack(self, cells: Integers) -> Integers:
        """Cells (k,), or (k, words), to codes (k, axes)."""
        codes = np.empty((len(cells), len(self.axes)), dtype=np.int64)
        for block, word in zip(self.blocks, by_word(cells), strict=True):
            rest = word.astype(np.int64, copy=False)
            for i in reversed(block):
                rest, codes[:, i] = np.divmod(rest, self.shape[i])
        return codes

    def pack(self, codes: Integers) -> Integers:
        """Codes (k, axes) to cells (k,), or (k, words)."""
        words = np.zeros((len(self.words), len(codes)), dtype=np.int64)
        for block, word in zip(self.blocks, words, strict=True):
            for i in block:
                word *= self.shape[i]
                word += codes[:, i]
        return in_words(words)

    def numbers(self, cells: Integers) -> list[int]:
        """The row-major numbers, of any size, of cells (k,), or (k, words)."""
        numbers = [0] * len(cells)
        for size, word in zip(self.words, by_word(cells), strict=True):
            numbers = [n * size + part for n, part in zip(numbers, word.tolist(), strict=True)]
        return numbers

    def at(self, numbers: Sequence[int]) -> Integers:
        """Cells (k,), or (k, words), by their row-major numbers."""
        words = np.empty((len(self.words), len(numbers)), dtype=np.int64)
        rest = list(numbers)
        for i in reversed(range(len(self.words))):
            words[i] = [number % self.words[i] for number in rest]
            rest = [number // self.words[i] for number in rest]
        return in_words(words)

    def select(self, names: tuple[str, ...]) -> Domain:
        """The domain of some of the columns, in the order given."""
        return Domain(tuple(self.axes[self.positions[name]] for name in names))

    @cached_property
    def positions(self) -> dict[str, int]:
        """The place of each column."""
        return {axis.name: i for i, axis in enumerate(self.axes)}


@dataclass(frozen=True, eq=False)
class Tally:
    """The number of records in each occupied cell: private.

    ``cells``: (k,) ascending cells, or (k, words); ``counts``: (k,) positive counts.
    """

    domain: Domain
    cells: Integers
    counts: Integers

    @classmethod
    def of(cls, domain: Domain, cells: Integers, counts: Integers | None = None) -> Tally:
        """The tally of cells (m,), or (m, words), in any order, that may occur several times.

        ``counts``: (m,) records of each; one each without.
        """
        if counts is None:
            counts = np.ones(len(cells), dtype=np.int64)
        order = np.argsort(cells) if cells.ndim == 1 else np.lexsort(cells.T[::-1])
        cells = cells[order]
        first = np.flatnonzero(np.r_[True, differ(cells)][: len(cells)])
        sums = np.add.reduceat(counts[order], first) if len(first) else counts
        return cls(domain, cells[first], sums)

    def __repr__(self) -> str:
        return f"<tally over {' x '.join(self.domain.names)}: withheld>"

    def __reduce__(self) -> str:
        raise TypeError("a tally does not leave the process that computed it")

    def codes(self, position: int) -> NDArray[np.signedinteger[Any]]:
        """(k,) codes of the occupied cells on one axis; they are computed once for each axis."""
        if position not in self._codes:
            self._codes[position] = self._unpacked(position)
        return self._codes[position]

    @cached_property
    def _codes(self) -> dict[int, NDArray[np.signedinteger[Any]]]:
        return {}

    def _unpacked(self, position: int) -> NDArray[np.signedinteger[Any]]:
        domain = self.domain
        for block, word in zip(domain.blocks, by_word(self.cells), strict=True):
            if position in block:
                size = domain.shape[position]
                upwards = word // math.prod(domain.shape[i] for i in block if i > position)
                # Twice as fast as a remainder.
                return (upwards - upwards // size * size).astype(np.min_scalar_type(-size))
        raise IndexError(position)

    def roll_up(self, names: tuple[str, ...]) -> Tally:
        """The tally over some of the columns, in the order given."""
        if names == self.domain.names:
            return self
        target = self.domain.select(names)
        if target.size <= len(self.cells):
            counts = self.margin(names)
            cells = np.flatnonzero(counts)
            return Tally(target, cells, counts[cells])
        codes = (self.codes(self.domain.positions[name]) for name in names)
        return Tally.of(target, target.pack(np.stack([*codes], axis=1)), self.counts)

    def margin(self, names: tuple[str, ...]) -> Integers:
        """(cells,) counts of every cell of some of the columns, in the order given."""
        if names == self.domain.names:
            return self.dense()
        positions = [self.domain.positions[name] for name in names]
        shape = [self.domain.shape[i] for i in positions]
        packed = np.zeros(len(self.cells), dtype=np.int64)
        for position, size in zip(positions, shape, strict=True):
            packed *= size
            packed += self.codes(position)
        return summed(packed, self.counts, math.prod(shape))

    def dense(self) -> Integers:
        """(domain.size,) counts of every cell."""
        counts = np.zeros(self.domain.size, dtype=np.int64)
        counts[self.cells] = self.counts
        return counts


def blocks(shape: Sequence[int]) -> tuple[range, ...]:
    """The positions of axes of these sizes in each word: each takes as many as it can."""
    starts, size = [0], 1
    for i, cells in enumerate(shape):
        size *= cells
        if size > LARGEST_WORD:
            starts.append(i)
            size = cells
    return tuple(range(*both) for both in pairwise([*starts, len(shape)]))


def size_text(size: int) -> str:
    """A number of cells in three digits, however large: a float holds no more than 1e308."""
    return f"{size:.3g}" if size < 10**300 else f"1e+{math.log10(size):.0f}"


def by_word(cells: Integers) -> Sequence[Integers]:
    """The words, (k,) each, of cells (k,) or (k, words)."""
    return [cells] if cells.ndim == 1 else list(cells.T)


def in_words(words: Integers) -> Integers:
    """Cells (k,) of one word, (1, k), or (k, words) of several, (words, k)."""
    return words[0] if len(words) == 1 else np.ascontiguousarray(words.T)


def differ(cells: Integers) -> Booleans:
    """(k - 1,) whether each of cells (k,), or (k, words), is another than the one before."""
    other = cells[1:] != cells[:-1]
    return other if cells.ndim == 1 else np.asarray(other.any(axis=1))


def ascending(cells: Integers) -> bool:
    """Whether cells (k,), or (k, words), are in order and different."""
    if cells.ndim == 1:
        return not np.any(np.diff(cells) <= 0)
    first = (cells[1:] != cells[:-1]).argmax(axis=1)[:, None]
    return not np.any(
        np.take_along_axis(cells[1:], first, 1) <= np.take_along_axis(cells[:-1], first, 1)
    )


def summed(cells: Integers, counts: Integers, size: int) -> Integers:
    """(size,) the sum of the counts of each cell, exact below 2^63.

    ``cells``, ``counts`` (k,): a cell may occur several times.
    """
    if np.abs(counts).sum(dtype=np.float64) < LARGEST_EXACT:
        return np.bincount(cells, counts, size).astype(np.int64)
    result = np.zeros(size, dtype=np.int64)
    np.add.at(result, cells, counts)  # no float takes part
    return result
