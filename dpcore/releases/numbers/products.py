r"""Products of columns up to the fourth degree, as one integer vector of known length.

A number is scaled to x in [-1, 1].  A category of K is a corner v of a regular simplex with |v| = 1, so
that v.v' is 1 for equal and -1/(K - 1) for different categories; for K = 2 the corners are 1 and -1.
All p columns together are a point x with |x|^2 <= p.  A record becomes

    phi(x):  the products of degree 0 to 4 of its coordinates, with weights such that
    phi(x).phi(x') = k(x.x')  if none is left out,         k(t) = (1 + t)^2 + h (1 + t)^4

so the squared weight of the product with exponents m is its multinomial coefficient in k.  Products of
two coordinates of one category are left out, because they are sums of the others.  Products of degree 1
and 2 give means, covariances and linear models.  Products of degree 3 and 4 give their sampling errors;
with h = ``FOURTH`` / (1 + p)^2 they are large enough.

**Lemma.**  Let q = 1 + p.  For all x, x':

    |phi(x)|^2 <= q^2 + h q^4,            |phi(x) - phi(x')|^2 <= 2 (q^2 + h q^4)

*Proof.*  Leaving out products shortens vectors and differences, so let none be left out.  The first is
k(x.x) with x.x <= p.  The second is k(x.x) + k(x'.x') - 2 k(x.x'), and k >= 0.  QED Equality holds for
numbers at their bounds with x.x' = -1, which needs an odd p.

**Whole numbers.**  A record adds round(2^b phi), b = ``BITS``.  It differs from 2^b phi by at most half
in each of d products, and floating-point errors add less than 1 in total: they are below 2^-45,
relative to a length below 2^40.  So norms grow by at most sqrt(d)/2 + 1, and norms of differences by
twice that.  Sums of whole numbers are exact in any order.

>>> from dpcore.domain.axes import Categories, Grid
>>> products = Products((Grid("x", 0.0, 1.0, 8), Categories("sex", ("F", "M"))))
>>> products.exponents.tolist()[:5], products.size
([[0, 0], [0, 1], [1, 0], [1, 1], [2, 0]], 9)
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcore.arrays import Floats, Integers
from dpcore.domain.axes import (
    MOST_EXAMINED,
    Axis,
    Bins,
    Categories,
    Grid,
    at_most,
    in_order,
    middles,
)
from dpcore.domain.tally import Tally

BITS = 20
"""A record has a length of at least 2 to this power steps, so that rounding hardly matters."""

DEGREE = 4

FOURTH = Fraction(1, 4)
"""The increase of the squared sensitivity by products of the fourth degree: noise grows by an eighth."""

MOST_PRODUCTS = 3000

LARGEST = 1e30
"""The largest value of a column: errors of models multiply eight values."""

NODES = np.array([1.0, -1.0, 0.0, 0.5, -0.5])
"""The nodes at which polynomials of degree 4 in one number are evaluated."""


@dataclass(frozen=True)
class Products:
    """The products of some columns; all public."""

    axes: tuple[Axis, ...]

    def __post_init__(self) -> None:
        for axis in self.axes:
            if isinstance(axis, Bins):
                raise ValueError(f"columns: {axis.name} is binned; its values are needed")
            if axis.nullable:
                raise ValueError(f"columns: {axis.name} may be null; choose a column without nulls")
            if in_order(axis) and max(map(abs, self.ends(axis))) > LARGEST:
                raise ValueError(
                    f"columns: {axis.name} has values beyond {LARGEST:g}, too large for"
                    " models; write the column in a larger unit"
                )
        # Counted before they are listed: there may be more than fit into memory.
        if (found := self._count()) > MOST_PRODUCTS:
            raise ValueError(
                f"columns: make {found:,} products of up to four columns, but at most {MOST_PRODUCTS:,}"
                " can be measured; leave out columns, or group categories"
            )

    def _count(self) -> int:
        ways = np.array([1] + [0] * DEGREE, dtype=object)  # by degree
        for axis in self.axes:
            own = [1] * (DEGREE + 1) if in_order(axis) else [1, axis.size - 1]
            ways = np.convolve(ways, np.array(own, dtype=object))[: DEGREE + 1]
        return sum(map(int, ways))

    @cached_property
    def exponents(self) -> Integers:
        """The exponents (size, axes) of numbers; for categories, the coordinate used, or 0."""
        found: list[tuple[tuple[int, ...], int]] = [((), 0)]
        for axis in self.axes:
            number = in_order(axis)
            found = [
                ((*before, i), degree + own)
                for before, degree in found
                for i in range(DEGREE + 1 if number else axis.size)
                if degree + (own := i if number else min(i, 1)) <= DEGREE
            ]
        return np.array([before for before, _ in found], dtype=np.int64).reshape(len(found), -1)

    @property
    def size(self) -> int:
        return len(self.exponents)

    @cached_property
    def degrees(self) -> Integers:
        """The degree (size, axes) of each column in each product."""
        numbers = np.array([in_order(axis) for axis in self.axes])
        return np.where(numbers, self.exponents, np.minimum(self.exponents, 1))

    @cached_property
    def fourth(self) -> Fraction:
        """The weight h of products of degree 3 and 4."""
        return FOURTH / (1 + len(self.axes)) ** 2

    @property
    def length_squared(self) -> Fraction:
        """The bound q^2 + h q^4 on |phi|^2; the squared distance of two phi is at most twice this."""
        q = 1 + len(self.axes)
        return q**2 + self.fourth * q**4

    @cached_property
    def weights(self) -> Floats:
        """The weight (size,) of each product in phi."""
        return np.array([math.sqrt(self._weight_squared(row)) for row in self.degrees.tolist()])

    def _weight_squared(self, degrees: Sequence[int]) -> Fraction:
        weight = self.fourth * _multinomial(DEGREE, degrees)
        return weight + _multinomial(2, degrees) if sum(degrees) <= 2 else weight

    def steps_squared(self, differences: bool) -> Fraction:
        """The squared length of a record's integers, or of two records' ``differences``."""
        several = 2 if differences else 1
        length = math.isqrt(math.ceil(several * self.length_squared * 4**BITS)) + 1
        return Fraction((length + several * ((math.isqrt(self.size) + 1) // 2 + 2)) ** 2)

    @property
    def largest(self) -> int:
        """The largest absolute value in one record's integers."""
        return math.ceil(float(self.weights.max()) * 2.0**BITS) + 1

    def coordinates(self, axis: Axis) -> Floats:
        """The coordinates (codes, coordinates) of each value of a column: powers of a number, or 1 and
        the corner of a category."""
        if in_order(axis):
            return powers(self.scaled(axis))
        return np.column_stack([np.ones(axis.size), corners(axis.size)])

    @staticmethod
    def ends(axis: Axis) -> tuple[float, float]:
        """The values of a numeric column that are scaled to -1 and 1."""
        if isinstance(axis, Grid):
            return (axis.lower, axis.upper - 1) if axis.integer else (axis.lower, axis.upper)
        assert isinstance(axis, Categories)
        return float(axis.categories[0]), float(axis.categories[-1])

    def scaled(self, axis: Axis) -> Floats:
        """The values (codes,) of a numeric column on [-1, 1]; cells have their middles."""
        first, last = self.ends(axis)
        values = np.asarray(middles(axis), dtype=np.float64)
        # The ends of a column with a single value are equal.
        return np.clip((2 * values - (first + last)) / ((last - first) or 1.0), -1.0, 1.0)

    def features(self) -> Floats:
        """The products (size, size) at points, one point per product: its j-th node if a number has the
        exponent j, its j-th category if a category has the coordinate j."""
        found = np.tile(self.weights, (self.size, 1))
        for axis, exponents in zip(self.axes, self.exponents.T, strict=True):
            table = powers(NODES) if in_order(axis) else self.coordinates(axis)
            found *= table[np.ix_(exponents, exponents)]
        return found

    def places(self) -> dict[str, NDArray[Any]]:
        """For each column its values (size,) at the points of ``features``, in its own units."""
        found: dict[str, NDArray[Any]] = {}
        for axis, exponents in zip(self.axes, self.exponents.T, strict=True):
            if in_order(axis):
                first, last = self.ends(axis)
                found[axis.name] = (first + last + (last - first) * NODES[exponents]) / 2
            else:
                assert isinstance(axis, Categories)
                values = np.empty(axis.size, dtype=object)
                values[:] = axis.categories
                found[axis.name] = values[exponents]
        return found

    def sums(self, tally: Tally) -> list[int]:
        """The sums over the records of a tally: one exact integer, of any size, for each product."""
        counts, total = tally.counts, tally.total
        if total * self.largest >= 2**62:
            # Python integers, whose sums have no limit.
            counts = counts.astype(object)
        tables = [self.coordinates(axis) for axis in self.axes]
        columns = [np.asarray(tally.codes(i)) for i in range(len(self.axes))]
        found = []
        for row, weight in zip(self.exponents.tolist(), self.weights.tolist(), strict=True):
            terms = np.full(len(counts), weight * 2.0**BITS)
            for table, codes, i in zip(tables, columns, row, strict=True):
                if i:
                    terms *= table[codes, i]
            found.append(int(np.sum(counts * np.rint(terms).astype(np.int64))))
        return found

    def independent(self, shares: Mapping[str, Floats] | None) -> Floats:
        """The mean (size,) of phi if columns were independent and their values had these shares; without
        them all values are equally frequent."""
        found = self.weights.copy()
        for axis, exponents in zip(self.axes, self.exponents.T, strict=True):
            weights = None if shares is None else shares[axis.name]
            some = at_most(axis, MOST_EXAMINED)
            found *= np.average(self.coordinates(some), axis=0, weights=weights)[exponents]
        return found


def powers(x: Floats) -> Floats:
    """The powers 0 to 4 (k, 5) of numbers (k,)."""
    return np.asarray(x[:, None] ** np.arange(DEGREE + 1))


def corners(size: int) -> Floats:
    """The corners (size, size - 1) of a regular simplex around the origin, each of length 1.

    >>> corners(2).round(6).tolist()
    [[1.0], [-1.0]]
    """
    if size == 1:
        return np.zeros((1, 0))
    found = np.zeros((size, size - 1))
    for j in range(size - 1):  # Helmert's contrasts
        found[j, j], found[j + 1 :, j] = size - 1 - j, -1.0
        found[:, j] /= math.sqrt((size - 1 - j) * (size - j))
    return found * math.sqrt(size / (size - 1))


def _multinomial(power: int, degrees: Sequence[int]) -> int:
    """The coefficient of a product in (1 + x_1 + x_2 + ...)^power."""
    rest = power - sum(degrees)
    return math.factorial(power) // math.prod(math.factorial(d) for d in (rest, *degrees))
