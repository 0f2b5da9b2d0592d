"""A pure-alpha density of one column by noise in the shape of all changes by one record.

A record at x counts as the vector of whole steps of s_j phi_j(x), s_j = sqrt(lambda_j) or FLATTEST if
that is larger; the statistic is the sum over records, exactly, and its noise comes from a body close
around all differences of two such vectors.  Other s_j would scale body and noise by the same factors;
these keep the body round whatever the bandwidth, so that at least 1% of trials in the ball around it are
inside.  Positions are first rounded to a public grid of PLACES cells, so that the body is known exactly.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from dpcore.arrays import Floats, Integers
from dpcore.domain.tally import Tally
from dpcore.line.statistic import Noisy
from dpcore.releases.base import post_processing_generator
from dpcore.releases.densities.basis import Basis
from dpcore.releases.densities.density import Density
from dpcore.releases.table import Uncertainty
from papers.difference_body.body import MOST_DIMENSIONS
from papers.difference_body.mechanism import DifferenceBody
from papers.least_left_out import least_left_out

DAMPED = 0.03
"""Frequencies damped below this are left out, because each costs noise."""

MOST_CHOSEN = 5
"""At most this many coefficients are kept for accuracy alone: six are slow to draw."""

BITS = 16
PLACES = 2048

FLATTEST = 0.25

_SIMULATED = 4000
"""This many draws of the noise determine its covariance to two or three per cent."""


@dataclass(frozen=True)
class BodyDensity(Density):
    """K-norm noise on few coefficients, by an outer polytope of the difference body."""

    of_coefficients: ClassVar[Uncertainty] = Uncertainty(
        "coefficient",
        "standard_error",
        None,
        "simulated",
        "From the simulated distribution of the noise, to about two per cent; errors of different"
        " coefficients are correlated.",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.bandwidths) != 1:
            raise ValueError("columns: difference-body is for one column; use binned-laplace")
        self.adjacency.require_public_rows("difference-body")
        if self.nullable:
            raise ValueError(
                "columns: difference-body is for columns without nulls and point masses; use"
                " binned-laplace"
            )

    @cached_property
    def basis(self) -> Basis:
        least = self.functions.limit_above(DAMPED, self.bandwidths[0]) - 1
        first, *others = (
            self.functions(
                self.domain.shape, self.bandwidths, (least + self.functions.limit(more),)
            )
            for more in range(MOST_DIMENSIONS)
        )
        if not 1 <= first.size <= MOST_DIMENSIONS:
            raise ValueError(
                f"bandwidth: asks for {first.size} coefficients, and difference-body takes from 1 to"
                f" {MOST_DIMENSIONS}; use another bandwidth, or binned-laplace"
            )
        return least_left_out([first, *others], MOST_CHOSEN, self._typical_noise)

    def _typical_noise(self, basis: Basis) -> float:
        """The approximate root mean square of the noise: a third less than for a ball."""
        squared = (len(basis.lambdas) + 1) * 4 * float(basis.lambdas.sum()) ** 2
        return 0.7 * math.sqrt(squared) / self.rows / float(self.share.pure_alpha)

    @cached_property
    def vectors(self) -> Integers:
        """The integer vector of a record at every position, (positions, coefficients)."""
        places = min(PLACES, self.domain.size)
        values = self.basis.functions((np.arange(places)[:, None] + 0.5) / places)
        return np.rint(np.ldexp(self._scales * values, BITS)).astype(np.int64)

    @property
    def _scales(self) -> Floats:
        """The factors s_j, (coefficients,)."""
        return np.maximum(np.sqrt(self.basis.lambdas), FLATTEST)

    @cached_property
    def mechanism(self) -> DifferenceBody:
        return DifferenceBody.within(self.share, self.vectors)

    @property
    def largest_statistic(self) -> int:
        return self.most_rows * math.ceil(math.ldexp(math.sqrt(2), BITS))

    def numbers(self, tally: Tally) -> Integers:
        places = tally.cells * len(self.vectors) // self.domain.size
        return np.asarray(tally.counts @ self.vectors[places])

    @property
    def _unit(self) -> Floats:
        """The change of theta for one step of the statistic, (coefficients,)."""
        return np.asarray(self.basis.lambdas / self._scales * math.ldexp(1 / self.rows, -BITS))

    def coefficients(self, noisy: Noisy) -> Floats:
        return np.asarray(noisy.values * self._unit)

    @cached_property
    def _covariance(self) -> Floats:
        """The covariance of the noise in theta, (coefficients, coefficients); simulated and public."""
        noise = self._simulated(np.random.default_rng(0), _SIMULATED)
        return np.asarray(noise.T @ noise / _SIMULATED)

    def _simulated(self, generator: np.random.Generator, size: int) -> Floats:
        """Simulated noise in theta, (size, coefficients)."""
        scale = float(self.mechanism.scale)
        return np.asarray(self.mechanism.body.simulated(scale, generator, size) * self._unit)

    @cached_property
    def moves(self) -> tuple[float, ...]:
        places, size, (own,) = len(self.vectors), self.domain.size, super().moves
        # A position contains the left ends of its cells.
        further = 0.0 if places == size else (0.5 / places + 0.5 / size) / self.bandwidths[0]
        return (own + further,)

    @property
    def binning(self) -> float:
        """A bound on the rounding error: half a step in every coordinate."""
        steps = self.basis.lambdas / self._scales
        return math.sqrt(2) * float(steps.sum()) * math.ldexp(1, -BITS - 1)

    @property
    def coefficient_variances(self) -> Floats:
        return np.diag(self._covariance)

    def grid_variance(self, basis: Basis) -> Floats:
        (size,) = basis.shape
        return self._variance_of(basis.functions((np.arange(size)[:, None] + 0.5) / size))

    def _variance_of(self, functions: Floats) -> Floats:
        return np.asarray(((functions @ self._covariance) * functions).sum(axis=1))

    def _noise(self, noisy: Noisy, repeats: int) -> Iterator[Floats]:
        yield from self._simulated(post_processing_generator(noisy), repeats)
