"""Means, covariances and linear models of bounded columns, from one noisy sum.

The statistic is the sum over the records of their products up to the fourth degree
(``dpcore.releases.numbers.products``), with discrete Gaussian noise.  Where the number of records is
public it is not measured; where it is private it is the product of degree 0.  Sums are cut at what
``most_rows`` records can reach (``dpcore.adjacency``).

What is published are means, shares, variances, covariances and means by group, each with its errors from
sampling and from noise; ``points`` answers linear models.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from dpcore.arrays import Floats
from dpcore.budget import Budget
from dpcore.domain import Tally
from dpcore.mechanisms import DiscreteGaussian
from dpcore.releases.base import ErrorStatement, Release
from dpcore.releases.numbers.products import BITS, Products, is_number
from dpcore.releases.table import Published
from dpcore.statistic import Exact, Noisy


@dataclass(frozen=True)
class Moments(Release):
    """Sums of products of the columns of the domain: numbers without nulls, and categories."""

    too_large = ("columns", "use fewer of them")

    def __post_init__(self) -> None:
        _ = self.products
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
        """How many of the first products are public: that of degree 0, where the rows are."""
        return int(self.adjacency.public_rows)

    @property
    def largest_statistic(self) -> int:
        return self.most_rows * self.products.largest

    def statistic(self, tally: Tally) -> Exact:
        most = self.largest_statistic
        sums = [max(-most, min(most, each)) for each in self.products.sums(tally)]
        return Exact(np.array(sums[self._public :], dtype=np.int64))
