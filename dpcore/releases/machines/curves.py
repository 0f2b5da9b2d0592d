"""Public features of one column each, in whole numbers, and the noisy sums of their products.

    numbers       TERMS cosines of the value's place u in [0, 1], cos(pi k u) / k: smooth curves, of
                  which the first ones weigh most
    null of one   a coordinate of its own, 0.7 where the value is null, when all cosines are 0
    categories    a coordinate for each, 0.7 for the record's own and 0 for the others

All are multiplied by ``SCALE`` and rounded, so that sums of products are whole numbers: each record's
row z begins with ``SCALE`` itself, the intercept.  A place is an even one inside the column's bounds,
or the share of all cumulated square roots of noisy counts below it (the rule by which Dalenius & Hodges
1959 cut strata): half way between even places and ranks, it spreads out where records are many, and
leaves room to rare values.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from math import isqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcore.accounting.budget import Budget
from dpcore.arrays import Booleans, Floats, Integers
from dpcore.domain.axes import Axis, Bins, Categories, Grid
from dpcore.domain.tally import Tally
from dpcore.domain.words import LARGEST_EXACT
from dpcore.line.statistic import Exact, Noisy
from dpcore.mechanisms import DiscreteGaussian
from dpcore.releases.base import ErrorStatement, Release, outside
from dpcore.releases.machines.features import (
    MOST_CATEGORIES,
    nulls_and_codes,
    ordered,
    require_few,
    scaling,
)
from dpcore.releases.table import Published
from dpcore.releases.work import Work, publishing

TERMS = 4
"""Cosines of a column of numbers; one of k values has k - 1 at most."""

SCALE = 2**10

PART = round(0.7 * SCALE)
"""The coordinate of a category, or of a null."""

ROWS_AT_ONCE = 2**14

SUMMED = 2e-10
"""Seconds for each distinct row and product."""

TALLIED = 150
"""Bytes for each distinct row, while they are counted."""

Places = tuple[tuple[float, ...], ...]
"""Of each feature the places of its values (cells without null); of categories none."""


def even_places(axis: Axis) -> tuple[float, ...]:
    """The middle of each cell, in [0, 1] of the column's bounds; () for categories."""
    if not ordered(axis):
        return ()
    if isinstance(axis, Categories):
        lower, width = scaling(axis)
        values = np.asarray(axis.categories, dtype=np.float64)
        return tuple(((values - lower) / width).tolist())
    edges = np.asarray(axis.edges)
    return tuple((((edges[1:] + edges[:-1]) / 2 - edges[0]) / (edges[-1] - edges[0])).tolist())


def spread_places(axis: Axis, counts: Floats) -> tuple[float, ...]:
    """The place of the middle of each cell by noisy counts (size,), which may be negative."""
    even = even_places(axis)
    found = np.sqrt(np.maximum(counts[: len(even)], 0.0))
    if not found.sum() > 0:
        return even
    return tuple(((np.cumsum(found) - found / 2) / found.sum()).tolist())


def terms_of(axis: Axis) -> Integers:
    """The numbers k of the cosines of a column of numbers."""
    values = axis.size - axis.nullable
    return np.arange(1, min(TERMS, max(values - 1, 1)) + 1)


def coordinates_of(axis: Axis, places: tuple[float, ...]) -> Integers:
    """The features of each cell of an axis: (size, coordinates)."""
    if not places:
        require_few(axis, MOST_CATEGORIES)
        return PART * np.eye(axis.size, dtype=np.int64)
    terms = terms_of(axis)
    curves = SCALE * np.cos(np.pi * np.outer(places, terms)) / terms
    whole = np.rint(curves).astype(np.int64)
    if not axis.nullable:
        return whole
    table = np.zeros((axis.size, len(terms) + 1), dtype=np.int64)
    table[:-1, :-1], table[-1, -1] = whole, PART
    return table


