"""The value of a Gaussian process at a new point, given its values at earlier points.

Both classes split the new value into the prediction from earlier values and an independent rest,

    value(x) = prediction from old values + scale * new whitened coordinate,

which is one more row of a Cholesky factor of the covariance.  ``residual`` applies the same row to
bumps: it is the new whitened coordinate of a record at each of the public positions.

    Dense    any kernel: a row of the factor itself, O(i^2) for the i-th point
    Markov   the exponential kernel on a line: only the two neighbours matter, found by bisection

For u = (x - a)/h and v = (b - x)/h the prediction between neighbours a < x < b is

    [sinh(v) value(a) + sinh(u) value(b)] / sinh(u + v),   scale^2 = 2 sinh(u) sinh(v) / sinh(u + v)

The code uses expm1 so that neither near nor far neighbours lose digits.
"""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from typing import NamedTuple, Protocol

import numpy as np
from scipy.linalg import solve_triangular

from dpcore.arrays import Floats
from dpcore.releases.densities.kernels import ExponentialKernel, Kernel
from dpcore.releases.densities.whitening import JITTER

Place = tuple[int, ...]

PLACES = 2**30
"""Points are whole multiples of 1/PLACES of the range."""


class AskedPoints(Protocol):
    """The points asked so far, and the values at them."""

    def residual(self, place: Place) -> Floats:
        """The new whitened coordinate of a record at each public position, (positions,)."""
        ...

    def value(self, place: Place, whitened: float) -> float:
        """The value at a new point, from its whitened coordinate; adds the point to those asked."""
        ...

    def slack(self, answers: int) -> float:
        """A bound on the error of the residuals of this many points, in Euclidean norm."""
        ...


class Dense:
    """``positions``: (k, d) of records, scaled; ``most``: the limit on the points that can be asked."""

    def __init__(self, kernels: tuple[Kernel, ...], positions: Floats, most: int) -> None:
        self._kernels, self._positions, self._asked = kernels, positions, 0
        self._points = np.empty((most, len(kernels)))
        self._factor = np.zeros((most, most))
        self._whitened = np.empty(most)
        self._residuals = np.empty((most, len(positions)))

    def residual(self, place: Place) -> Floats:
        row, scale = self._row(place)
        point = np.array(place) / PLACES
        bumps = np.ones(len(self._positions))
        for i, kernel in enumerate(self._kernels):
            bumps *= kernel.bump(point[i], self._positions[:, i])
        residual = (bumps - row @ self._residuals[: self._asked]) / scale
        self._residuals[self._asked] = residual
        return np.asarray(residual)

    def value(self, place: Place, whitened: float) -> float:
        row, scale = self._row(place)
        value = float(row @ self._whitened[: self._asked]) + scale * whitened
        self._points[self._asked] = np.array(place) / PLACES
        self._factor[self._asked, : self._asked + 1] = [*row, scale]
        self._whitened[self._asked] = whitened
        self._asked += 1
        return value

    def _row(self, place: Place) -> tuple[Floats, float]:
        """The next row of the factor: off the diagonal (asked,), and on it."""
        point, i = np.array(place) / PLACES, self._asked
        covariance = np.ones(i)
        for axis, kernel in enumerate(self._kernels):
            covariance *= kernel.covariance(self._points[:i, axis], point[axis])
        row = solve_triangular(self._factor[:i, :i], covariance, lower=True) if i else covariance
        return row, math.sqrt(1 + JITTER - float(row @ row))

    def slack(self, answers: int) -> float:
        return math.ldexp(16 * math.pow(answers, 1.5), -53) / math.sqrt(JITTER)


class LineNeighbours(NamedTuple):
    """The prediction at a point on a line: keys and values of up to two neighbours, and weights."""

    known: list[tuple[int, float]]
    weights: list[float]
    scale: float


class Markov:
    """Answers on a line for the exponential kernel. ``positions``: (k,) of points, scaled."""

    def __init__(self, kernel: ExponentialKernel, positions: Floats) -> None:
        self._kernel, self._positions = kernel, positions
        self._keys: list[int] = []  # ascending
        self._drawn: dict[int, float] = {}

    def residual(self, place: Place) -> Floats:
        near = self.near(place[0])
        rest = self._bumps(place[0])
        for (key, _), weight in zip(near.known, near.weights, strict=True):
            rest = rest - weight * self._bumps(key)
        return rest / near.scale

    def value(self, place: Place, whitened: float) -> float:
        near = self.near(place[0])
        value = near.scale * whitened
        for (_, known), weight in zip(near.known, near.weights, strict=True):
            value += weight * known
        insort(self._keys, place[0])
        self._drawn[place[0]] = value
        return value

    def near(self, key: int) -> LineNeighbours:
        place = bisect_left(self._keys, key)
        beside = self._keys[max(place - 1, 0) : place + 1]
        known = [(asked, self._drawn[asked]) for asked in beside]
        steps = [abs(key - item[0]) / PLACES / self._kernel.bandwidth for item in known]
        gone = [-math.expm1(-2 * step) for step in steps]
        if not known:
            return LineNeighbours(known, [], 1.0)
        if len(known) == 1:
            return LineNeighbours(known, [math.exp(-steps[0])], math.sqrt(gone[0]))
        both = -math.expm1(-2 * (steps[0] + steps[1]))
        weights = [
            math.exp(-steps[0]) * gone[1] / both,
            math.exp(-steps[1]) * gone[0] / both,
        ]
        return LineNeighbours(known, weights, math.sqrt(gone[0] * gone[1] / both))

    def slack(self, answers: int) -> float:
        """The bound: neighbours differ by at least 1/PLACES, so no scale is below 2^-16."""
        return math.ldexp(math.sqrt(answers), -33)

    def _bumps(self, key: int) -> Floats:
        return self._kernel.bump(np.array(key / PLACES), self._positions)
