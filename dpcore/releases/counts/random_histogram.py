"""Histogram under random differential privacy: low counts are published exactly.

A sparse table is nearly exact at a small alpha, but the promise is weaker than differential privacy: it
holds for a record and its replacement drawn at random from the population, except with probability
gamma.  A record that shares its cell with few others may be exposed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from dpcore.domain.tally import Tally
from dpcore.line.statistic import Noisy
from dpcore.mechanisms import RandomLaplace
from dpcore.releases.base import ErrorStatement
from dpcore.releases.counts.histogram import Histogram
from dpcore.releases.table import Published


@dataclass(frozen=True)
class RandomHistogram(Histogram):
    """Counts of every cell; those below ``exact_below`` are exact.

    ``exact_below``: 1, so that only empty cells are exact, or None for the most that gamma allows.
    """

    exact_below: int | None = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        self.adjacency.require_public_rows("random differential privacy")

    @cached_property
    def mechanism(self) -> RandomLaplace:  # type: ignore[override]
        return RandomLaplace.within(
            self.share, self.domain.size, self.l1_sensitivity, self.rows, self.exact_below
        )

    def in_series(self) -> None:
        """None, because some counts have no noise."""

    def promises(self, near: Tally, far: Tally) -> bool:
        """Whether every count that differs between the tables gets noise in both."""
        before, after = near.dense(), far.dense()
        differ = before != after
        least = np.minimum(before, after)[differ]
        return bool(np.all(least >= self.mechanism.exact_below))

    def publish(self, noisy: Noisy) -> Published:
        published = super().publish(noisy)
        facts = {
            **published.facts,
            "exact_below": self.mechanism.exact_below,
            "exact_counts": "Counts below exact_below were published without noise, so they and their"
            " intervals are more accurate than stated. No column marks these counts.",
        }
        return replace(published, facts=facts)

    def expected_error(self) -> tuple[ErrorStatement, ...]:
        return (
            *super().expected_error()[:2],
            ErrorStatement("counts below this are published exactly", self.mechanism.exact_below),
            ErrorStatement(
                "expected number of records in cells published exactly, at most",
                float(self.mechanism.event.exposure) * self.rows,
                "gamma times the number of records",
            ),
        )
