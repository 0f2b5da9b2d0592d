"""Histogram over any set of columns.

One record sits in one cell, so replacing it takes one from a cell and gives one to another: the L1
sensitivity is 2 (METHODS d).  A dense histogram adds discrete Laplace noise to every cell; a
thresholded one keeps only noisy counts above a public threshold, and its cost does not grow with
the number of empty cells (METHODS i).  Where the share has a beta, a thresholded one adds noise to
occupied cells alone, and its threshold does not grow with the number of cells either.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dpcore.domain import Domain, Tally
from dpcore.mechanisms import DiscreteLaplace, StabilityLaplace, ThresholdedLaplace
from dpcore.post.simplex import project_to_simplex, round_to_total
from dpcore.releases.base import (
    ErrorStatement,
    Published,
    Release,
    Table,
    post_processing_generator,
)
from dpcore.releases.cells import describe_cells
from dpcore.statistic import Exact, Noisy

LEVEL = 0.9
"""Published intervals hold the exact count this often."""

L1_SENSITIVITY = Fraction(2)
LARGEST_DENSE = 2**24


@dataclass(frozen=True)
class Histogram(Release):
    """Counts of every cell of the domain, or of those above the threshold."""

    thresholded: bool = False

    @cached_property
    def mechanism(self) -> DiscreteLaplace | ThresholdedLaplace | StabilityLaplace:
        if self.thresholded and self.share.beta:
            return StabilityLaplace.within(self.share, self.domain.size, L1_SENSITIVITY)
        if self.thresholded:
            return ThresholdedLaplace.within(self.share, self.domain.size, L1_SENSITIVITY)
        if self.domain.size > LARGEST_DENSE:
            raise ValueError(
                f"{self.domain.size:.3g} cells are too many to publish one by one; use the"
                " mechanism thresholded-laplace, or fewer columns or bins"
            )
        return DiscreteLaplace.within(self.share, self.domain.size, L1_SENSITIVITY)

    def statistic(self, tally: Tally) -> Exact:
        if self.thresholded:
            return Exact(tally.counts, tally.cells)
        return Exact(tally.dense())

    def counts(self, noisy: Noisy) -> NDArray[np.int64]:
        """Non-negative whole counts; those of a dense histogram add up to the rows."""
        if self.thresholded:
            return np.maximum(noisy.values, 0)
        return round_to_total(project_to_simplex(noisy.values, float(self.rows)), self.rows)

    def publish(self, noisy: Noisy) -> Published:
        cells = np.arange(self.domain.size) if noisy.cells is None else noisy.cells
        columns, descriptions = describe_cells(self.domain, cells)
        noise, width = self.mechanism.stddev, self.mechanism.half_width(LEVEL)
        table = Table(
            "tables",
            self.name,
            columns
            | {
                "noisy_count": noisy.values,
                "standard_error": np.full(len(cells), noise),
                "lower_90": noisy.values - width,
                "upper_90": noisy.values + width,
                "count": self.counts(noisy),
            },
            descriptions
            | {
                "noisy_count": "Count of records plus noise of mean zero; may be negative",
                "standard_error": "Standard deviation of the noise in noisy_count",
                "lower_90": "Lower end of a 90% interval for the exact count",
                "upper_90": "Upper end of a 90% interval for the exact count",
                "count": "noisy_count made a whole number that is not negative"
                + ("" if self.thresholded else ", so that the table adds up to the rows"),
            },
        )
        facts: dict[str, object] = {
            "cells": self.domain.size,
            "cells_published": len(cells),
            "records_counted": int(self.counts(noisy).sum()),
        }
        if isinstance(self.mechanism, ThresholdedLaplace | StabilityLaplace):
            facts["threshold"] = self.mechanism.threshold
            facts["absent_cells"] = (
                "A cell that is absent had a noisy count of at most the threshold. Intervals hold"
                " before the threshold was applied; counts just above it are biased upwards."
            )
        return Published((table,), facts)

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
                ErrorStatement(
                    "expected number of published cells that hold nobody, at most",
                    self.domain.size * passing,
                ),
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

    def sample(self, noisy: Noisy, rows: int) -> tuple[Domain, NDArray[np.int64]]:
        """Synthetic records whose histogram is the published one, scaled to ``rows``."""
        generator = post_processing_generator(noisy)
        cells = np.arange(self.domain.size) if noisy.cells is None else noisy.cells
        if len(cells) == 0:  # nothing passed the threshold: the noisy statistic says nothing
            return self.domain, self.domain.unpack(generator.integers(self.domain.size, size=rows))
        multiples = round_to_total(self.counts(noisy), rows)
        drawn = generator.permutation(np.repeat(cells, multiples))
        return self.domain, self.domain.unpack(drawn)
