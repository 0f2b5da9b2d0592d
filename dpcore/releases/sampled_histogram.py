"""Synthetic records drawn from a smoothed private histogram: the draw is the release.

The records themselves are private by the public balls that are mixed into the urn
(``dpcore.mechanisms.sampled``); counts follow from them by taking the expected public draws away.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dpcore.domain import Domain, Tally
from dpcore.mechanisms import Sampled
from dpcore.mechanisms.sampled import Urn
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

QUANTILE = 1.6448536269514722
"""A standard normal number lies within this of zero 90 times out of 100."""

LARGEST = 2**24


@dataclass(frozen=True)
class SampledHistogram(Release):
    """``draws`` records over the cells of the domain; ``urn``: how they are drawn."""

    draws: int
    urn: Urn

    def __post_init__(self) -> None:
        self.adjacency.require_public_rows(self.urn)

    @cached_property
    def mechanism(self) -> Sampled:
        if self.domain.size > LARGEST:
            raise ValueError(
                f"{self.domain.size:.3g} cells are too many to sample from; use fewer columns or bins"
            )
        return Sampled.within(self.share, self.domain.size, self.rows, self.draws, self.urn)

    def statistic(self, tally: Tally) -> Exact:
        return Exact(tally.dense())

    def publish(self, noisy: Noisy) -> Published:
        columns, descriptions = describe_cells(self.domain, np.arange(self.domain.size))
        unit, prior = self.mechanism.unit, float(self.mechanism.concentration)
        # Agresti and Coull: the interval is drawn around a share that is never 0 or 1.
        middle = (noisy.values + QUANTILE**2 / 2) * self.draws / (self.draws + QUANTILE**2)
        deviation = self.mechanism.deviation(middle / self.draws)
        own = {
            "drawn": noisy.values,
            "noisy_count": noisy.values * unit - prior,
            "standard_error": deviation * unit,
            "lower_90": np.maximum(middle - QUANTILE * deviation, 0) * unit - prior,
            "upper_90": (middle + QUANTILE * deviation) * unit - prior,
        }
        meanings = {
            "drawn": "Synthetic records in the cell, of those drawn",
            "noisy_count": "Unbiased estimate of the count of records; may be negative",
            "standard_error": "Standard deviation of noisy_count, estimated from the draw",
            "lower_90": "Lower end of an approximate 90% interval for the exact count",
            "upper_90": "Upper end of an approximate 90% interval for the exact count",
        }
        uncertainty = Uncertainty(
            "noisy_count",
            "standard_error",
            ("lower_90", "upper_90"),
            "normal",
            "The error is estimated from the draw; the interval is that of Agresti and Coull (1998)"
            " for a sampled share.",
        )
        table = Table(
            "tables",
            self.name,
            columns | own,
            descriptions | meanings,
            described_as(self.domain),
            (uncertainty,),
        )
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
                "of a cell with an average share; draws less the prior, scaled",
            ),
            ErrorStatement(
                "part of the synthetic records that is public and uniform",
                1 - self.rows / self.mechanism.balls,
            ),
        )

    def supported_margin(
        self, noisy: Noisy, names: tuple[str, ...]
    ) -> tuple[NDArray[np.float64], float] | None:
        prior = float(self.mechanism.concentration)
        counts = (noisy.values * self.mechanism.unit - prior).reshape(self.domain.shape)
        gone = tuple(i for i, name in enumerate(self.domain.names) if name not in names)
        return counts.sum(axis=gone).ravel(), float("nan")

    def sample(self, noisy: Noisy, rows: int) -> tuple[Domain, NDArray[np.int64]]:
        """The drawn records; where ``rows`` differs from the draws, in proportion to them."""
        multiples = round_to_total(noisy.values, rows)
        cells = np.repeat(np.arange(self.domain.size), multiples)
        return self.domain, self.domain.unpack(post_processing_generator(noisy).permutation(cells))
