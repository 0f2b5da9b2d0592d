"""Contingency margins: measured tables, and records that are fitted to all of them."""

from __future__ import annotations

from dataclasses import dataclass

from dpcore.line.statistic import Noisy
from dpcore.post.records.columns import RecordColumns
from dpcore.post.records.weighted import WeightedRecords, fit_weighted
from dpcore.releases.base import post_processing_generator
from dpcore.releases.tables.fitted import FittedTables


@dataclass(frozen=True)
class MarginTables(FittedTables):
    """Count tables, and records that follow all tables at once."""

    def fit(self, noisy: Noisy, rows: int) -> WeightedRecords:
        return fit_weighted(
            # Without the columns' order, because only ``Microdata`` follows correlations.
            RecordColumns(self.domain.shape),
            self.noisy_margins(noisy),
            rows,
            post_processing_generator(noisy),
            total=self.total(noisy),
        )