def cells_at(axis: Axis, values: NDArray[Any]) -> Integers:
    """The cells of values (k,) in the column's own units; a null is masked, None or NaN.

    Raises ``ValueError`` where a value is not one of the axis.
    """
    null, codes = nulls_and_codes(axis, values)
    if codes is not None:
        return codes
    assert isinstance(axis, Bins | Grid)
    numbers = np.ma.getdata(values)[~null].astype(np.float64)
    found = np.full(len(null), axis.size - 1)
    upper = axis.upper - axis.integer
    if not np.all((numbers >= axis.lower) & (numbers <= upper)):
        raise _outside(axis, upper)
    starts = axis.starts if isinstance(axis, Bins) else axis.edges[:-1]
    found[~null] = np.searchsorted(np.asarray(starts), numbers, side="right") - 1
    return found


def _outside(axis: Bins | Grid, upper: float) -> ValueError:
    half = 0.5 if isinstance(axis, Grid) and axis.integer else 0.0
    return outside(axis, axis.lower - half, upper + half)


@dataclass(frozen=True)
class FeatureSums(Release):
    """Noisy sums over records of the products of their features, and of label times feature.

    Claim.  For a row z = (SCALE, features), and a label y of +1 or -1, a record adds the numbers
    z_i z_j, i <= j, and w y z_i, w = ``weight``.  Products that are public are left out: those of two
    coordinates of which one is always 0, and that of the intercept with itself, n SCALE^2, where n is
    public.  With R >= |z|^2 and H >= sum of z_i^4, the squared L2 norm of what one record adds, and of
    the change where one replaces another, are at most

        (R^2 + H)/2 + w^2 R    and    R^2 + H - SCALE^4 + 2 w^2 R + w^4

    For units of several records both bounds serve ``Adjacency.squared``.

    Proof.  Let a be the products of z, all with i <= j, and a' those of z'.  Then a.a' =
    (t^2 + sum of z_i^2 z'_i^2)/2 with t = z.z', so |a|^2 = (|z|^4 + sum of z_i^4)/2 and |a - a'|^2 <=
    R^2 + H - t^2 - SCALE^4, as z_0 = z'_0 = SCALE.  The labels add w^2 |z|^2, and w^2 |y z - y' z'|^2 <=
    w^2 (2 R + 2 |t|), and 2 w^2 |t| - t^2 <= w^4.  To leave numbers out shortens both.  QED

    R and H are the sums over the columns of the largest values that a cell can have at any places, so
    that the noise does not depend on them.  All numbers are whole, and sums of them are exact: those of
    ``ROWS_AT_ONCE`` distinct rows are floats where every one in any order is below 2^52.  What a table
    larger than ``most_rows`` adds is cut (``dpcore.domain.adjacency``).

    The last axis of the domain is the label; ``signs``: +1 or -1 for each of its codes.
    """

    signs: tuple[int, ...] = ()
    places: Places = ()

    @cached_property
    def tables(self) -> tuple[Integers, ...]:
        """The coordinates of each cell of each feature: (size, coordinates)."""
        axes = self.domain.axes[:-1]
        return tuple(coordinates_of(axis, p) for axis, p in zip(axes, self.places, strict=True))

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """The position of each feature's first coordinate in a row, and the length of a row."""
        return tuple(np.cumsum([1, *(table.shape[1] for table in self.tables)]).tolist())

    @cached_property
    def measured(self) -> Booleans:
        """Which products are measured: (d, d), of i <= j."""
        found = np.triu(np.ones((self.starts[-1],) * 2, dtype=bool))
        found[0, 0] = not self.adjacency.public_rows
        for axis, table, start in zip(self.domain.axes, self.tables, self.starts, strict=False):
            end = start + table.shape[1]
            if not ordered(axis):
                found[start:end, start:end] = np.eye(end - start, dtype=bool)
            elif axis.nullable:
                found[start : end - 1, end - 1] = False
        return found

    def _norm(self, power: int) -> int:
        return int(SCALE**power) + sum(
            largest_coordinates(axis, power) for axis in self.domain.axes[:-1]
        )

    @cached_property
    def weight(self) -> int:
        """w: with half the norm of a row, labels and products are measured about equally well."""
        return isqrt(self._norm(2)) // 2

    @property
    def size(self) -> int:
        """How many numbers are measured."""
        return int(self.measured.sum()) + self.starts[-1]

    @property
    def sensitivity_squared(self) -> Fraction:
        """Of the claim: the same at any places."""
        norm, squared = self._norm(2), self.weight**2
        twice = norm**2 + self._norm(4) + 2 * squared * norm
        return self.adjacency.squared(
            moved=Fraction(twice - SCALE**4 + squared**2), present=Fraction(twice, 2)
        )

    @cached_property
    def mechanism(self) -> DiscreteGaussian:
        return noise_of(self.share, self.size, self.sensitivity_squared)

    @property
    def _largest(self) -> int:
        """No number of one record is larger in size."""
        return SCALE * max(SCALE, self.weight)

    @property
    def largest_statistic(self) -> int:
        return self.most_rows * self._largest

    def statistic(self, tally: Tally) -> Exact:
        size, most = self.starts[-1], self.largest_statistic
        sums = np.zeros(self.size, dtype=object)
        signs = np.asarray(self.signs, dtype=np.int64)
        for first in range(0, len(tally.cells), ROWS_AT_ONCE):
            part = slice(first, first + ROWS_AT_ONCE)
            counts, codes = tally.counts[part], tally.domain.unpack(tally.cells[part])
            exact = int(counts.sum()) * self._largest < LARGEST_EXACT
            rows = np.empty((len(counts), size), dtype=np.float64 if exact else object)
            rows[:, 0] = SCALE
            for i, (table, start) in enumerate(zip(self.tables, self.starts, strict=False)):
                rows[:, start : start + table.shape[1]] = table[codes[:, i]]
            weighed = rows * counts[:, None]
            products = (weighed.T @ rows)[self.measured]
            found = np.concatenate([products, self.weight * (signs[codes[:, -1]] @ weighed)])
            sums += found.astype(np.int64) if exact else found
        return Exact(np.clip(sums, -most, most).astype(np.int64))

    def records(self, noisy: Noisy) -> float:
        """How many there are: noisy, and at least 1, where that is private."""
        if self.adjacency.public_rows:
            return float(self.rows)
        return max(float(noisy.values[0]) / SCALE**2, 1.0)

    def opened(self, noisy: Noisy) -> tuple[Floats, Floats]:
        """Noisy means over the records: of products (d, d), and of label times feature (d,)."""
        sums = noisy.values.astype(np.float64) / self.records(noisy)
        products, many = np.zeros(self.measured.shape), int(self.measured.sum())
        products[self.measured] = sums[:many] / SCALE**2
        products[0, 0] = 1.0
        products += np.triu(products, 1).T
        return products, sums[many:] / (self.weight * SCALE)

    def stddevs(self, records: float) -> tuple[float, float]:
        """Of the noise in each mean of a product, and of a label times a feature."""
        stddev = self.mechanism.stddev / records
        return stddev / SCALE**2, stddev / (self.weight * SCALE)

    @property
    def work(self) -> Work:
        distinct, size = min(self.rows, self.domain.size), self.starts[-1]
        drawn = Work(SUMMED * distinct * size**2, TALLIED * distinct)
        return drawn + publishing(self.mechanism.size)

    def publish(self, noisy: Noisy) -> Published:
        """Nothing by itself: ``additive`` makes a classifier of it."""
        return Published(())

    def expected_error(self) -> tuple[ErrorStatement, ...]:
        product, label = self.stddevs(self.rows)
        return (
            ErrorStatement("standard error of a mean product of two features", product),
            ErrorStatement("standard error of a mean of label times feature", label),
        )


def largest_coordinates(axis: Axis, power: int) -> int:
    """The most that the coordinates of a cell can come to, in this power, at any places."""
    if not ordered(axis):
        return int(PART**power)
    curves = sum(int(round(SCALE / k) ** power) for k in terms_of(axis).tolist())
    return max(curves, int(PART**power)) if axis.nullable else curves


@lru_cache
def noise_of(share: Budget, size: int, squared: Fraction) -> DiscreteGaussian:
    """The same numbers are asked for again and again."""
    return DiscreteGaussian.within(share, size, squared)
