"""Synthetic records drawn from a smoothed private histogram: the draw is the release.

The public balls that are mixed into the urn make the drawn records private (``mechanism``). Counts
follow from them by subtracting the expected public draws.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpcore.arrays import Floats, Integers
from dpcore.domain.domain import Domain, size_text
from dpcore.domain.tally import Tally
from dpcore.line.statistic import Exact, Noisy
from dpcore.post.tables.simplex import round_to_total
from dpcore.releases.abilities import Samplable
from dpcore.releases.base import ErrorStatement, post_processing_generator
from dpcore.releases.counts.cells import describe_cells
from dpcore.releases.table import (
    ENDS,
    TWO_SIDED,
    Published,
    Table,
    TableColumn,
    Uncertainty,
    interval_columns,
)
from papers.sampled_histogram.mechanism import Sampled, Urn

LARGEST = 2**24


@dataclass(frozen=True)
class SampledHistogram(Samplable):
    """``draws`` records over the cells of the domain; ``urn``: how they are drawn."""

    draws: int
    urn: Urn

    chart = "cells"
    statistics = ("drawn", "noisy_count", "standard_error", *ENDS)

    def __post_init__(self) -> None:
        self.adjacency.require_public_rows(self.urn)
        super().__post_init__()

    @cached_property
    def mechanism(self) -> Sampled:
        if self.domain.size > LARGEST:
            raise ValueError(
                f"{size_text(self.domain.size)} cells are too many to sample from; use fewer columns or"
                " bins"
            )
        return Sampled.within(self.share, self.domain.size, self.rows, self.draws, self.urn)

    @property
    def largest_statistic(self) -> int:
        return self.most_rows

    def statistic(self, tally: Tally) -> Exact:
        return Exact(tally.dense())

    def publish(self, noisy: Noisy) -> Published:
        unit, prior = self.mechanism.unit, float(self.mechanism.concentration)
        # Agresti and Coull: the interval is centred at a share that is never 0 or 1.
        middle = (noisy.values + TWO_SIDED**2 / 2) * self.draws / (self.draws + TWO_SIDED**2)
        deviation = self.mechanism.deviation(middle / self.draws)
        lower = np.maximum(middle - TWO_SIDED * deviation, 0) * unit - prior
        upper = (middle + TWO_SIDED * deviation) * unit - prior
        numbers = [
            TableColumn("drawn", noisy.values, "Synthetic records drawn in the cell"),
            TableColumn(
                "noisy_count",
                noisy.values * unit - prior,
                "Unbiased estimate of the count of records; may be negative",
            ),
            TableColumn(
                "standard_error",
                deviation * unit,
                "Standard deviation of noisy_count, estimated from the draw",
            ),
            *interval_columns(lower, upper, "the exact count (approximate)"),
        ]
        uncertainty = Uncertainty(
            "noisy_count",
            "standard_error",
            ENDS,
            "normal",
            "The error is estimated from the draw; the interval is by Agresti and Coull (1998)"
            " for a sampled share.",
        )
        table = Table("tables", self.name, [*describe_cells(self.domain), *numbers], (uncertainty,))
        return Published(
            (table,),
            {
                "draws": self.draws,
                "prior": prior,
                "share_of_public_balls": 1 - self.rows / self.mechanism.balls,
            },
        )

    def expected_error(self) -> tuple[ErrorStatement, ...]:
        average = self.mechanism.deviation(1 / max(self.domain.size, 2)) * self.mechanism.unit
        return (
            ErrorStatement(
                "standard error of a count",
                float(average),
                "in a cell with an average share of the records",
            ),
            ErrorStatement(
                "share of the synthetic records that is public and uniform",
                1 - self.rows / self.mechanism.balls,
            ),
        )

    def supported_margin(self, noisy: Noisy, names: tuple[str, ...]) -> tuple[Floats, float] | None:
        prior = float(self.mechanism.concentration)
        counts = (noisy.values * self.mechanism.unit - prior).reshape(self.domain.shape)
        gone = tuple(i for i, name in enumerate(self.domain.names) if name not in names)
        return counts.sum(axis=gone).ravel(), math.nan

    def sample(self, noisy: Noisy, rows: int) -> tuple[Domain, Integers]:
        """The drawn records, or ``rows`` records in proportion to them."""
        multiples = round_to_total(noisy.values, rows)
        cells = np.repeat(np.arange(self.domain.size), multiples)
        return self.domain, self.domain.unpack(post_processing_generator(noisy).permutation(cells))
