"""Density of one or two bounded columns: a Gaussian kernel estimate, reflected or periodic, with noise.

All kinds release noisy coefficients of a basis (``dpcore.releases.basis``) and differ in the noise:

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

from dpcore.domain import Domain, Grid
from dpcore.mechanisms import DiscreteGaussian, DiscreteKNorm, DiscreteLaplace
from dpcore.post.simplex import project_to_simplex
from dpcore.post.simulation import noise_like
from dpcore.releases.base import (
    LEVEL,
    TWO_SIDED,
    ErrorStatement,
    Published,
    Release,
    Table,
    Uncertainty,
    post_processing_generator,
    unit_points,
)
from dpcore.releases.basis import Basis, Floats
from dpcore.statistic import Noisy

LARGEST_GRID = 2**24
"""The most cells that the columns' own grids may have together."""

PRINTED_CELLS = {1: 512, 2: 96}
"""Cells per axis of the published grid, by dimensions, unless the bandwidth asks for more."""


REPEATS = 1000
"""How often noise is drawn again for a simultaneous band: its level is then known to one per cent."""

UNCERTAINTY = (
    Uncertainty(
        "estimate",
        "standard_error",
        ("lower_90", "upper_90"),
        "normal",
        "The variance is exact; the interval is normal and pointwise. It is about the released"
        " function without noise, which is the kernel density less what the mechanism leaves out"
        " (waves beyond its terms, places within its cells), and so may be below zero: not about that,"
        " sampling error or smoothing bias.",
    ),
    Uncertainty(
        "estimate",
        "standard_error",
        ("lower_simultaneous_90", "upper_simultaneous_90"),
        "simulated",
        "Holds everywhere at once: the largest noise, in standard errors, by its known law.",
    ),
)

DENSITY = Uncertainty(
    "density",
    "density_standard_error",
    ("lower_90", "upper_90"),
    "simulated",
    "Noise, cutting at zero and scaling to mass one, repeated on the published density. The"
    " interval is that of estimate.",
)
SCALED_DENSITY = Uncertainty(
    "density", "density_standard_error", None, "simulated", f"{DENSITY.statement.split('. ')[0]}."
)
SCALED = "the number of records over the rows of the plan"


@dataclass(frozen=True)
class Density(Release):
    """Density over the Grid axes of the domain; bandwidths in units of each column's range."""

    bandwidths: tuple[float, ...] = ()

    of_coefficients: ClassVar[Uncertainty] = Uncertainty(
        "coefficient", "standard_error", None, "exact", "Independent, by a known law."
    )

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
        coefficients = Table(
            "densities",
            f"{self.name}.coefficients",
            {f"frequency_{name}": self.basis.frequencies[:, i] for i, name in enumerate(names)}
            | {"coefficient": theta, "standard_error": np.sqrt(variances)},
            {f"frequency_{name}": f"Frequency j along {name}" for name in names}
            | {
                "coefficient": f"Noisy coefficient of the {self.basis.meaning}, x scaled to [0, 1];"
                f" the constant coefficient is {SCALED if self.counts_mass else 1}",
                "standard_error": "Standard deviation of the noise in coefficient",
            },
            uncertainty=(self.of_coefficients,),
        )
        facts = {
            "bandwidths": dict(zip(names, self.bandwidths, strict=True)),
            "bounds": {axis.name: list(axis.bounds) for axis in self.axes},
            "noise_integrated_squared_error": float(variances.sum()),
            "simultaneous_factor": factor,
            "errors": "standard errors and intervals are about privacy noise alone, not about"
            " sampling error or smoothing bias",
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
        values = {
            "density": published,
            "density_standard_error": self._density_error(noisy, published, mass),
            "estimate": estimate,
            **_bands(estimate, error, factor),
        }
        names = self.domain.names
        return Table(
            "densities",
            self.name,
            {name: axis.ravel() for name, axis in zip(names, points, strict=True)}
            | {name: value.ravel() * unit for name, value in values.items()},
            {name: f"Value of {name} at the centre of a grid cell" for name in names}
            | {
                "density": "Density per unit of the columns: the nearest to estimate that is nowhere"
                " negative and has mass one"
                + ", estimate being divided by its mass"
                * self.counts_mass,
                "density_standard_error": "Root mean squared error of density, simulated",
                "estimate": "Unbiased noisy kernel density; may be negative"
                + f"; its mass is {SCALED}" * self.counts_mass,
                "standard_error": "Standard deviation of the privacy noise in estimate",
                "lower_90": "Lower end of a pointwise 90% interval for estimate without noise (normal)",
                "upper_90": "Upper end of that interval",
                "lower_simultaneous_90": "Lower end of a band that holds all of estimate without noise"
                " in 90% of releases",
                "upper_simultaneous_90": "Upper end of that band",
            },
            {name: name for name in names},
            (*UNCERTAINTY, SCALED_DENSITY if self.counts_mass else DENSITY),
        )

    def _noise(self, noisy: Noisy, repeats: int) -> Iterator[Floats]:
        """Noise in the coefficients, drawn again ``repeats`` times by its known law."""
        generator = post_processing_generator(noisy)
        for _ in range(repeats):
            again = noise_like(self.mechanism.event, self.mechanism.size, generator)
            yield self.coefficients(Noisy(again))

    def band_factor(self, noisy: Noisy) -> float:
        """Standard errors that the noise nowhere exceeds in 90% of releases, by simulation.

        The law of the noise is public; ``noisy`` only seeds the simulation.
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

    def sample(self, noisy: Noisy, rows: int) -> tuple[Domain, NDArray[np.int64]]:
        """Records on the columns' own grids, spread evenly over the density."""
        generator = post_processing_generator(noisy)
        cumulative = np.cumsum(self.probabilities(noisy).ravel())
        levels = (np.arange(rows) + generator.random()) / max(rows, 1) * cumulative[-1]
        cells = np.minimum(np.searchsorted(cumulative, levels, "right"), len(cumulative) - 1)
        return self.domain, self.domain.unpack(generator.permutation(cells))


def _bands(estimate: Floats, error: Floats, factor: float) -> dict[str, Floats]:
    """The error with the pointwise interval and the simultaneous band, which may be below zero."""
    return {
        "standard_error": error,
        "lower_90": estimate - TWO_SIDED * error,
        "upper_90": estimate + TWO_SIDED * error,
        "lower_simultaneous_90": estimate - factor * error,
        "upper_simultaneous_90": estimate + factor * error,
    }


def _as_probabilities(density: Floats) -> Floats:
    """The nearest probabilities (least squares; Hall & Murison 1993): shifted down, cut at zero.

    Scaling to mass one instead would move a high peak by far more than its noise.
    """
    return project_to_simplex(density.ravel() / density.size, 1.0).reshape(density.shape)
