"""Means, covariances and linear models of bounded columns, from one noisy sum.

The statistic is the sum over the records of their products up to the fourth degree
(``dpcore.releases.numbers.products``), with discrete Gaussian noise.  If the number of records is
public it is not measured; if it is private, it is the product of degree 0.  Sums are cut at what
``most_rows`` records can reach (``dpcore.domain.adjacency``).

It publishes means, shares, means by group, variances and covariances, each with errors from sampling and
from noise; ``points`` is for fitting linear models (``dpcore.post.points``).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np

from dpcore.arrays import Floats
from dpcore.domain.axes import Categories, Grid, in_order
from dpcore.domain.cell_values import ends_of
from dpcore.domain.tally import Tally
from dpcore.line.statistic import Exact, Noisy
from dpcore.mechanisms import DiscreteGaussian
from dpcore.post.points import Estimated, Points
from dpcore.post.units import assumptions
from dpcore.releases.base import ErrorStatement, Release
from dpcore.releases.numbers.estimates import estimate_columns
from dpcore.releases.numbers.products import BITS, Products
from dpcore.releases.table import Published, Table, TableColumn, Uncertainty
from dpcore.releases.work import Work, publishing

HIDDEN = "too few records or too much noise for an interval"

STATED = (
    "Errors include sampling and noise, to first order and with a normal approximation. The 95%"
    " interval is for the population from which the survey is assumed to be drawn. Not included: if"
    " the plan clamps, a value beyond a bound counts as the bound, and on a grid a value counts as the"
    " middle of its cell"
)

LABELS = {
    "statistic": "mean, share, variance or covariance",
    "column": "The described column",
    "other": "The second column of a covariance, or the column that defines the groups; otherwise null",
    "category": "The category of a share or of a group; otherwise null",
}

ADDED = 1e-8
"""CPU seconds for each product of a record."""

Label = tuple[str, str, str | None, str | None]


@dataclass(frozen=True)
class Moments(Release):
    """Sums of products of the columns of the domain: numbers and categories, without nulls."""

    finer = "fewer columns or narrower bounds"

    chart = "estimates"

    def __post_init__(self) -> None:
        _ = self.products  # refuses columns that cannot be measured
        super().__post_init__()

    @cached_property
    def products(self) -> Products:
        return Products(self.domain.axes)

    @cached_property
    def mechanism(self) -> DiscreteGaussian:
        squared = self.adjacency.squared(
            moved=self.products.steps_squared(differences=True),
            present=self.products.steps_squared(differences=False),
        )
        return DiscreteGaussian.within(self.share, self.products.size - self._public, squared)

    @property
    def _public(self) -> int:
        """The number of leading products that are public: one, of degree 0, if the rows are public."""
        return int(self.adjacency.public_rows)

    @property
    def largest_statistic(self) -> int:
        return self.most_rows * self.products.largest

    def statistic(self, tally: Tally) -> Exact:
        most = self.largest_statistic
        sums = [max(-most, min(most, each)) for each in self.products.sums(tally)]
        return Exact(np.array(sums[self._public :], dtype=np.int64))

    @property
    def work(self) -> Work:
        distinct, size = min(self.rows, self.domain.size), self.products.size
        return publishing(size) + Work(ADDED * distinct * size, 40 * distinct + 24 * size**2)

    def points(self, noisy: Noisy) -> Points:
        """Weighted points that represent the records, at the values of ``products.places``."""
        known = [self.rows * self.products.weights[0]] * self._public
        return self._points(np.r_[known, noisy.values * 2.0**-BITS])

    def supposed(self, shares: Mapping[str, Floats] | None = None) -> Points:
        """The points expected before a draw, for independent columns whose values have these shares; by
        default all values are equally frequent."""
        return self._points(self.rows * self.products.independent(shares))

    def _points(self, sums: Floats) -> Points:
        stddev = np.full(len(sums), self.mechanism.stddev * 2.0**-BITS)
        stddev[: self._public] = 0.0
        return Points(self.products.features(), sums, stddev, self.adjacency.most)

    def publish(self, noisy: Noisy) -> Published:
        labels, found = self.summary(self.points(noisy))
        return Published((self._table(labels, found),), {"products": self.products.size})

    def summary(self, points: Points) -> tuple[list[Label], Estimated]:
        """Means, shares, means by group, variances and covariances."""
        places, labels, found = self.products.places(), list[Label](), list[Estimated]()
        numbers = [axis.name for axis in self.domain.axes if in_order(axis)]
        every = np.ones(self.products.size)
        values: Floats = np.empty((0, 0))
        if numbers:
            values = np.array([places[name] for name in numbers]).T.astype(np.float64)
            found.append(points.means(values, every))
            labels += [("mean", name, None, None) for name in numbers]
        for axis in self.domain.axes:
            if in_order(axis):
                continue
            assert isinstance(axis, Categories)
            for category in axis.categories:
                group = (places[axis.name] == category).astype(np.float64)
                found.append(points.means(group[:, None], every))
                labels.append(("share", axis.name, None, str(category)))
                if numbers:
                    found.append(points.means(values, group))
                    labels += [("mean", name, axis.name, str(category)) for name in numbers]
        pairs = [(i, i) for i in range(len(numbers))] + [*combinations(range(len(numbers)), 2)]
        if pairs:
            first, second = ([*each] for each in zip(*pairs, strict=True))
            found.append(points.covariances(values[:, first], values[:, second]))
            labels += [
                ("variance", numbers[i], None, None)
                if i == j
                else ("covariance", numbers[i], numbers[j], None)
                for i, j in pairs
            ]
        return labels, Estimated(*(np.concatenate(each) for each in zip(*found, strict=True)))

    def _table(self, labels: Sequence[Label], found: Estimated) -> Table:
        parts = [
            TableColumn(name, _texts([label[i] for label in labels]), text)
            for i, (name, text) in enumerate(LABELS.items())
        ]
        ends = self._ends(labels)
        parts += estimate_columns(
            "Estimate for the population, moved to the nearest possible value",
            np.clip(found.values, *ends),
            found.sampling,
            found.privacy,
            ends,
            ~np.isfinite(np.hypot(found.sampling, found.privacy)),
            HIDDEN,
        )
        statement = " ".join([f"{STATED}.", *assumptions(self.adjacency.most)])
        stated = Uncertainty(
            "estimate", "standard_error", ("lower_95", "upper_95"), "normal", statement
        )
        return Table("tables", self.name, parts, (stated,))

    def _ends(self, labels: Sequence[Label]) -> tuple[Floats, Floats]:
        """The range (k,) in which each estimate lies for all possible records."""
        ranges = {
            axis.name: ends_of(axis) if isinstance(axis, Grid) else self.products.ends(axis)
            for axis in self.domain.axes
            if in_order(axis)
        }
        found = []
        for statistic, column, other, _ in labels:
            if statistic in ("mean", "share"):
                found.append(ranges[column] if statistic == "mean" else (0.0, 1.0))
                continue
            names = (column, other or column)
            # No standard deviation is larger than half of the range.
            most = math.prod((ranges[name][1] - ranges[name][0]) / 2 for name in names)
            found.append((0.0 if statistic == "variance" else -most, most))
        lower, upper = np.array(found).reshape(-1, 2).T
        return lower, upper

    def expected_error(self) -> tuple[ErrorStatement, ...]:
        points, places = self.supposed(), self.products.places()
        note = "from noise alone, if the plan states the right number of records"
        found = []
        for axis in self.domain.axes:
            if in_order(axis):
                what, values = f"the mean of {axis.name}", places[axis.name]
            else:
                assert isinstance(axis, Categories)
                what = f"a share of {axis.name}"
                values = (places[axis.name] == axis.categories[0]).astype(np.float64)
            apart = (
                values.astype(np.float64) - points.weights @ values.astype(np.float64) / self.rows
            )
            error = float(points.noise(apart[:, None])[0]) / self.rows
            found.append(ErrorStatement(f"standard error of {what}", error, note))
        return tuple(found)


def _texts(values: Sequence[str | None]) -> np.ma.MaskedArray:
    return np.ma.masked_array(
        [each or "" for each in values], mask=[each is None for each in values]
    )
