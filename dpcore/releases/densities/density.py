"""Density of one or two bounded columns: a Gaussian kernel estimate, reflected or periodic, with noise.

All kinds release noisy coefficients of a basis (``basis``) and differ in the noise:

    spectral_density   Gaussian noise of the kernel's own covariance: (alpha, beta)
    binned_density     discrete Laplace noise on wide cells, deconvolved: pure alpha
    pure_density       K-norm or Laplace noise on few coefficients: pure alpha
    body_density       K-norm noise in the shape of what a record can change: pure alpha

Standard errors and intervals are about privacy noise alone: they do not count sampling error or
the smoothing bias of the kernel.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpcore.arrays import Floats, Integers
from dpcore.domain import Axis, Domain, Grid
from dpcore.mechanisms import DiscreteGaussian, DiscreteKNorm, DiscreteLaplace
from dpcore.post.tables.simplex import project_to_simplex
from dpcore.releases.base import ErrorStatement, Release, post_processing_generator, unit_points
from dpcore.releases.densities.basis import Basis
from dpcore.releases.table import (
    ENDS,
    LEVEL,
    Published,
    Table,
    TableColumn,
    Uncertainty,
    error_column,
    normal_interval,
)
from dpcore.statistic import Noisy

LARGEST_GRID = 2**24
"""The most cells that the columns' own grids may have together."""

PRINTED_CELLS = {1: 512, 2: 96}
"""Cells per axis of the published grid, by dimensions, unless the bandwidth asks for more."""


REPEATS = 1000
"""How often noise is drawn again for a simultaneous band: its level is then known to one per cent."""

BAND = ("lower_simultaneous_90", "upper_simultaneous_90")
"""The columns with both sides of the simultaneous band."""

UNCERTAINTY = (
    Uncertainty(
        "estimate",
        "standard_error",
        ENDS,
        "normal",
        "The variance is exact; the interval is normal and pointwise. It is for the released function"
        " without noise, which is the kernel density without what the mechanism leaves out (waves"
        " beyond its terms, places within its cells) and may be negative. It includes neither"
        " what is left out, nor sampling error, nor smoothing bias.",
    ),
    Uncertainty(
        "estimate",
        "standard_error",
        BAND,
        "simulated",
        "Holds everywhere at once, by the simulated distribution of the largest noise in standard"
        " errors.",
    ),
)

SCALED = "the number of records divided by the rows of the plan"


