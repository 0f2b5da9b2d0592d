"""The common part of the two bases of a smooth density: which functions are kept, and their damping.

A density is 1 plus a sum of basis functions, each damped by its lambda.  The coefficient of the
constant function is the mass; it is public if the number of records is public, and otherwise kept with
the other coefficients.  ``cosines`` reflects a column at its bounds, ``waves`` wraps it around.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import ClassVar

import numpy as np

from dpcore.arrays import Booleans, Floats, Integers

NEGLIGIBLE = 1e-8
"""Functions damped below this are left out: a public choice that only lowers the sensitivity."""


@dataclass(frozen=True)
class Basis(ABC):
    """Functions kept for a grid of the given shape and public bandwidths (1 or 2 dimensions).

    ``limits``: only functions numbered below these are kept; the same limits and bandwidths give the
    same functions, in the same order, on every grid that is fine enough for them.  ``mass``: whether the
    constant function is one of them, the first.
    """

    shape: tuple[int, ...]
    bandwidths: tuple[float, ...]
    limits: tuple[int, ...]
    mass: bool = False

    meaning: ClassVar[str]
    half_turns: ClassVar[int]
    """Half turns of the lowest frequency from bound to bound, and the functions per frequency."""

    @classmethod
    def limit(cls, frequencies: int) -> int:
        """The limit for one axis that keeps the constant functions and the lowest frequencies."""
        return 1 + cls.half_turns * frequencies

    @classmethod
    def limit_above(cls, damped: float, bandwidth: float) -> int:
        """The limit for one axis that keeps the functions with a damping of at least ``damped``."""
        reach = math.sqrt(2 * math.log(1 / damped)) / math.pi
        return cls.limit(math.floor(reach / (cls.half_turns * bandwidth)))

    @classmethod
    def frequency(cls, numbers: Integers) -> Integers:
        """The number of half turns between the bounds, for functions with these numbers on an axis."""
        return np.asarray((numbers + cls.half_turns - 1) // cls.half_turns * cls.half_turns)

    @property
    def extremes(self) -> tuple[float, float]:
        """The largest k(x, x) and the smallest k(x, y) of the kernel, as products over the axes."""
        ends = [self.kernel_extremes(bandwidth) for bandwidth in self.bandwidths]
        return math.prod(high for high, _ in ends), math.prod(low for _, low in ends)

    @cached_property
    def kept(self) -> Booleans:
        """Which functions are kept, in the shape of ``damping``."""
        keep = np.zeros(self.damping.shape, dtype=bool)
        keep[tuple(self.frequencies.T)] = True
        return keep

    @cached_property
    def frequencies(self) -> Integers:
        """The numbers (coefficients, dimensions) of the functions that are kept, in row-major order."""
        # Only functions below the limits are examined: a fine grid has far more.
        low = [line[:limit] for line, limit in zip(self.lines, self.limits, strict=True)]
        keep = reduce(np.multiply.outer, low, np.ones(())) >= NEGLIGIBLE
        keep.flat[0] = self.mass
        return np.argwhere(keep)

    @property
    def size(self) -> int:
        """The number of coefficients."""
        return len(self.frequencies)

    @cached_property
    def lambdas(self) -> Floats:
        """lambda (coefficients,) of each function."""
        places = self.frequencies.T
        factors = (line[place] for line, place in zip(self.lines, places, strict=True))
        return np.asarray(reduce(np.multiply, factors, np.ones(len(self.frequencies))))

    @classmethod
    def kernel_extremes(cls, bandwidth: float) -> tuple[float, float]:
        """The largest k(x, x) and the smallest k(x, y) of the kernel in one dimension.

        They are 1 + 2 sum of lambda_j over the frequencies, at one bound, and 1 + 2 sum of (-1)^j
        lambda_j, at opposite bounds or half a turn away.  The kernel is a heat kernel, and so positive.
        """
        # Further terms are below exp(-40).
        count = math.ceil(9 / (cls.half_turns * math.pi * bandwidth)) + 1
        j = np.arange(1, count + 1)
        lambdas = np.exp(-0.5 * (np.pi * bandwidth * cls.half_turns * j) ** 2)
        signs = np.where(j % 2, -1.0, 1.0)
        return 1 + 2 * float(lambdas.sum()), max(1 + 2 * float(signs @ lambdas), 0.0)

    @property
    def heights(self) -> Floats:
        """The largest squares (coefficients,) of basis functions: 2 for a cosine; the squares of a
        cosine and its sine always add up to 2, so each counts as 1."""
        varying = np.count_nonzero(self.frequencies, axis=1)
        return np.asarray((2.0 / self.half_turns) ** varying)

    @property
    def longest(self) -> float:
        """An upper bound of the squared length of a point in the whitened basis."""
        return float(self.heights @ self.lambdas)

    @property
    def widest(self) -> float:
        """An upper bound of the squared distance of two whitened points, without the constant."""
        return 4 * (self.longest - self.mass)

    @property
    def known(self) -> float:
        """The density if all coefficients are zero: 1 if the mass is public, otherwise 0."""
        return 0.0 if self.mass else 1.0

    @classmethod
    def line(cls, size: int, bandwidth: float) -> Floats:
        """lambda for all functions of one axis that a grid of this size distinguishes."""
        numbers = np.arange(cls.limit((size - 1) // cls.half_turns))
        return np.asarray(np.exp(-0.5 * (np.pi * bandwidth * cls.frequency(numbers)) ** 2))

    @cached_property
    def lines(self) -> tuple[Floats, ...]:
        """The ``line`` of every axis."""
        return tuple(map(self.line, self.shape, self.bandwidths))

    @cached_property
    def damping(self) -> Floats:
        """lambda for all functions that the grid distinguishes, as products over the axes."""
        return np.asarray(reduce(np.multiply.outer, self.lines, np.ones(())))

    @abstractmethod
    def means(self, weights: Floats) -> Floats:
        """The sums over cells of weight times basis function at the centre, for every function that is
        kept.

        ``weights``: of the grid's shape; counts divided by n give the empirical means.
        """

    @abstractmethod
    def functions(self, points: Floats) -> Floats:
        """Kept basis functions (m, coefficients) at points (m, dimensions) of the unit box."""

    @abstractmethod
    def density(self, coefficients: Floats) -> Floats:
        """``known`` + sum of coefficient times function, at the cell centres, in the grid's shape."""

    @abstractmethod
    def variance(self, variances: Floats) -> Floats:
        """The pointwise variance at the cell centres, for independent coefficients."""
