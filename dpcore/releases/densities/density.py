"""Density of one or two bounded columns: a Gaussian kernel estimate, reflected or periodic, with noise.

All kinds release noisy coefficients of a basis (``basis``) and differ in the noise:

    spectral_density   Gaussian noise of the kernel's own covariance: (alpha, beta)
    binned_density     discrete Laplace noise on wide cells, deconvolved: pure alpha

Errors are stated as in ``banded``; the smoothing bias of the kernel is estimated in a separate column.

Records without a value in some column are left out (``answered``).  If the number of the other records
is private, let m be this number over the rows of the plan.  The released coefficients are the density's
times m, and m is the first one.  The published density is f/m, and

    noisy f / noisy m - f/m  =  (noise in f - f/m * noise in m) / noisy m

exactly, so its error has a known law except for f/m, which is replaced by its estimate.  If noisy m is
below ``FEWEST_ERRORS`` of its standard errors there may be no records, and only m is published.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar

import numpy as np

from dpcore.arrays import Floats, Integers
from dpcore.domain.domain import Domain
from dpcore.domain.tally import Tally
from dpcore.line.mechanism import Mechanism
from dpcore.line.statistic import Exact, Noisy
from dpcore.releases.abilities import Samplable
from dpcore.releases.base import ErrorStatement, post_processing_generator
from dpcore.releases.densities.banded import (
    BAND,
    POINTWISE,
    REPEATS,
    SIMULTANEOUS,
    BandedDensity,
    as_probabilities,
    band_meanings,
    banded,
    largest_factor,
    require_lines,
    spread_evenly,
)
from dpcore.releases.densities.basis import Basis
from dpcore.releases.densities.cosines import Cosines
from dpcore.releases.densities.left_out import ApproximationBounds, half_cells
from dpcore.releases.densities.waves import Waves
from dpcore.releases.table import (
    ENDS,
    REASON,
    Published,
    Table,
    TableColumn,
    Uncertainty,
    error_column,
)

LARGEST_GRID = 2**24
"""The most cells of the joint grid of the columns."""

PRINTED_CELLS = {1: 512, 2: 96}
"""Cells per axis of the published grid, by dimensions; small bandwidths get more."""

MEANINGS = (
    "Density per unit of the columns: the non-negative function of mass one closest to estimate",
    "Root mean squared error of density, simulated",
    "Noisy kernel density{divided}; may be negative",
    "Standard deviation of the privacy noise in estimate",
    *band_meanings("the exact kernel density"),
    "Bound on the error from binning, rounding and truncation: how far estimate would be from the exact"
    " kernel density if it had no noise. The interval and the band include this bound",
    "Estimate of the smoothing bias: how much a second smoothing changes estimate. Neither the"
    " interval nor the band includes this bias",
)
"""Descriptions of the value columns, in their order."""

UNCERTAINTY = (
    Uncertainty(
        "estimate",
        "standard_error",
        ENDS,
        "normal",
        f"{POINTWISE} It includes neither sampling error nor smoothing bias; smoothing_bias estimates"
        " the latter.",
    ),
    SIMULTANEOUS,
    Uncertainty(
        "density",
        "density_standard_error",
        ENDS,
        "simulated",
        "The error is simulated: noise, cutting at zero and scaling to mass one are repeated on the"
        " published density. The interval is the same as for estimate.",
    ),
)


@dataclass(frozen=True)
class Density(BandedDensity, Samplable):
    """Density over the Grid axes of the domain; bandwidths are in units of each column's range.

    ``periodic``: the ends of every axis meet; otherwise the kernel is reflected there.
    """

    finer = "a larger bandwidth, fewer columns or mechanism: best"

    bandwidths: tuple[float, ...] = ()
    periodic: bool = field(default=False, kw_only=True)

    of_coefficients: ClassVar[Uncertainty] = Uncertainty(
        "coefficient",
        "standard_error",
        None,
        "exact",
        "From the distribution of the noise, which is independent for each coefficient.",
    )

    refines = "density"
    statistics = (
        *("density", "density_standard_error", "estimate", "standard_error", *ENDS, *BAND),
        *("left_out_bound", "smoothing_bias"),
        REASON,
    )

    def __post_init__(self) -> None:
        if len(self.domain.axes) not in PRINTED_CELLS:
            raise ValueError("columns: a density has one or two columns")
        require_lines(self.domain.axes, self.bandwidths)
        if self.answered.size > LARGEST_GRID:
            raise ValueError(
                f"columns: {self.answered.size:.3g} grid cells are too many for a density; use narrower"
                " bounds or a coarser grid"
            )
        super().__post_init__()

    @property
    @abstractmethod
    def mechanism(self) -> Mechanism:
        """The mechanism that the share affords."""

    @property
    def one_record(self) -> int:
        """The weight of one record in a count that is drawn with these numbers; at most as large as a
        record's effect on these numbers."""
        raise NotImplementedError

    @abstractmethod
    def numbers(self, tally: Tally) -> Integers:
        """The exact statistic: private."""

    def statistic(self, tally: Tally) -> Exact:
        return Exact(self.numbers(tally))

    def noisy_mass(self, noisy: Noisy) -> float:
        return float(self.coefficients(noisy)[0])

    def _mass_of(self, theta: Floats) -> float:
        """The ``mass`` that noisy coefficients imply."""
        return max(float(theta[0]), 1 / self.rows) if self.counts_mass else 1.0

    @property
    def mass_stddev(self) -> float:
        return math.sqrt(self.coefficient_variances[0]) if self.counts_mass else 0.0

    @property
    def functions(self) -> type[Basis]:
        """The kind of functions whose sum is the density."""
        return Waves if self.periodic else Cosines

    @property
    @abstractmethod
    def basis(self) -> Basis:
        """The basis on the grid on which the statistic is computed."""

    @abstractmethod
    def coefficients(self, noisy: Noisy) -> Floats:
        """The noisy theta_k (coefficients,)."""

    @property
    @abstractmethod
    def coefficient_variances(self) -> Floats:
        """The variances (coefficients,) of the noise in theta_k."""

    @property
    def most_numbers(self) -> int:
        """The largest number of noisy values in a draw, at this or any larger bandwidth."""
        return self.mechanism.size

    @property
    def binning(self) -> float:
        """A bound of the error from counting in cells, relative to a uniform density."""
        return 0.0

    @cached_property
    def moves(self) -> tuple[float, ...]:
        """How far, in bandwidths, a record may be moved along each axis before it is counted."""
        return half_cells(self.axes, self.bandwidths)

    @cached_property
    def left_out(self) -> ApproximationBounds:
        """Bounds of all differences between a release without noise and the exact kernel density."""
        return ApproximationBounds(self.basis, self.binning, self.moves)

    def grid_variance(self, basis: Basis) -> Floats:
        """The pointwise variance at the centres of a grid, in its shape, for uncorrelated noise."""
        return basis.variance(self.coefficient_variances)

    @cached_property
    def printed_variance(self) -> Floats:
        """The pointwise variance on the published grid."""
        return self.grid_variance(self.printed)

    def _variance_of(self, functions: Floats) -> Floats:
        """The pointwise variances (m,), given basis functions (m, coefficients)."""
        return np.asarray(functions**2 @ self.coefficient_variances)

    @cached_property
    def fine(self) -> Basis:
        """The basis on the columns' own grids."""
        return replace(self.basis, shape=self.answered.shape)

    @cached_property
    def printed(self) -> Basis:
        """The basis on the published grid."""
        target = PRINTED_CELLS[len(self.bandwidths)]
        shape = tuple(
            min(size, max(target, math.ceil(2 / h)))
            for size, h in zip(self.answered.shape, self.bandwidths, strict=True)
        )
        return replace(self.basis, shape=shape)

    def publish(self, noisy: Noisy) -> Published:
        theta, variances = self.coefficients(noisy), self.coefficient_variances
        factor = self.band_factor(noisy)
        names = self.domain.names
        scaled = "divided by the rows of the plan"
        constant = (
            f"the noisy number of {self.of_rows} {scaled}; divide the others by it"
            if self.counts_mass
            else 1
        )
        meaning = (
            f"Noisy coefficient of the {self.basis.meaning}, x scaled to [0, 1]{self.of_scale}; the"
            f" constant coefficient is {constant}"
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
        noisy_rows = self.rows * (float(theta[0]) if self.counts_mass else 1.0)
        facts = {
            **self.facts(factor, noisy_rows, self.rows * self.mass_stddev),
            "noise_integrated_squared_error": self.noise_squared,
            "errors": (
                "Standard errors are of the privacy noise. Intervals and bands also include bounds of"
                " binning, rounding and truncation. Sampling error and smoothing bias are not"
                " included."
            ),
        }
        return Published((self._grid_table(noisy, theta, factor), coefficients), facts)

    def _grid_table(self, noisy: Noisy, theta: Floats, factor: float) -> Table:
        mass, shape = self.mass(noisy), self.printed.shape
        stated = self.stated(theta, factor, self.printed.density, self.printed_variance)
        published = as_probabilities(stated["estimate"]) * math.prod(shape)
        values = {
            "density": published,
            "density_standard_error": self._density_error(noisy, published, mass),
            **stated,
        }
        centres = [(np.arange(size) + 0.5) / size for size in shape]
        columns, unit = self.point_columns(centres, "at the centre of a grid cell")
        per_unit = {name: column.ravel() * unit for name, column in values.items()}
        divided = ", divided by its noisy mass" if self.counts_mass else ""
        meanings = [meaning.format(divided=divided) for meaning in MEANINGS]
        columns += self.value_columns(noisy, per_unit, meanings)
        return Table("densities", self.name, columns, UNCERTAINTY)

    def _error(self, variance: Floats, relative: Floats, mass: float) -> Floats:
        """Standard errors of the density of mass one, given the variance at this ``mass``."""
        if self.counts_mass:
            variance = variance + self.coefficient_variances[0] * ((1 - relative) ** 2 - 1)
        return np.sqrt(np.maximum(variance, 0)) / mass

    def stated(
        self, theta: Floats, factor: float, values: Callable[[Floats], Floats], variance: Floats
    ) -> dict[str, Floats]:
        """The estimate and all statements of its error, relative to a uniform density.

        ``values``: the density at some points, given coefficients; ``variance``: of its noise there.
        """
        mass = self._mass_of(theta)
        known, left = self.basis.known, self.left_out
        estimate = values(theta) / mass
        error = self._error(variance, estimate, mass)
        everywhere = self.printed.density(theta) / mass
        most = self._error(self.printed_variance, everywhere, mass).max()
        # ``values`` adds the known constant once.  Its weight must be ``moved`` here, and 0 below.
        moved = (values(theta * left.weights) + known * (left.moved - 1)) / mass
        bound = left.bound(moved, factor * float(most))
        smoother = (values(theta * (self.basis.lambdas - 1)) - known) / mass
        return {**banded(estimate, error, factor, bound), "smoothing_bias": smoother}

    def _noise(self, noisy: Noisy, repeats: int) -> Iterator[Floats]:
        """Noise in the coefficients, simulated ``repeats`` times."""
        generator = post_processing_generator(noisy)
        for _ in range(repeats):
            again = self.mechanism.simulate(self.mechanism.size, generator)
            yield self.coefficients(Noisy(again))

    def band_factor(self, noisy: Noisy) -> float:
        """The number of standard errors below which noise stays everywhere in 90% of simulated releases.

        The distribution of the noise is public; ``noisy`` only seeds the simulation.
        """
        theta, printed = self.coefficients(noisy), self.printed
        mass = self.mass(noisy)
        relative = printed.density(theta) / mass
        # Where there is no noise, the ratio below must be 0 and not 0/0.
        error = np.maximum(self._error(self.printed_variance, relative, mass) * mass, 1e-300)

        def away(noise: Floats) -> Floats:
            off = printed.density(noise) - printed.known
            return off - relative * noise[0] if self.counts_mass else off

        return largest_factor(map(away, self._noise(noisy, REPEATS)), error)

    def _density_error(self, noisy: Noisy, published: Floats, mass: float) -> Floats:
        """The error of the published density of mass one, for an estimate of the given mass."""
        squares = np.zeros(published.shape)
        # A mean needs fewer draws than the quantile of a band.
        repeats, known = REPEATS // 4, self.printed.known
        for noise in self._noise(noisy, repeats):
            estimate = mass * published + self.printed.density(noise) - known
            whole = self._mass_of(noise + mass)
            again = as_probabilities(estimate / whole) * published.size
            squares += (again - published) ** 2
        return np.asarray(np.sqrt(squares / repeats))

    def stated_at(self, noisy: Noisy, points: Floats) -> dict[str, Floats]:
        functions = self.basis.functions(points)
        return self.stated(
            self.coefficients(noisy),
            self.band_factor(noisy),
            lambda coefficients: self.basis.known + functions @ coefficients,
            self._variance_of(functions),
        )

    def probabilities(self, noisy: Noisy) -> Floats:
        """The probability of every cell of the columns' own grids, in the domain's shape."""
        return as_probabilities(self.fine.density(self.coefficients(noisy)) / self.mass(noisy))

    def supported_margin(self, noisy: Noisy, names: tuple[str, ...]) -> tuple[Floats, float] | None:
        gone = tuple(i for i, name in enumerate(self.domain.names) if name not in names)
        counts = self.rows * self.probabilities(noisy).sum(axis=gone)
        others = zip(self.domain.select(names).shape, counts.shape, strict=True)
        # The density has no records without a value, nor at point masses.
        return np.pad(counts, [(0, size - own) for size, own in others]).ravel(), math.nan

    @property
    def noise_squared(self) -> float:
        """The integrated squared error from noise; for a uniform density noise in the mass cancels."""
        return float(self.coefficient_variances[int(self.counts_mass) :].sum())

    @property
    def error_parts(self) -> dict[str, float]:
        """The typical noise, and the bounds of approximation errors, relative to a uniform density."""
        return {"noise": math.sqrt(self.noise_squared), **self.left_out.parts}

    def expected_error(self) -> tuple[ErrorStatement, ...]:
        return (
            ErrorStatement(
                "integrated squared error from noise",
                self.noise_squared,
                "columns scaled to [0, 1]" + self.of_scale,
            ),
            self.whole_statement(),
        )

    def sample(self, noisy: Noisy, rows: int) -> tuple[Domain, Integers]:
        """Records with a value in every column, by systematic sampling from the density on its grid."""
        cells = spread_evenly(self.probabilities(noisy), rows, post_processing_generator(noisy))
        return self.answered, self.answered.unpack(cells)