@dataclass(frozen=True)
class Density(Release):
    """Density over the Grid axes of the domain; bandwidths in units of each column's range."""

    bandwidths: tuple[float, ...] = ()

    of_coefficients: ClassVar[Uncertainty] = Uncertainty(
        "coefficient",
        "standard_error",
        None,
        "exact",
        "From the distribution of the noise, which is independent for each coefficient.",
    )

    chart = "curve"
    refines = "density"
    statistics = ("density", "density_standard_error", "estimate", "standard_error", *ENDS, *BAND)

    def __post_init__(self) -> None:
        if len(self.domain.axes) not in PRINTED_CELLS:
            raise ValueError("columns: a density has one or two columns")
        if len(self.bandwidths) != len(self.domain.axes):
            raise ValueError("bandwidth: one number, or one for each column")
        for axis, bandwidth in zip(self.domain.axes, self.bandwidths, strict=True):
            if not isinstance(axis, Grid) or axis.nullable:
                raise ValueError(
                    f"columns: {axis.name} must be an integer or continuous column without nulls"
                )
            if not 0.002 <= bandwidth <= 1:
                raise ValueError("bandwidth: must lie between 0.002 and 1 of the column's range")
        if self.domain.size > LARGEST_GRID:
            raise ValueError(
                f"columns: {self.domain.size:.3g} grid cells are too many for a density; use narrower"
                " bounds or a coarser grid"
            )
        super().__post_init__()

    def published_names(self, axis: Axis) -> tuple[str, ...]:
        return (axis.name,)

    @property
    def axes(self) -> tuple[Grid, ...]:
        return tuple(axis for axis in self.domain.axes if isinstance(axis, Grid))

    @property
    @abstractmethod
    def mechanism(self) -> DiscreteGaussian | DiscreteKNorm | DiscreteLaplace:
        """The noise that the share buys."""

    @property
    def counts_mass(self) -> bool:
        """Whether the number of records is private, so that the mass is one of the coefficients."""
        return not self.adjacency.public_rows

    def mass(self, coefficients: Floats) -> float:
        """Records over the rows of the plan: 1 where these are public, else noisy and positive."""
        return max(float(coefficients[0]), 1 / self.rows) if self.counts_mass else 1.0

    @property
    @abstractmethod
    def basis(self) -> Basis:
        """The frequencies, on the grid on which the statistic is computed."""

    @abstractmethod
    def coefficients(self, noisy: Noisy) -> Floats:
        """(coefficients,) noisy theta_k."""

    @property
    @abstractmethod
    def coefficient_variances(self) -> Floats:
        """(coefficients,) variances of the noise in theta_k."""

    def grid_variance(self, basis: Basis) -> Floats:
        """Pointwise variance at the centres of a grid, of the grid's shape: noise is uncorrelated."""
        return basis.variance(self.coefficient_variances)

    def _variance_of(self, functions: Floats) -> Floats:
        """(m,) the same where the basis functions are given, (m, coefficients)."""
        return np.asarray(functions**2 @ self.coefficient_variances)

    @cached_property
    def fine(self) -> Basis:
        """The same frequencies on the columns' own grids."""
        return replace(self.basis, shape=self.domain.shape)

    @cached_property
    def printed(self) -> Basis:
        """The same frequencies on the published grid."""
        target = PRINTED_CELLS[len(self.bandwidths)]
        shape = tuple(
            min(size, max(target, math.ceil(2 / h)))
            for size, h in zip(self.domain.shape, self.bandwidths, strict=True)
        )
        return replace(self.basis, shape=shape)

    def publish(self, noisy: Noisy) -> Published:
        theta, variances = self.coefficients(noisy), self.coefficient_variances
        factor = self.band_factor(noisy)
        names = self.domain.names
        meaning = (
            f"Noisy coefficient of the {self.basis.meaning}, x scaled to [0, 1]; the constant"
            f" coefficient is {SCALED if self.counts_mass else 1}"
        )
        coefficients = Table(
            "densities",
            f"{self.name}.coefficients",
            [
                TableColumn(
                    f"frequency_{name}", self.basis.frequencies[:, i], f"Frequency j along {name}"
                )
                for i, name in enumerate(names)
            ]
            + [
                TableColumn("coefficient", theta, meaning),
                error_column(np.sqrt(variances), "coefficient"),
            ],
            (self.of_coefficients,),
        )
        facts = {
            "bandwidths": dict(zip(names, self.bandwidths, strict=True)),
            "bounds": {axis.name: list(axis.bounds) for axis in self.axes},
            "noise_integrated_squared_error": float(variances.sum()),
            "simultaneous_factor": factor,
            "errors": "Standard errors and intervals include privacy noise alone, and neither"
            " sampling error nor smoothing bias.",
        }
        return Published((self._grid_table(noisy, theta, factor), coefficients), facts)

    def _grid_table(self, noisy: Noisy, theta: Floats, factor: float) -> Table:
        unit = 1 / math.prod(axis.upper - axis.lower for axis in self.axes)
        estimate = self.printed.density(theta)
        error = np.sqrt(self.grid_variance(self.printed))
        mass = self.mass(theta)
        published = _as_probabilities(estimate / mass) * estimate.size
        shape = self.printed.shape
        points = np.meshgrid(
            *(
                axis.bounds[0] + (np.arange(size) + 0.5) / size * (axis.upper - axis.lower)
                for axis, size in zip(self.axes, shape, strict=True)
            ),
            indexing="ij",
        )
        mean_mass = (", after estimate is divided by its mass", f"; its mass is {SCALED}")
        divided, scaled = mean_mass if self.counts_mass else ("", "")
        values = [published, self._density_error(noisy, published, mass), estimate]
        values += _bands(estimate, error, factor).values()
        meanings = [
            "Density per unit of the columns: the nearest to estimate that is nowhere negative and has"
            f" mass one{divided}",
            "Root mean squared error of density, simulated",
            f"Unbiased noisy kernel density; may be negative{scaled}",
            "Standard deviation of the privacy noise in estimate",
        ]
        meanings += [
            f"{side} of a {what} for estimate without noise"
            for what in (
                "pointwise 90% interval (normal)",
                "90% band that holds everywhere at once",
            )
            for side in ("Lower end", "Upper end")
        ]
        columns = [
            TableColumn(name, place.ravel(), f"Value of {name} at the centre of a grid cell", name)
            for name, place in zip(self.domain.names, points, strict=True)
        ]
        columns += [
            TableColumn(name, value.ravel() * unit, text)
            for name, value, text in zip(self.statistics, values, meanings, strict=True)
        ]
        # The interval is that of estimate, whose mass is not one where the number of records is private.
        of_density = Uncertainty(
            "density",
            "density_standard_error",
            None if self.counts_mass else ENDS,
            "simulated",
            "From noise, cutting at zero and scaling to mass one, repeated on the published density."
            + ("" if self.counts_mass else " The interval is that of estimate."),
        )
        return Table("densities", self.name, columns, (*UNCERTAINTY, of_density))

    def _noise(self, noisy: Noisy, repeats: int) -> Iterator[Floats]:
        """Noise in the coefficients, simulated ``repeats`` times."""
        generator = post_processing_generator(noisy)
        for _ in range(repeats):
            again = self.mechanism.simulate(self.mechanism.size, generator)
            yield self.coefficients(Noisy(again))

    def band_factor(self, noisy: Noisy) -> float:
        """Standard errors that the noise nowhere exceeds in 90% of releases, by simulation.

        The distribution of the noise is public; ``noisy`` only seeds the simulation.
        """
        error = np.maximum(np.sqrt(self.grid_variance(self.printed)), 1e-300)
        largest = [
            float(np.max(np.abs(self.printed.density(noise) - self.printed.known) / error))
            for noise in self._noise(noisy, REPEATS)
        ]
        return float(np.quantile(largest, LEVEL))

    def _density_error(self, noisy: Noisy, published: Floats, mass: float) -> Floats:
        """Of the published density, of mass one; all noise is that of an estimate of the given mass."""
        squares = np.zeros(published.shape)
        repeats, known = REPEATS // 4, self.printed.known
        for noise in self._noise(noisy, repeats):
            estimate = mass * published + self.printed.density(noise) - known
            whole = self.mass(noise + mass)
            again = _as_probabilities(estimate / whole) * published.size
            squares += (again - published) ** 2
        return np.asarray(np.sqrt(squares / repeats))

    def evaluate(self, noisy: Noisy, points: Mapping[str, NDArray[Any]]) -> dict[str, Floats]:
        """``estimate`` at points, with its pointwise interval and its simultaneous band."""
        unit = 1 / math.prod(axis.upper - axis.lower for axis in self.axes)
        values = self.basis.functions(unit_points(points, self.axes))
        estimate = self.basis.known + values @ self.coefficients(noisy)
        error = np.sqrt(self._variance_of(values))
        columns = {"estimate": estimate, **_bands(estimate, error, self.band_factor(noisy))}
        return {name: column * unit for name, column in columns.items()}

    def probabilities(self, noisy: Noisy) -> Floats:
        """Probability of every cell of the columns' own grids, of the domain's shape."""
        theta = self.coefficients(noisy)
        return _as_probabilities(self.fine.density(theta) / self.mass(theta))

    def supported_margin(self, noisy: Noisy, names: tuple[str, ...]) -> tuple[Floats, float] | None:
        gone = tuple(i for i, name in enumerate(self.domain.names) if name not in names)
        return self.rows * self.probabilities(noisy).sum(axis=gone).ravel(), math.nan

    def expected_error(self) -> tuple[ErrorStatement, ...]:
        ise = float(self.coefficient_variances.sum())
        return (
            ErrorStatement("integrated squared error from noise", ise, "columns scaled to [0, 1]"),
            ErrorStatement(
                "typical error of the density, relative to a uniform one", math.sqrt(ise)
            ),
        )

    def sample(self, noisy: Noisy, rows: int) -> tuple[Domain, Integers]:
        """Records on the columns' own grids, spread evenly over the density."""
        generator = post_processing_generator(noisy)
        cumulative = np.cumsum(self.probabilities(noisy).ravel())
        levels = (np.arange(rows) + generator.random()) / max(rows, 1) * cumulative[-1]
        cells = np.minimum(np.searchsorted(cumulative, levels, "right"), len(cumulative) - 1)
        return self.domain, self.domain.unpack(generator.permutation(cells))


def _bands(estimate: Floats, error: Floats, factor: float) -> dict[str, Floats]:
    """The error with the pointwise interval and the simultaneous band, which may be below zero."""
    sides = (estimate - factor * error, estimate + factor * error)
    return normal_interval(estimate, error) | dict(zip(BAND, sides, strict=True))


def _as_probabilities(density: Floats) -> Floats:
    """The nearest probabilities (least squares; Hall & Murison 1993): shifted down, cut at zero.

    Scaling to mass one instead would move a high peak by far more than its noise.
    """
    return project_to_simplex(density.ravel() / density.size, 1.0).reshape(density.shape)
