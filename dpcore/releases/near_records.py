"""Synthetic records whose distribution function is near that of the records (METHODS k)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dpcore.domain import Bins, Domain, Grid, Tally
from dpcore.mechanisms import NearRecordsMechanism
from dpcore.post.simplex import round_to_total
from dpcore.releases.base import (
    ErrorStatement,
    Published,
    Release,
    Table,
    Uncertainty,
    post_processing_generator,
)
from dpcore.releases.cells import describe_cells, described_as
from dpcore.statistic import Exact, Noisy

LEVEL = 0.9
"""The stated distance holds this often."""


@dataclass(frozen=True)
class NearRecords(Release):
    """``draws`` records over the cells of one numeric column, drawn by their Kolmogorov-Smirnov
    distance from the private ones."""

    draws: int

    def __post_init__(self) -> None:
        self.adjacency.require_public_rows("ks-exponential")
        (axis,) = self.domain.axes
        if not isinstance(axis, Bins | Grid) or axis.nullable:
            raise ValueError(f"column: {axis.name} must be in bins, and without nulls")

    @cached_property
    def mechanism(self) -> NearRecordsMechanism:
        return NearRecordsMechanism.within(self.share, self.domain.size, self.rows, self.draws)

    def statistic(self, tally: Tally) -> Exact:
        return Exact(tally.dense())

    @cached_property
    def distance(self) -> float:
        """The distance at bin ends is at most this, with probability LEVEL, whatever the data.

        Rounding the counts up to each cell gives a sequence within 1/(2 draws); the sequences whose
        score is s more weigh cells^draws exp(-s/scale) of it at most.
        """
        beyond = self.draws * math.log(self.domain.size) - math.log(1 - LEVEL)
        score = self.rows / (2 * self.draws) + float(self.mechanism.scale) * beyond
        return min((score + 1) / self.rows, 1.0)

    def publish(self, noisy: Noisy) -> Published:
        columns, descriptions = describe_cells(self.domain, np.arange(self.domain.size))
        uncertainty = Uncertainty(
            "drawn",
            None,
            None,
            "exact",
            "With probability 90% the share of the drawn records up to the end of any cell differs"
            f" from that of the exact ones by {self.distance:.3g} at most, all together.",
        )
        table = Table(
            "tables",
            self.name,
            columns | {"drawn": noisy.values},
            descriptions | {"drawn": "Synthetic records in the cell, of those drawn"},
            described_as(self.domain),
            (uncertainty,),
        )
        return Published((table,), {"draws": self.draws, "distance_90": self.distance})

    def expected_error(self) -> tuple[ErrorStatement, ...]:
        return (
            ErrorStatement(
                "90% bound of the Kolmogorov-Smirnov distance at ends of bins",
                self.distance,
                "of the synthetic records from the exact ones, whatever the data",
            ),
        )

    def supported_margin(
        self, noisy: Noisy, names: tuple[str, ...]
    ) -> tuple[NDArray[np.float64], float] | None:
        return np.asarray(noisy.values * (self.rows / self.draws)), math.nan

    def sample(self, noisy: Noisy, rows: int) -> tuple[Domain, NDArray[np.int64]]:
        """The drawn records; where ``rows`` differs from the draws, in proportion to them."""
        cells = np.repeat(np.arange(self.domain.size), round_to_total(noisy.values, rows))
        return self.domain, self.domain.unpack(post_processing_generator(noisy).permutation(cells))
