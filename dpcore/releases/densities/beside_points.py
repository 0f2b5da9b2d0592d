"""A density with point masses: the number of records at each mass, and a density of the others.

Where a fifth of all incomes are 0, a kernel estimate of all puts a bump where nobody is.  Here the
records at a point mass are counted, and the density is that of the others (``answered``).  A mass is a
part of its own (``parts``): its number is its count times ``one_record``, which is at most what a record
moves the numbers of the density by, in either norm.  So the masses cost what groups cost.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcore.arrays import Floats, Integers
from dpcore.domain.axes import Axis, Grid
from dpcore.domain.domain import Domain
from dpcore.domain.tally import Tally
from dpcore.line.statistic import Exact, Noisy
from dpcore.post.tables.bounded import bounded_interval
from dpcore.post.tables.simplex import round_to_total
from dpcore.releases.abilities import Samplable
from dpcore.releases.base import ErrorStatement, post_processing_generator
from dpcore.releases.densities.parts import DensityParts
from dpcore.releases.table import (
    ENDS,
    LEVEL,
    Published,
    Table,
    TableColumn,
    Uncertainty,
    error_column,
    interval_columns,
)
from dpcore.releases.work import Work

OF_POINTS = Uncertainty(
    "estimate", "standard_error", ENDS, "exact", "From the distribution of the noise."
)


@dataclass(frozen=True)
class DensityBesidePoints(DensityParts, Samplable):
    """``density``: of the one column of the domain, which has point masses."""

    chart = "curve"
    refines = "density"

    @property
    def axis(self) -> Grid:
        """The column."""
        (axis,) = self.domain.axes
        assert isinstance(axis, Grid)
        return axis

    @property
    def points(self) -> Floats:
        """(k,) the values that have cells of their own."""
        return np.asarray(self.axis.points, dtype=np.float64)

    @property
    def numbers(self) -> int:
        return len(self.points) + self.each.mechanism.size

    def published_names(self, axis: Axis) -> tuple[str, ...]:
        return self.each.published_names(axis)

    def statistic(self, tally: Tally) -> Exact:
        codes = tally.domain.unpack(tally.cells)[:, 0] - self.axis.cells
        counts = [int(tally.counts[codes == i].sum()) for i in range(len(self.points))]
        steps = np.minimum(counts, self.most_rows).astype(np.int64) * self.each.one_record
        return Exact(np.concatenate([steps, self.each.numbers(tally)]))

    def elsewhere(self, noisy: Noisy) -> Noisy:
        """The noisy numbers of the density."""
        return Noisy(noisy.values[len(self.points) :], reproducible=noisy.reproducible)

    def counts(self, noisy: Noisy) -> Floats:
        """(k,) noisy numbers of records at the point masses."""
        return np.asarray(noisy.values[: len(self.points)] / self.each.one_record)

    @property
    def stddev(self) -> float:
        """Of the noise in the number of records at a point mass."""
        return self.mechanism.stddev / self.each.one_record

    def publish(self, noisy: Noisy) -> Published:
        published = self.each.publish(self.elsewhere(noisy))
        return Published((*published.tables, self._points_table(noisy)), published.facts)

    def _points_table(self, noisy: Noisy) -> Table:
        counts, name = self.counts(noisy), self.axis.name
        both, one = (
            self.mechanism.half_width(level) / self.each.one_record
            for level in (LEVEL, 2 * LEVEL - 1)
        )
        columns = [
            TableColumn(
                name,
                self.points,
                f"Value of {name}, counted by itself",
                name,
            ),
            TableColumn("estimate", counts, "Records with this value, plus noise of mean zero"),
            error_column(np.full(len(counts), self.stddev), "estimate"),
            *interval_columns(
                *bounded_interval(counts, both, one, self.most_rows), "the exact number of records"
            ),
        ]
        return Table("tables", f"{self.name}.points", columns, (OF_POINTS,))

    @property
    def work(self) -> Work:
        return self.each.work

    @property
    def error_parts(self) -> dict[str, float]:
        """Those of the density of the records elsewhere."""
        return self.each.error_parts

    def expected_error(self) -> tuple[ErrorStatement, ...]:
        at_points = ErrorStatement("standard error of the records at a point mass", self.stddev)
        return (*self.each.expected_error(), at_points)

    def evaluate(self, noisy: Noisy, points: Mapping[str, NDArray[Any]]) -> dict[str, Floats]:
        """The density of the records elsewhere, as ``Density.evaluate``."""
        return self.each.evaluate(self.elsewhere(noisy), points)

    def _likely_counts(self, noisy: Noisy) -> Floats:
        """(k + 1,) records at the point masses and elsewhere, not negative, that add up to the rows."""
        points = np.clip(self.counts(noisy), 0, self.rows)
        if self.adjacency.public_rows and not self.axis.nullable:
            others = max(self.rows - float(points.sum()), 0.0)  # the masses have less noise
        else:
            others = self.each.mass(self.each.coefficients(self.elsewhere(noisy))) * self.rows
        counts = np.append(points, others)
        return np.asarray(counts * (self.rows / counts.sum()))

    def supported_margin(self, noisy: Noisy, names: tuple[str, ...]) -> tuple[Floats, float] | None:
        *points, others = self._likely_counts(noisy)
        cells = others * self.each.probabilities(self.elsewhere(noisy)).ravel()
        found = np.concatenate([cells, points, np.zeros(int(self.axis.nullable))])
        return found, float("nan")

    def sample(self, noisy: Noisy, rows: int) -> tuple[Domain, Integers]:
        """Records with a value: at the point masses as often as they are, others by the density."""
        generator = post_processing_generator(noisy)
        *points, others = round_to_total(
            self._likely_counts(noisy) * (rows / self.rows), rows
        ).tolist()
        _, spread = self.each.sample(self.elsewhere(noisy), others)
        heaped = np.repeat(self.axis.cells + np.arange(len(points)), points)
        codes = generator.permutation(np.concatenate([spread[:, 0], heaped]))
        return Domain((replace(self.axis, nullable=False),)), codes[:, None]
