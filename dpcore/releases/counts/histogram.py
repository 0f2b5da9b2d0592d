"""Histogram over any set of columns.

Each record is in one cell, so replacing it lowers one count and raises another by one: the L1
sensitivity is 2, and 1 for a record that is added or removed.  A dense histogram adds
discrete Laplace noise to every cell; a thresholded one keeps only noisy counts above a public
threshold, and its cost does not grow with the number of empty cells.  If the share has a
beta, a thresholded histogram adds noise to occupied cells only, and its threshold does not grow with
the number of cells either.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dpcore.arrays import Floats, Integers
from dpcore.domain.domain import Domain, size_text
from dpcore.domain.tally import Tally
from dpcore.line.statistic import Exact, Noisy
from dpcore.mechanisms import DiscreteLaplace, StabilityLaplace, ThresholdedLaplace
from dpcore.post.tables.consistency import Agreement
from dpcore.post.tables.count_interval import Accepted, count_interval
from dpcore.post.tables.margins import Margin
from dpcore.post.tables.passing import passed_error, passed_interval
from dpcore.post.tables.simplex import project_to_simplex, round_to_total
from dpcore.post.tables.simulation import likely_counts, pooled_means
from dpcore.releases.abilities import Samplable, blocks_of
from dpcore.releases.base import ErrorStatement, post_processing_generator
from dpcore.releases.counts.cells import describe_cells
from dpcore.releases.counts.unit import OF_COUNTS, TableOfCounts, count_uncertainty
from dpcore.releases.replicates import drawn_again, replicate_generator
from dpcore.releases.table import (
    ENDS,
    LEVEL,
    Published,
    Table,
    TableColumn,
    Uncertainty,
    exact_interval,
)
from dpcore.releases.work import Work, publishing

LARGEST_DENSE = 2**24

SIMULATED = 2**20
"""Errors of counts are simulated for at least about this many cells, by repeating the table."""

MOST_REPEATS = 400


@dataclass(frozen=True)
class Histogram(TableOfCounts, Samplable):
    """Counts of every cell of the domain, or of the cells above the threshold.

    ``occupied``: the largest number of cells with records, if public; it may lower the threshold.
    """

    thresholded: bool = False
    occupied: int | None = field(default=None, kw_only=True)

    chart = "cells"
    refines = "counts"
    statistics = OF_COUNTS

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.thresholded:
            # Empty cells that pass the threshold are drawn by cell number, so it must fit into a word.
            self.domain.require_one_word("a thresholded histogram")
        if self.occupied is not None and not 1 <= self.occupied <= self.domain.size:
            raise ValueError(
                f"occupied: must lie between 1 and the number of cells ({self.domain.size:,})"
            )
        if self.thresholded and self.share.beta and self.adjacency.most > 1:
            raise ValueError(
                "mechanism: stability-laplace protects units of one record, and here a unit may have"
                f" {self.adjacency.most}; use thresholded-laplace"
            )

    @property
    def l1_sensitivity(self) -> Fraction:
        return self.adjacency.sensitivity(moved=Fraction(2), present=Fraction(1))

    @cached_property
    def mechanism(self) -> DiscreteLaplace | ThresholdedLaplace | StabilityLaplace:
        if self.thresholded and self.share.beta:
            return StabilityLaplace.within(self.share, self.domain.size, self.adjacency)
        if self.thresholded:
            return ThresholdedLaplace.within(
                self.share, self.domain.size, self.l1_sensitivity, self.most_rows, self.occupied
            )
        if self.domain.size > LARGEST_DENSE:
            raise ValueError(
                f"{size_text(self.domain.size)} cells are too many to publish one by one; use the"
                " mechanism thresholded-laplace, or fewer columns or bins"
            )
        return DiscreteLaplace.within(self.share, self.domain.size, self.l1_sensitivity)

    @property
    def work(self) -> Work:
        occupied = min(self.rows, self.domain.size)
        return publishing(occupied) if self.thresholded else super().work

    def statistic(self, tally: Tally) -> Exact:
        if self.thresholded:
            return Exact(tally.counts, tally.cells)
        return Exact(tally.dense())

    def counts(self, noisy: Noisy) -> Integers:
        """Non-negative whole counts; in a dense histogram they add up to the rows if these are public,
        otherwise to the rounded sum of the noisy counts."""
        if self.thresholded:
            return noisy.values  # all are above the threshold, which is not negative
        return self._adjusted(noisy.values)

    def _adjusted(self, values: Integers) -> Integers:
        """Whole counts (..., cells) with the right sum, from noisy counts."""
        total: Integers | int = self.rows
        if not self.adjacency.public_rows:
            total = np.maximum(values.sum(axis=-1), 0)
        return round_to_total(project_to_simplex(values, total), total)

    def publish(self, noisy: Noisy) -> Published:
        cells = np.arange(self.domain.size) if noisy.cells is None else noisy.cells
        counts = self.counts(noisy)
        numbers = (
            self._passed_columns(noisy, counts)
            if self.thresholded
            else self._dense_columns(noisy, counts)
        )
        table = Table(
            "tables",
            self.name,
            [*describe_cells(self.domain, cells), *numbers],
            self._uncertainty(),
        )
        facts: dict[str, object] = {
            "cells": self.domain.size,
            "cells_published": len(cells),
            "sum_of_counts": self.unit.scaled(int(counts.sum())),
        }
        if isinstance(self.mechanism, ThresholdedLaplace | StabilityLaplace):
            facts["threshold"] = self.unit.scaled(self.mechanism.threshold)
            facts["absent_cells"] = (
                f"Cells with a noisy {self.unit.number} of at most the threshold are not published."
            )
        return Published((table,), facts | self.weight_facts)

    def _dense_columns(self, noisy: Noisy, counts: Integers) -> list[TableColumn]:
        unit = self.unit
        total = (
            f"the number of {unit.things}" if self.adjacency.public_rows else "that of noisy_count"
        )
        errors, around = self._count_errors(noisy, counts)
        return [
            *unit.noisy_columns(noisy.values, self.mechanism.stddev, "; may be negative"),
            *unit.interval(*self.interval(noisy)),
            *unit.count_columns(
                counts,
                errors,
                around,
                self.most_rows,
                f"noisy_count, changed to a {unit.whole} that is not negative; the sum over the table"
                f" is {total}",
            ),
        ]

    def _passed_columns(self, noisy: Noisy, counts: Integers) -> list[TableColumn]:
        unit, mechanism = self.unit, self.mechanism
        assert isinstance(mechanism, ThresholdedLaplace | StabilityLaplace)
        errors = passed_error(float(mechanism.scale), mechanism.threshold, noisy.values)
        given, ends = "given that noisy_count passed the threshold", self.interval(noisy)
        return [
            unit.column(
                "noisy_count",
                noisy.values,
                f"{unit.amount} plus noise; only values above the threshold are published",
            ),
            unit.column(
                "standard_error", errors, f"Root mean squared error of noisy_count, {given}"
            ),
            *unit.interval(*ends),
            unit.column(
                "count",
                np.clip(counts, *ends),
                f"The nearest {unit.whole} to noisy_count in its interval",
            ),
            unit.column(
                "count_standard_error", errors, f"Root mean squared error of count, {given}"
            ),
        ]

    def interval(self, noisy: Noisy) -> tuple[Integers, Integers]:
        """The ends of exact 90% intervals for the exact counts of the published cells."""
        if isinstance(self.mechanism, ThresholdedLaplace | StabilityLaplace):
            lower, upper = passed_interval(
                float(self.mechanism.scale), self.mechanism.threshold, noisy.values, LEVEL
            )
            return np.clip(lower, 0, self.most_rows), np.clip(upper, 0, self.most_rows)
        ends = exact_interval(noisy.values, self.mechanism.half_width, self.most_rows)
        return np.ceil(ends[0]).astype(np.int64), np.floor(ends[1]).astype(np.int64)

    def _count_errors(self, noisy: Noisy, counts: Integers) -> tuple[Floats, tuple[Floats, Floats]]:
        """Root mean squared errors of ``count`` and the ends of 90% intervals around it, by simulating
        noise and post-processing on the published counts."""
        generator = post_processing_generator(noisy)
        likely = likely_counts(noisy.values, counts, self.mechanism.stddev)
        # Errors are pooled over cells of about the same size: a small table needs repeats to have many.
        repeats = int(np.clip(SIMULATED // counts.size, 1, MOST_REPEATS))
        noise = self.mechanism.simulate(repeats * counts.size, generator)
        again = self._adjusted(likely + noise.reshape(repeats, -1))
        errors = np.sqrt(pooled_means((again - likely) ** 2, again, counts))
        stddev = self.mechanism.stddev
        accepted = Accepted.of(
            np.tile(likely, repeats) / stddev, again.ravel() / stddev, np.ones_like
        )
        ends = self.interval(noisy)
        return errors, count_interval(counts, errors, noisy.values, stddev, ends, accepted)

    def _uncertainty(self) -> tuple[Uncertainty, ...]:
        unit = self.unit
        conservative = (
            f"The interval contains the exact {unit.number} with probability at least 90%, for any"
            f" value. The probability is larger if the noise is small (each is a {unit.whole})."
        )
        if self.thresholded:
            statement = (
                "These statements are for a cell given that it passed the threshold."
                f" {conservative} The standard error is an average over all exact {unit.numbers} that"
                " could give the noisy one, all equally likely. It is cautious, because the cell may"
                " be empty."
            )
            return (
                Uncertainty("noisy_count", "standard_error", ENDS, "exact", statement),
                Uncertainty("count", "count_standard_error", ENDS, "exact", statement),
            )
        return (
            Uncertainty("noisy_count", "standard_error", ENDS, "exact", conservative),
            count_uncertainty("noisy_count", unit),
        )

    def expected_error(self) -> tuple[ErrorStatement, ...]:
        unit = self.unit
        noise, width = self.mechanism.stddev, self.mechanism.half_width(LEVEL)
        statements: tuple[ErrorStatement, ...] = (
            ErrorStatement(
                f"standard error of a {unit.number}", unit.scaled(noise), "noise, before rounding"
            ),
            ErrorStatement(f"90% interval of a {unit.number}: plus or minus", unit.scaled(width)),
        )
        if isinstance(self.mechanism, ThresholdedLaplace | StabilityLaplace):
            threshold, scale = self.mechanism.threshold, float(self.mechanism.scale)
            known = self.occupied and threshold < scale * math.log(self.domain.size)
            statements = (
                *statements,
                ErrorStatement(
                    "threshold below which cells are dropped",
                    unit.scaled(threshold),
                    f"for {self.occupied:,} occupied cells" if known else "",
                ),
                ErrorStatement(
                    "expected L1 error per occupied cell, at most",
                    unit.scaled(threshold + self.mechanism.mean_absolute),
                    "threshold and noise (Hall 2012, section 2.4.1)",
                ),
            )
            if isinstance(self.mechanism, StabilityLaplace):
                return statements
            empty = "expected number of published cells that are empty, at most"
            statements = (
                *statements,
                ErrorStatement(empty, self.domain.size * self.mechanism.passing),
            )
            if self.occupied is None:
                return statements
            whole = self.mechanism.table_error(self.most_rows, self.occupied)
            note = f"if {self.occupied:,} cells are occupied"
            return (
                *statements,
                ErrorStatement("expected L1 error of the table, at most", unit.scaled(whole), note),
            )
        expected = self.domain.size * self.mechanism.mean_absolute
        in_wrong = min(expected / self.rows / 2, 1.0)
        return (
            *statements,
            ErrorStatement(
                "expected L1 error of the table",
                unit.scaled(expected),
                f"of noisy_count; {in_wrong:.1%} of the {unit.things} in wrong cells",
            ),
        )

    def sum_variance(self, weights: Mapping[str, Floats]) -> float:
        if self.thresholded:
            raise ValueError(
                f"{self.name}: counts that passed a threshold are too large on average, and all others"
                " are missing; do not use their sum to estimate the exact sum"
            )
        error = self.unit.scaled(self.mechanism.stddev)
        return float(error**2 * np.sum(weights[self.name] ** 2))

    def agreement(self, noisy: Noisy) -> Agreement | None:
        if self.thresholded:
            return None
        table = noisy.values.reshape(self.domain.shape).astype(np.float64)
        margin = Margin(tuple(range(table.ndim)), table, self.mechanism.stddev**2)
        total = float(self.rows) if self.adjacency.public_rows else None
        return Agreement(self.domain.shape, [margin], total)

    def replicate_noise(self, noisy: Noisy, number: int) -> Mapping[str, NDArray[np.float32]]:
        if self.thresholded:  # counts that passed have noise with a positive mean
            return {}
        generator, size = replicate_generator(noisy), self.domain.size
        return {
            self.name: drawn_again(
                lambda: self.unit.scaled(self.mechanism.simulate(size, generator)), number
            )
        }

    def supported_margin(self, noisy: Noisy, names: tuple[str, ...]) -> tuple[Floats, float] | None:
        margin, agreement = self.domain.select(names), self.agreement(noisy)
        if margin.size > LARGEST_DENSE:
            return None
        positions = [self.domain.names.index(name) for name in names]
        if agreement is not None:
            found = agreement.margin(sorted(positions))
            # An agreement has its columns in the order of the domain, not in the requested order.
            table = np.transpose(found.table, np.argsort(np.argsort(positions)))
            return self.scaled_margin(table.ravel(), found.variance**0.5)
        assert noisy.cells is not None  # cells that did not pass are missing
        packed = margin.pack(self.domain.unpack(noisy.cells)[:, positions])
        counts = np.bincount(packed, noisy.values, minlength=margin.size).astype(np.float64)
        return self.scaled_margin(counts, math.nan)

    def sample(self, noisy: Noisy, rows: int) -> tuple[Domain, Integers]:
        domain, blocks = self.sample_blocks(noisy, rows)
        return domain, np.concatenate([*blocks])

    def sample_blocks(self, noisy: Noisy, rows: int) -> tuple[Domain, Iterator[Integers]]:
        """Synthetic records whose histogram is the published one, scaled to ``rows``."""
        generator = post_processing_generator(noisy)
        cells = np.arange(self.domain.size) if noisy.cells is None else noisy.cells
        if len(cells) == 0:  # nothing passed the threshold, so nothing is known
            drawn = generator.integers(self.domain.size, size=rows)
        else:
            multiples = round_to_total(self.counts(noisy), rows)
            drawn = generator.permutation(np.repeat(cells, multiples))
        return self.domain, map(self.domain.unpack, np.array_split(drawn, len(blocks_of(rows))))
