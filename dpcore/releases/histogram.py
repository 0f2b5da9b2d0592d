"""Histogram over any set of columns.

One record sits in one cell, so replacing it takes one from a cell and gives one to another: the L1
sensitivity is 2 (METHODS d), and 1 for a record that is added or removed.  A dense histogram adds
discrete Laplace noise to every cell; a thresholded one keeps only noisy counts above a public
threshold, and its cost does not grow with the number of empty cells (METHODS i).  Where the share
has a beta, a thresholded one adds noise to occupied cells alone, and its threshold does not grow
with the number of cells either.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dpcore.domain import Domain, Tally
from dpcore.mechanisms import DiscreteLaplace, StabilityLaplace, ThresholdedLaplace
from dpcore.post.bounded import bounded_interval
from dpcore.post.passing import passed_error, passed_interval
from dpcore.post.simplex import project_to_simplex, round_to_total
from dpcore.post.simulation import likely_counts, noise_like, pooled_means
from dpcore.releases.base import (
    LEVEL,
    ErrorStatement,
    Published,
    Release,
    Table,
    Uncertainty,
    post_processing_generator,
)
from dpcore.releases.cells import describe_cells, described_as
from dpcore.statistic import Exact, Noisy

LARGEST_DENSE = 2**24

SIMULATED = 2**20
"""Errors of counts are simulated for about this many cells, the table as often as that takes."""

MOST_REPEATS = 400

FALSE_CELLS = "expected number of published cells that hold nobody, at most"


@dataclass(frozen=True)
class Histogram(Release):
    """Counts of every cell of the domain, or of those above the threshold."""

    thresholded: bool = False

    def __post_init__(self) -> None:
        if self.thresholded and self.share.beta and self.adjacency.most > 1:
            raise ValueError(
                "mechanism: stability-laplace hides the only record of a cell, and a unit may have"
                f" {self.adjacency.most}; use thresholded-laplace"
            )

    @property
    def l1_sensitivity(self) -> Fraction:
        return self.adjacency.sensitivity(moved=Fraction(2), present=Fraction(1))

    @cached_property
    def mechanism(self) -> DiscreteLaplace | ThresholdedLaplace | StabilityLaplace:
        if self.thresholded and self.share.beta:
            return StabilityLaplace.within(self.share, self.domain.size, self.l1_sensitivity)
        if self.thresholded:
            return ThresholdedLaplace.within(self.share, self.domain.size, self.l1_sensitivity)
        if self.domain.size > LARGEST_DENSE:
            raise ValueError(
                f"{self.domain.size:.3g} cells are too many to publish one by one; use the"
                " mechanism thresholded-laplace, or fewer columns or bins"
            )
        return DiscreteLaplace.within(self.share, self.domain.size, self.l1_sensitivity)

    def statistic(self, tally: Tally) -> Exact:
        if self.thresholded:
            return Exact(tally.counts, tally.cells)
        return Exact(tally.dense())

    def counts(self, noisy: Noisy) -> NDArray[np.int64]:
        """Non-negative whole counts; those of a dense histogram add up to the rows, or where these
        are private to what the noisy counts add up to."""
        if self.thresholded:
            return np.maximum(noisy.values, 0)
        return self._adjusted(noisy.values)

    def _adjusted(self, values: NDArray[np.int64]) -> NDArray[np.int64]:
        """(..., cells) whole counts that add up, of noisy ones."""
        total: NDArray[np.int64] | int = self.rows
        if not self.adjacency.public_rows:
            total = np.maximum(values.sum(axis=-1), 0)
        return round_to_total(project_to_simplex(values, total), total)

    def publish(self, noisy: Noisy) -> Published:
        cells = np.arange(self.domain.size) if noisy.cells is None else noisy.cells
        columns, descriptions = describe_cells(self.domain, cells)
        counts = self.counts(noisy)
        lower, upper = self.interval(noisy)
        table = Table(
            "tables",
            self.name,
            columns
            | {
                "noisy_count": noisy.values,
                "standard_error": self._noise_errors(noisy),
                "lower_90": lower,
                "upper_90": upper,
                "count": counts,
                "count_standard_error": self._count_errors(noisy, counts),
            },
            descriptions | self._descriptions(),
            described_as(self.domain),
            self._uncertainty(),
        )
        facts: dict[str, object] = {
            "cells": self.domain.size,
            "cells_published": len(cells),
            "sum_of_counts": int(counts.sum()),
        }
        if isinstance(self.mechanism, ThresholdedLaplace | StabilityLaplace):
            facts["threshold"] = self.mechanism.threshold
            facts["absent_cells"] = (
                "A cell that is absent had a noisy count of at most the threshold."
            )
        return Published((table,), facts)

    def interval(self, noisy: Noisy) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Ends of 90% intervals for the exact counts of the published cells, exact."""
        if isinstance(self.mechanism, ThresholdedLaplace | StabilityLaplace):
            lower, upper = passed_interval(
                float(self.mechanism.scale), self.mechanism.threshold, noisy.values, LEVEL
            )
            return np.clip(lower, 0, self.most_rows), np.clip(upper, 0, self.most_rows)
        both, one = (self.mechanism.half_width(level) for level in (LEVEL, 2 * LEVEL - 1))
        ends = bounded_interval(noisy.values, both, one, self.most_rows)
        return np.ceil(ends[0]).astype(np.int64), np.floor(ends[1]).astype(np.int64)

    def _noise_errors(self, noisy: Noisy) -> NDArray[np.float64]:
        if isinstance(self.mechanism, ThresholdedLaplace | StabilityLaplace):
            scale = float(self.mechanism.scale)
            return passed_error(scale, self.mechanism.threshold, noisy.values)
        return np.full(len(noisy.values), self.mechanism.stddev)

    def _count_errors(self, noisy: Noisy, counts: NDArray[np.int64]) -> NDArray[np.float64]:
        """Root mean squared errors of ``count``, by repeating all that made it on itself."""
        if self.thresholded:
            return self._noise_errors(noisy)
        generator = post_processing_generator(noisy)
        likely = likely_counts(noisy.values, counts, self.mechanism.stddev)
        repeats = int(np.clip(SIMULATED // counts.size, 1, MOST_REPEATS))
        noise = noise_like(self.mechanism.event, repeats * counts.size, generator)
        again = self._adjusted(likely + noise.reshape(repeats, -1))
        return np.sqrt(pooled_means((again - likely) ** 2, again, counts))

    def _descriptions(self) -> dict[str, str]:
        if self.thresholded:
            noisy = "Count of records plus noise; only values above the threshold are published"
            error = "Root mean squared error of noisy_count, given that it passed the threshold"
            count, same = "noisy_count, which is whole and positive", "The same for count"
        else:
            noisy = "Count of records plus noise of mean zero; may be negative"
            error = "Standard deviation of the noise in noisy_count"
            count = (
                "noisy_count made a whole number that is not negative, so that the table adds up to "
                + ("the rows" if self.adjacency.public_rows else "what noisy_count adds up to")
            )
            same = "Root mean squared error of count, simulated"
        return {
            "noisy_count": noisy,
            "standard_error": error,
            "lower_90": "Lower end of a 90% interval for the exact count",
            "upper_90": "Upper end of a 90% interval for the exact count",
            "count": count,
            "count_standard_error": same,
        }

    def _uncertainty(self) -> tuple[Uncertainty, ...]:
        ends = ("lower_90", "upper_90")
        conservative = (
            "At least 90% for each cell, whatever its count: counts are whole, so that it holds more"
            " often where the scale of the noise is small."
        )
        if self.thresholded:
            statement = (
                f"Given that the cell passed the threshold. {conservative} The standard error is an"
                " average over all exact counts that may be behind the noisy one, none preferred:"
                " cautious, for it allows that the cell is empty."
            )
            names = ("noisy_count", "count")
            return tuple(
                Uncertainty(name, error, ends, "exact", statement)
                for name, error in zip(
                    names, ("standard_error", "count_standard_error"), strict=True
                )
            )
        simulated = (
            "The standard error is that of noise, projection and rounding repeated on the published"
            " counts, pooled over cells of about the same count. The interval is that of noisy_count,"
            " which is all that is known of the cell; a table of many more cells than records pulls"
            " count down, at times out of it."
        )
        return (
            Uncertainty("noisy_count", "standard_error", ends, "exact", conservative),
            Uncertainty("count", "count_standard_error", ends, "simulated", simulated),
        )

    def expected_error(self) -> tuple[ErrorStatement, ...]:
        noise, width = self.mechanism.stddev, self.mechanism.half_width(LEVEL)
        scale = float(self.mechanism.scale)
        mean_absolute = 1 / math.sinh(1 / scale) if scale > 1e-2 else 0.0
        statements: tuple[ErrorStatement, ...] = (
            ErrorStatement("standard error of a count", noise, "noise, before rounding"),
            ErrorStatement("90% interval of a count: plus or minus", width),
        )
        if isinstance(self.mechanism, ThresholdedLaplace | StabilityLaplace):
            statements = (
                *statements,
                ErrorStatement("threshold below which cells are dropped", self.mechanism.threshold),
                ErrorStatement(
                    "expected L1 error per occupied cell, at most",
                    self.mechanism.threshold + mean_absolute,
                    "threshold and noise (Hall 2012, section 2.4.1)",
                ),
            )
            if isinstance(self.mechanism, StabilityLaplace):
                return statements
            ratio = math.exp(-1 / scale)
            passing = ratio ** (self.mechanism.threshold + 1) / (1 + ratio)
            return (
                *statements,
                ErrorStatement(FALSE_CELLS, self.domain.size * passing),
            )
        expected = self.domain.size * mean_absolute
        return (
            *statements,
            ErrorStatement(
                "expected L1 error of the table",
                expected,
                f"noisy_count; {expected / self.rows:.1%} of rows",
            ),
        )

    def sum_variance(self, weights: Mapping[str, NDArray[np.float64]]) -> float:
        if self.thresholded:
            raise ValueError(
                f"{self.name}: counts that passed a threshold are too large on average, and the"
                " others are missing; their sum says nothing of the exact one"
            )
        return self.mechanism.stddev**2 * float(np.sum(weights[self.name] ** 2))

    def supported_margin(
        self, noisy: Noisy, names: tuple[str, ...]
    ) -> tuple[NDArray[np.float64], float] | None:
        margin = self.domain.select(names)
        if margin.size > LARGEST_DENSE:
            return None
        cells = np.arange(self.domain.size) if noisy.cells is None else noisy.cells
        positions = [self.domain.names.index(name) for name in names]
        packed = margin.pack(self.domain.unpack(cells)[:, positions])
        counts = np.bincount(packed, noisy.values, minlength=margin.size).astype(np.float64)
        if self.thresholded:  # what did not pass is missing
            return counts, math.nan
        return counts, self.mechanism.stddev * math.sqrt(self.domain.size / margin.size)

    def sample(self, noisy: Noisy, rows: int) -> tuple[Domain, NDArray[np.int64]]:
        """Synthetic records whose histogram is the published one, scaled to ``rows``."""
        generator = post_processing_generator(noisy)
        cells = np.arange(self.domain.size) if noisy.cells is None else noisy.cells
        if len(cells) == 0:  # nothing passed the threshold: the noisy statistic says nothing
            return self.domain, self.domain.unpack(generator.integers(self.domain.size, size=rows))
        multiples = round_to_total(self.counts(noisy), rows)
        drawn = generator.permutation(np.repeat(cells, multiples))
        return self.domain, self.domain.unpack(drawn)
