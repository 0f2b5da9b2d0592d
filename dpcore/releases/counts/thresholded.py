"""Histogram of the cells whose noisy counts exceed a public threshold.

Its cost does not grow with the number of empty cells.  If the share has a beta, only occupied cells get
noise, and the threshold does not grow with the number of cells either.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dpcore.arrays import Floats, Integers
from dpcore.domain.tally import Tally
from dpcore.line.statistic import Exact, Noisy
from dpcore.mechanisms import StabilityLaplace, ThresholdedLaplace
from dpcore.post.tables.consistency import Agreement
from dpcore.post.tables.passing import passed_error, passed_interval
from dpcore.releases.base import ErrorStatement
from dpcore.releases.counts.histogram import LARGEST_DENSE, Histogram
from dpcore.releases.table import ENDS, LEVEL, TableColumn, Uncertainty
from dpcore.releases.work import Work, publishing


@dataclass(frozen=True)
class ThresholdedHistogram(Histogram):
    """Counts of the cells above the threshold.

    ``occupied``: the largest number of cells with records, if public; it may lower the threshold.
    """

    occupied: int | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        # Empty cells that pass the threshold are drawn by cell number, so it must fit into a word.
        self.domain.require_one_word("a thresholded histogram")
        if self.occupied is not None and not 1 <= self.occupied <= self.domain.size:
            raise ValueError(
                f"occupied: must lie between 1 and the number of cells ({self.domain.size:,})"
            )
        if self.share.beta and self.adjacency.most > 1:
            raise ValueError(
                "mechanism: stability-laplace protects units of one record, and here a unit may have"
                f" {self.adjacency.most}; use thresholded-laplace"
            )

    @cached_property
    def mechanism(self) -> ThresholdedLaplace | StabilityLaplace:  # type: ignore[override]
        if self.share.beta:
            return StabilityLaplace.within(self.share, self.domain.size, self.adjacency)
        return ThresholdedLaplace.within(
            self.share, self.domain.size, self.l1_sensitivity, self.most_rows, self.occupied
        )

    @property
    def work(self) -> Work:
        return publishing(min(self.rows, self.domain.size))

    def statistic(self, tally: Tally) -> Exact:
        return Exact(tally.counts, tally.cells)

    def counts(self, noisy: Noisy) -> Integers:
        return noisy.values  # all are above the threshold, which is not negative

    @property
    def _more_facts(self) -> dict[str, object]:
        return {
            "threshold": self.unit.scaled(self.mechanism.threshold),
            "absent_cells": (
                f"Cells with a noisy {self.unit.number} of at most the threshold are not published."
            ),
        }

    def _columns(self, noisy: Noisy, counts: Integers) -> list[TableColumn]:
        unit, mechanism = self.unit, self.mechanism
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
        scale, threshold = float(self.mechanism.scale), self.mechanism.threshold
        lower, upper = passed_interval(scale, threshold, noisy.values, LEVEL)
        return np.clip(lower, 0, self.most_rows), np.clip(upper, 0, self.most_rows)

    def _uncertainty(self) -> tuple[Uncertainty, ...]:
        statement = (
            f"These statements are for a cell given that it passed the threshold. {self._valid} The"
            f" standard error is an average over all exact {self.unit.numbers} that could give the noisy"
            " one, all equally likely. It is cautious, because the cell may be empty."
        )
        return (
            Uncertainty("noisy_count", "standard_error", ENDS, "exact", statement),
            Uncertainty("count", "count_standard_error", ENDS, "exact", statement),
        )

    def expected_error(self) -> tuple[ErrorStatement, ...]:
        unit, mechanism, occupied = self.unit, self.mechanism, self.occupied
        lowered = mechanism.threshold < float(mechanism.scale) * math.log(self.domain.size)
        statements = [
            *self._error_of_a_count(),
            ErrorStatement(
                "threshold below which cells are dropped",
                unit.scaled(mechanism.threshold),
                f"for {occupied:,} occupied cells" if occupied and lowered else "",
            ),
            ErrorStatement(
                "expected L1 error per occupied cell, at most",
                unit.scaled(mechanism.threshold + mechanism.mean_absolute),
                "threshold and noise (Hall 2012, section 2.4.1)",
            ),
        ]
        if isinstance(mechanism, ThresholdedLaplace):
            empty = "expected number of empty cells that are published, at most"
            statements.append(ErrorStatement(empty, self.domain.size * mechanism.passing))
            if occupied is not None:
                whole = unit.scaled(mechanism.table_error(self.most_rows, occupied))
                note = f"if {occupied:,} cells are occupied"
                statements.append(
                    ErrorStatement("expected L1 error of the table, at most", whole, note)
                )
        return tuple(statements)

    def sum_variance(self, weights: Mapping[str, Floats]) -> float:
        raise ValueError(
            f"{self.name}: counts that passed a threshold are too large on average, and all others"
            " are missing; do not use their sum to estimate the exact sum"
        )

    def agreement(self, noisy: Noisy) -> Agreement | None:
        return None

    def replicate_noise(self, noisy: Noisy, number: int) -> Mapping[str, NDArray[np.float32]]:
        return {}  # counts that passed have noise with a positive mean

    def supported_margin(self, noisy: Noisy, names: tuple[str, ...]) -> tuple[Floats, float] | None:
        margin = self.domain.select(names)
        if margin.size > LARGEST_DENSE:
            return None
        positions = [self.domain.names.index(name) for name in names]
        assert noisy.cells is not None  # cells that did not pass are missing
        packed = margin.pack(self.domain.unpack(noisy.cells)[:, positions])
        counts = np.bincount(packed, noisy.values, minlength=margin.size).astype(np.float64)
        return self.scaled_margin(counts, math.nan)
