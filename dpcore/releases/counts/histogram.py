"""Histogram over any set of columns.

Each record is in one cell, so replacing it lowers one count and raises another by one: the L1
sensitivity is 2, and 1 for a record that is added or removed.  Every cell gets discrete Laplace noise;
``thresholded`` is for tables of too many cells.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dpcore.arrays import Floats, Integers
from dpcore.domain.domain import Domain, size_text
from dpcore.domain.tally import Tally
from dpcore.line.statistic import Exact, Noisy
from dpcore.mechanisms import DiscreteLaplace
from dpcore.post.tables.consistency import Agreement
from dpcore.post.tables.count_interval import Accepted, count_interval
from dpcore.post.tables.margins import Attributes, Margin
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

LARGEST_DENSE = 2**24

SIMULATED = 2**20
"""Errors of counts are simulated for at least about this many cells, by repeating the table."""

MOST_REPEATS = 400


@dataclass(frozen=True)
class Histogram(TableOfCounts, Samplable):
    """Counts of every cell of the domain."""

    chart = "cells"
    refines = "counts"
    statistics = OF_COUNTS

    @property
    def l1_sensitivity(self) -> Fraction:
        return self.adjacency.sensitivity(moved=Fraction(2), present=Fraction(1))

    @cached_property
    def mechanism(self) -> DiscreteLaplace:
        if self.domain.size > LARGEST_DENSE:
            raise ValueError(
                f"{size_text(self.domain.size)} cells are too many to publish one by one; use the"
                " mechanism thresholded-laplace, or fewer columns or bins"
            )
        return DiscreteLaplace.within(self.share, self.domain.size, self.l1_sensitivity)

    @property
    def tables(self) -> tuple[Attributes, ...]:
        """The sets of columns that every draw measures."""
        return (tuple(range(len(self.domain.axes))),)

    def in_series(self) -> Histogram | None:
        """The release that each run of a series counts."""
        return self

    def statistic(self, tally: Tally) -> Exact:
        return Exact(tally.dense())

    def counts(self, noisy: Noisy) -> Integers:
        """Non-negative whole counts; they add up to the rows if these are public, otherwise to the
        rounded sum of the noisy counts."""
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
        columns = [*describe_cells(self.domain, cells), *self._columns(noisy, counts)]
        table = Table("tables", self.name, columns, self._uncertainty())
        facts: dict[str, object] = {
            "cells": self.domain.size,
            "cells_published": len(cells),
            "sum_of_counts": self.unit.scaled(int(counts.sum())),
        }
        return Published((table,), facts | self._more_facts | self.weight_facts)

    @property
    def _more_facts(self) -> dict[str, object]:
        return {}

    def _columns(self, noisy: Noisy, counts: Integers) -> list[TableColumn]:
        unit = self.unit
        total = f"the number of {unit.things}" if self.adjacency.public_rows else "the noisy sum"
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

    def interval(self, noisy: Noisy) -> tuple[Integers, Integers]:
        """The ends of exact 90% intervals for the exact counts of the published cells."""
        ends = exact_interval(noisy.values, self.mechanism.half_width, self.most_rows)
        return np.ceil(ends[0]).astype(np.int64), np.floor(ends[1]).astype(np.int64)

    def _count_errors(self, noisy: Noisy, counts: Integers) -> tuple[Floats, tuple[Floats, Floats]]:
        """Root mean squared errors of ``count`` and the ends of 90% intervals around it, by simulating
        noise and post-processing on the published counts."""
        generator = post_processing_generator(noisy)
        likely = likely_counts(noisy.values, counts, self.mechanism.stddev)
        # Errors are pooled over cells with about the same count: small tables need repeats for this.
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

    @property
    def _valid(self) -> str:
        """The sentence on the level of the interval."""
        return (
            f"The interval contains the exact {self.unit.number} with probability at least 90%, for any"
            f" value. This chance is larger if noise is small, as the number is a {self.unit.whole}."
        )

    def _uncertainty(self) -> tuple[Uncertainty, ...]:
        return (
            Uncertainty("noisy_count", "standard_error", ENDS, "exact", self._valid),
            count_uncertainty("noisy_count", self.unit),
        )

    def _error_of_a_count(self) -> tuple[ErrorStatement, ErrorStatement]:
        unit, noise, width = self.unit, self.mechanism.stddev, self.mechanism.half_width(LEVEL)
        return (
            ErrorStatement(
                f"standard error of a {unit.number}", unit.scaled(noise), "noise, before rounding"
            ),
            ErrorStatement(f"90% interval of a {unit.number}: plus or minus", unit.scaled(width)),
        )

    def expected_error(self) -> tuple[ErrorStatement, ...]:
        expected = self.domain.size * self.mechanism.mean_absolute
        in_wrong = min(expected / self.rows / 2, 1.0)
        return (
            *self._error_of_a_count(),
            ErrorStatement(
                "expected L1 error of the table",
                self.unit.scaled(expected),
                f"sum over all cells; noise puts {in_wrong:.1%} of the {self.unit.things} into wrong"
                " cells",
            ),
        )

    def sum_variance(self, weights: Mapping[str, Floats]) -> float:
        error = self.unit.scaled(self.mechanism.stddev)
        return float(error**2 * np.sum(weights[self.name] ** 2))

    def agreement(self, noisy: Noisy) -> Agreement | None:
        table = noisy.values.reshape(self.domain.shape).astype(np.float64)
        margin = Margin(tuple(range(table.ndim)), table, self.mechanism.stddev**2)
        total = float(self.rows) if self.adjacency.public_rows else None
        return Agreement(self.domain.shape, [margin], total)

    def replicate_noise(self, noisy: Noisy, number: int) -> Mapping[str, NDArray[np.float32]]:
        generator, size = replicate_generator(noisy), self.domain.size
        return {
            self.name: drawn_again(
                lambda: self.unit.scaled(self.mechanism.simulate(size, generator)), number
            )
        }

    def supported_margin(self, noisy: Noisy, names: tuple[str, ...]) -> tuple[Floats, float] | None:
        margin, agreement = self.domain.select(names), self.agreement(noisy)
        if agreement is None or margin.size > LARGEST_DENSE:
            return None
        positions = [self.domain.names.index(name) for name in names]
        found = agreement.margin(sorted(positions))
        # An agreement has its columns in the order of the domain, not in the requested order.
        table = np.transpose(found.table, np.argsort(np.argsort(positions)))
        return self.scaled_margin(table.ravel(), found.variance**0.5)

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
