"""The published form of a kernel density with Gaussian-process noise, and its errors.

**What is left out.**  Records are moved to the middle of a cell of their column's grid, and their
vectors to whole numbers.  Rounding adds half a step times a row of L (``Whitening.blur``).  The error
from moving records is bounded by the released function itself, smoothed once more, as for densities
(``left_out``).  Beyond the bounds of the columns its values do not exceed the reflected ones, because
no record is there.

If the number of records is private, the published function is f/m, where m is their noisy number over
the rows of the plan, and its error includes the error of m.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpcore.arrays import Floats, Integers
from dpcore.domain.domain import Domain
from dpcore.line.statistic import Noisy
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
    spread_evenly,
)
from dpcore.releases.densities.left_out import half_cells, widened
from dpcore.releases.densities.process import GridProcess, along_axes, at_points
from dpcore.releases.table import (
    ENDS,
    REASON,
    Published,
    Table,
    Uncertainty,
)

OF_ESTIMATE = Uncertainty(
    "estimate",
    "standard_error",
    ENDS,
    "normal",
    f"{POINTWISE} It includes neither sampling error nor smoothing bias nor mass beyond the bounds.",
)

LARGEST_MARGIN = 2**24
"""The most cells of the columns' own grids in which records are compared with the function."""

MOST_SIMULATED = 2**24
"""The most numbers that are simulated for a band."""

ENOUGH, NEAR = 1.25, 1.001
"""With this many points per bandwidth, sums over them are accurate integrals, up to this factor."""


