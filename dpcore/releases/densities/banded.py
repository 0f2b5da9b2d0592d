"""The error statements of every smooth density: an interval at each point, and a simultaneous band.

Standard errors describe privacy noise only.  Intervals and bands are for the exact kernel estimate:
they include noise and bounds of all approximation errors (``left_out``), but not sampling error.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcore.arrays import Floats, Integers
from dpcore.domain.axes import Axis, Bins, Grid
from dpcore.line.statistic import Noisy
from dpcore.post.tables.simplex import project_to_simplex
from dpcore.releases.abilities import EstimatesDensity
from dpcore.releases.base import ErrorStatement, unit_points
from dpcore.releases.densities.answered import AnsweredRelease
from dpcore.releases.table import (
    ENDS,
    FEWEST_ERRORS,
    LEVEL,
    TableColumn,
    Uncertainty,
    normal_interval,
    reason_column,
    unless,
)

POINTWISE = (
    "The variance of the noise is exact. The interval is normal and pointwise, and wider by"
    " left_out_bound on both sides, so that it is valid for the exact kernel density of any records."
)
"""The statement of how the interval of an estimate is computed."""

REPEATS = 1000
"""Simulations of the noise for a simultaneous band; its level is then accurate to one per cent."""

MOST_DIMENSIONS = 3

BAND = ("lower_simultaneous_90", "upper_simultaneous_90")
"""The columns with the two sides of the simultaneous band."""

SIMULTANEOUS = Uncertainty(
    "estimate",
    "standard_error",
    BAND,
    "simulated",
    "The band contains the exact kernel density at all points at once. Its width is the simulated"
    " quantile of the largest noise in standard errors, plus left_out_bound on both sides.",
)

WHOLE = "typical error of the density, relative to a uniform one"
"""The quantity of the error statement for noise and approximation, for every kind of density."""


class BandedDensity(AnsweredRelease, EstimatesDensity):
    """A smooth density of the columns of the domain, with an interval and a band."""

    chart = "curve"

    bandwidths: tuple[float, ...]

    @abstractmethod
    def stated_at(self, noisy: Noisy, points: Floats) -> Mapping[str, Floats]:
        """The estimate at scaled points (k, d) and its errors, relative to a uniform density."""

    @abstractmethod
    def noisy_mass(self, noisy: Noisy) -> float:
        """The noisy number of records over the rows of the plan, if the number is private."""

    @property
    @abstractmethod
    def mass_stddev(self) -> float:
        """The standard deviation of the noise in this ratio: 0 if the number is public."""

    def resolves(self, axis: Bins) -> bool:
        """Whether half of the bins are at least as wide as the bandwidth, on the column's scale."""
        place = self.domain.names.index(axis.name)
        widths = np.diff(self.axes[place].to_unit(np.array(axis.edges)))
        return bool(np.median(widths[widths > 0.0]) >= self.bandwidths[place])

    def mass(self, noisy: Noisy) -> float:
        """Records over the rows of the plan: 1 if they are public, otherwise noisy and positive."""
        return max(self.noisy_mass(noisy), 1 / self.rows) if self.counts_mass else 1.0

    def hides(self, noisy: Noisy) -> bool:
        """Whether there may be no records, so that their density is unknown."""
        if not self.counts_mass:
            return False
        return not self.noisy_mass(noisy) > FEWEST_ERRORS * self.mass_stddev

    def evaluate(self, noisy: Noisy, points: Mapping[str, NDArray[Any]]) -> dict[str, Floats]:
        """``estimate`` at points, with its error, pointwise interval and simultaneous band; all are
        masked if there may be no records."""
        scaled, unit = unit_points(points, self.axes), self.unit_density_at(points)
        hidden, stated = self.hides(noisy), self.stated_at(noisy, scaled)
        return {name: unless(hidden, column * unit) for name, column in stated.items()}

    def facts(self, factor: float, rows: float, error: float) -> dict[str, Any]:
        """Facts for the manifest; ``rows``: the noisy number of records and its standard error."""
        known = {
            **self.scales(self.bandwidths),
            "simultaneous_factor": factor,
            "error_parts": self.error_parts,
        }
        counted = {"noisy_rows": rows, "rows_standard_error": error} if self.counts_mass else {}
        return known | counted

    def point_columns(self, lines: Sequence[Floats], at: str) -> tuple[list[TableColumn], Floats]:
        """Columns with the points of a grid, and the density (k,) of a uniform distribution there.

        ``lines``: scaled points of each axis; ``at``: the phrase for them in descriptions.
        """
        values = (axis.from_unit(line) for axis, line in zip(self.axes, lines, strict=True))
        places = [place.ravel() for place in np.meshgrid(*values, indexing="ij")]
        columns = [
            TableColumn(name, place, f"Value of {name} {at}", name)
            for name, place in zip(self.domain.names, places, strict=True)
        ]
        return columns, self.unit_density(places)

    def value_columns(
        self, noisy: Noisy, values: Mapping[str, Floats], meanings: Sequence[str]
    ) -> list[TableColumn]:
        """The columns ``statistics`` at points (k,); null if there may be no records."""
        hidden = np.full(len(values["estimate"]), self.hides(noisy))
        columns = [
            TableColumn(name, unless(hidden, values[name]), text)
            for name, text in zip(self.statistics[:-1], meanings, strict=True)
        ]
        return columns + [reason_column(hidden)] * self.counts_mass

    def whole_statement(self) -> ErrorStatement:
        """The error statement of noise and approximation together."""
        noise, *bounds = self.error_parts.items()
        most = ", ".join(f"{name} {value:.2g}" for name, value in bounds)
        note = f"noise {noise[1]:.2g}; at most {most}{self.of_mass}{self.of_scale}"
        return ErrorStatement(WHOLE, self.whole_error, note)


def require_lines(axes: Sequence[Axis], bandwidths: tuple[float, ...]) -> None:
    """Raise ``ValueError`` unless the axes are numeric columns with a bandwidth each."""
    if not 1 <= len(axes) <= MOST_DIMENSIONS:
        raise ValueError(f"columns: a function has one to {MOST_DIMENSIONS} columns")
    if len(bandwidths) != len(axes):
        raise ValueError("bandwidth: one number, or one for each column")
    for axis, bandwidth in zip(axes, bandwidths, strict=True):
        if not isinstance(axis, Grid):
            raise ValueError(f"columns: {axis.name} must be an integer or continuous column")
        if not 0.002 <= bandwidth <= 1:
            raise ValueError("bandwidth: must lie between 0.002 and 1 of the column's range")


def banded(estimate: Floats, error: Floats, factor: float, bound: Floats) -> dict[str, Floats]:
    """An estimate (k,) with error, interval and band; a bound of approximation errors widens both."""
    band = dict(zip(BAND, (estimate - factor * error, estimate + factor * error), strict=True))
    stated = {"estimate": estimate, **normal_interval(estimate, error), **band}
    for lower, upper in (ENDS, BAND):
        stated[lower], stated[upper] = stated[lower] - bound, stated[upper] + bound
    return {**stated, "left_out_bound": bound}


def largest_factor(noises: Iterable[Floats], error: Floats) -> float:
    """The number of standard errors below which noise stays at all points in 90% of draws."""
    return float(np.quantile([np.max(np.abs(away) / error) for away in noises], LEVEL))


def band_meanings(of: str) -> Iterator[str]:
    """Descriptions of the ends of intervals and of the band, in the order of ``ENDS`` and ``BAND``."""
    for what in ("pointwise 90% interval (normal)", "90% band for all points at once"):
        for side in ("Lower end", "Upper end"):
            yield f"{side} of a {what} for {of}"


def as_probabilities(density: Floats, mass: float = 1.0) -> Floats:
    """The nearest non-negative values of this mass (least squares; Hall & Murison 1993), divided by the
    mass.  They are the density, shifted down and cut at zero.

    Scaling to that mass instead would move a high peak by far more than its noise.
    """
    nearest = project_to_simplex(density.ravel() / density.size, mass)
    return np.asarray(nearest / mass).reshape(density.shape)


def spread_evenly(probabilities: Floats, rows: int, generator: np.random.Generator) -> Integers:
    """Row-major cells (rows,) in random order, each within one of its expected number (systematic
    sampling)."""
    cumulative = np.cumsum(probabilities.ravel())
    levels = (np.arange(rows) + generator.random()) / max(rows, 1) * cumulative[-1]
    # Rounding may put the last level beyond the last cell.
    cells = np.minimum(np.searchsorted(cumulative, levels, "right"), len(cumulative) - 1)
    return np.asarray(generator.permutation(cells))