@dataclass(frozen=True)
class SmoothFunction(GridProcess, BandedDensity, Samplable):
    """The function with its errors, interval and band on the grid, and at any other point."""

    refines = "density"
    statistics = (
        "estimate",
        "standard_error",
        *ENDS,
        *BAND,
        "left_out_bound",
        "coefficient",
        REASON,
    )

    def _error(self, relative: Floats, lengths: Floats | float, mass: float) -> Floats:
        """Standard errors of the density of mass one, f/m: its noise is (noise in f - f/m noise in
        m)/m."""
        noise = self.mechanism.stddev * self.unit * lengths
        return np.asarray(np.sqrt(noise**2 + (relative * self.mass_stddev) ** 2) / mass)

    @property
    def binning(self) -> float:
        """A bound, at any point, of the error from whole numbers, relative to a uniform density."""
        return self.height * (math.prod(1 + w.blur(self.bits) for w in self.whitenings) - 1)

    @cached_property
    def _widened(self) -> list[float]:
        return [widened(move) for move in half_cells(self.axes, self.bandwidths)]

    @property
    def rounding(self) -> float:
        """The bound of rounding to the columns' grids for a uniform density, away from the bounds."""
        return math.prod(1 + c for c in self._widened) - 1

    @property
    def _farthest(self) -> float:
        """A bound on the rounding error if all records coincide; wider bumps have lower peaks."""
        highest = [1 / math.sqrt(2 * math.pi) / h for h in self.bandwidths]
        return math.prod(highest) * (math.prod(1 + c / math.sqrt(2) for c in self._widened) - 1)

    @property
    def _fine(self) -> bool:
        """Whether the grid is so fine that sums over it are as accurate as integrals."""
        return all(m * h >= ENOUGH for m, h in zip(self.points, self.bandwidths, strict=True))

    def band_factor(self, noisy: Noisy) -> float:
        """The number of standard errors below which noise stays on the whole grid in 90% of simulated
        releases.

        The distribution of the noise is public; ``noisy`` only seeds the simulation.
        """
        generator, mass = post_processing_generator(noisy), self.mass(noisy)
        relative = self.on_grid(noisy) / mass
        error = self._error(relative, self.length, 1.0)

        def away() -> Floats:
            again = Noisy(self.mechanism.simulate(self.mechanism.size, generator))
            off = self.on_grid(again)
            if not self.counts_mass:
                return off
            return np.asarray(off - relative * (again.values[-1] / self.mass_steps / self.rows))

        repeats = min(REPEATS, MOST_SIMULATED // math.prod(self.points))
        return largest_factor((away() for _ in range(repeats)), error)

    def stated(
        self, noisy: Noisy, factor: float, points: Floats | None = None
    ) -> dict[str, Floats]:
        """The function and all statements of its error, relative to a uniform density.

        ``points``: (k, d) scaled; None for the whole grid, in row-major order.
        """
        whitened, mass = self.whitened(noisy), self.mass(noisy)
        everywhere = self._error(self.on_grid(noisy) / mass, self.length, mass)
        apply: Callable[[Sequence[Floats], Floats], Floats]
        if points is None:
            apply, places = along_axes, [w.points for w in self.whitenings]
            rows, lengths = [w.factor for w in self.whitenings], np.array(self.length)
        else:
            apply, places = at_points, list(points.T)
            rows = [w.between(x) for w, x in zip(self.whitenings, places, strict=True)]
            # Whitened noise is independent; at a point it is weighted by products of the axes' weights.
            lengths = np.prod([np.linalg.norm(row, axis=1) for row in rows], axis=0)
        times_mass = apply(rows, whitened).ravel()
        estimate = times_mass / mass
        error = self._error(estimate, lengths, mass)
        wider = [
            row + c * w.smoothed(x)
            for row, c, w, x in zip(rows, self._widened, self.whitenings, places, strict=True)
        ]
        moved = NEAR * (apply(wider, whitened).ravel() - times_mass) / mass
        e = factor * float(everywhere.max()) + self.binning
        rounding = np.maximum(moved, 0) + self.rounding * e
        most = (
            np.minimum(rounding, self._farthest)
            if self._fine
            else np.full_like(rounding, self._farthest)
        )
        return banded(estimate, error, factor, self.binning + most)

    def stated_at(self, noisy: Noisy, points: Floats) -> dict[str, Floats]:
        return self.stated(noisy, self.band_factor(noisy), points)

    def publish(self, noisy: Noisy) -> Published:
        mass, factor = self.mass(noisy), self.band_factor(noisy)
        dual = along_axes([w.dual for w in self.whitenings], self.whitened(noisy)) / mass
        lines = [whitening.points for whitening in self.whitenings]
        columns, unit = self.point_columns(lines, "at a point of the public grid")
        divided = ", divided by its noisy mass" if self.counts_mass else ""
        stated = {name: column * unit for name, column in self.stated(noisy, factor).items()}
        stated["coefficient"] = dual.ravel() / math.prod(axis.span for axis in self.axes)
        meanings = [
            f"Noisy kernel density per unit of the columns{divided}; may be negative",
            "Standard deviation of the privacy noise in estimate",
            *band_meanings("the exact kernel density of the records"),
            "Bound on the rounding error: how far estimate would be from the exact kernel density if it"
            " had no noise. The interval and the band include this bound",
            "Coefficient of the kernel centred at this point; the function is the sum of all kernels",
        ]
        columns += self.value_columns(noisy, stated, meanings)
        table = Table("functions", self.name, columns, (OF_ESTIMATE, SIMULTANEOUS))
        scale = {"gaussian": "exp(-(x - t)^2 / (2 h^2))", "exponential": "exp(-|x - t| / h)"}
        facts = {
            "function": "f(x) = sum over the rows of the table of coefficient * product over columns of "
            + scale[self.kernel]
            + ", where t is the row's value and h the bandwidth"
            + f"; x and t are{self.of_scale[1:]}, whose derivative at x multiplies f"
            * bool(self.transforms),
            **self.facts(factor, self.rows * mass, self.rows * self.mass_stddev),
            "errors": "Standard errors are of the privacy noise. Intervals and bands also include a"
            " bound of rounding. They include neither sampling error nor smoothing bias nor mass"
            " beyond the bounds.",
        }
        return Published((table,), facts)

    def probabilities(self, noisy: Noisy) -> Floats:
        """The probabilities of equal cells around the points, one cell per point.

        They are in proportion to the function, whose mass inside the bounds is less than one.  Noise
        cancels in this mass, so it is kept where negative values are cut.
        """
        relative = self.on_grid(noisy) / self.mass(noisy)
        grid = zip(self.kernels, self.whitenings, strict=True)
        at_bounds = (k.height * k.bump(w.points, np.zeros(1)) for k, w in grid)
        least = math.prod(float(each.mean()) for each in at_bounds)  # a record in a corner
        return as_probabilities(relative, max(float(relative.mean()), least))

    def supported_margin(self, noisy: Noisy, names: tuple[str, ...]) -> tuple[Floats, float] | None:
        from scipy.interpolate import interp1d  # slow to import

        kept = [place for place, name in enumerate(self.domain.names) if name in names]
        domain, others = self.domain.select(names), {*range(len(self.axes))} - {*kept}
        if domain.size > LARGEST_MARGIN:
            return None
        counts = self.rows * self.probabilities(noisy).sum(axis=tuple(others))
        for axis, place in enumerate(kept):
            ends = np.linspace(0.0, 1.0, self.axes[place].cells + 1)
            edges = np.linspace(0.0, 1.0, counts.shape[axis] + 1)
            # Cumulated sums are interpolated, so that the finer cells have the same total.
            below = np.cumsum(np.insert(counts, 0, 0.0, axis=axis), axis=axis)
            counts = np.diff(interp1d(edges, below, axis=axis)(ends), axis=axis)
        padded = np.pad(
            counts, [(0, n - m) for n, m in zip(domain.shape, counts.shape, strict=True)]
        )
        return padded.ravel(), math.nan

    def sample(self, noisy: Noisy, rows: int) -> tuple[Domain, Integers]:
        """Records with a value in every column, by systematic sampling where the function is
        positive."""
        generator, shape = post_processing_generator(noisy), self.points
        cells = spread_evenly(self.probabilities(noisy), rows, generator)
        places = np.stack(np.unravel_index(cells, shape), axis=1) + generator.random(
            (rows, len(shape))
        )
        return self.answered, (places / shape * self.answered.shape).astype(np.int64)

    @property
    def error_parts(self) -> dict[str, float]:
        """The noise, and the bounds of approximation errors, relative to a uniform density."""
        noise = float(self._error(np.ones(1), self.length, 1.0)[0])
        rounding = min(self.rounding if self._fine else math.inf, self._farthest)
        return {"noise": noise, "binning": self.binning, "rounding": rounding}

    def expected_error(self) -> tuple[ErrorStatement, ...]:
        return (
            ErrorStatement(
                "standard error at every point, relative to a uniform density",
                self.error_parts["noise"],
                self.of_scale.removeprefix(", "),
            ),
            self.whole_statement(),
        )
