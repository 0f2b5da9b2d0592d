"""The categories of a column without a known list: texts that enough units have.

The texts of the column are counted, with one record per unit, over the domain of all texts
(``dpcore.domain.texts``).  A text is found if its noisy count exceeds the threshold
(``mechanisms.stability``); a text of a single unit is found with probability at most beta.

A unit counts once, whatever its other records are, and not at all if it has no text.  So between
neighbours one record moves to another cell, or is added or removed: that mechanism's sensitivities for
units of one record apply.

Which of the found texts are categories of the plan is post-processing (``schemas.survey.found``).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpcore.domain.axes import Categories
from dpcore.domain.domain import Domain
from dpcore.domain.tally import Tally
from dpcore.domain.texts import texts_at
from dpcore.line.statistic import Exact, Noisy
from dpcore.mechanisms import StabilityLaplace
from dpcore.post.tables.passing import passed_error, passed_interval
from dpcore.releases.base import ErrorStatement, Release
from dpcore.releases.table import (
    ENDS,
    LEVEL,
    Published,
    Table,
    TableColumn,
    Uncertainty,
    interval_columns,
)
from dpcore.releases.work import Work, publishing

FOUND = 0.95
"""The probability of finding a category that has the stated number of units."""


@dataclass(frozen=True)
class FoundCategories(Release):
    """Texts of ``column`` that enough units have; ``categories``: taken from a draw by the plan, or
    equally many placeholders before the draw."""

    column: str = ""
    categories: tuple[str, ...] = ()

    chart = "cells"
    statistics = ("noisy_count", "standard_error", *ENDS)
    counts_units = True
    finer = "a larger share of the budget, or a larger beta"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.adjacency.most > 1:
            raise ValueError(
                "mechanism: categories are found with one record per unit, but here a unit may have"
                f" {self.adjacency.most}"
            )

    @cached_property
    def mechanism(self) -> StabilityLaplace:
        domain = self.domain
        return StabilityLaplace.within(self.share, domain.size, self.adjacency, domain.words)

    @property
    def domains(self) -> tuple[Domain, ...]:
        return (Domain((Categories(self.column, self.categories),)),)

    @property
    def largest_statistic(self) -> int:
        return self.most_rows

    @property
    def work(self) -> Work:
        return publishing(len(self.categories))

    def statistic(self, tally: Tally) -> Exact:
        return Exact(tally.counts, tally.cells)

    def found(self, noisy: Noisy) -> dict[str, int]:
        """The texts above the threshold with their noisy counts, in the order of their cells."""
        assert noisy.cells is not None
        texts = texts_at(self.domain.unpack(noisy.cells))
        return dict(zip(texts, noisy.values.tolist(), strict=True))

    @property
    def needed(self) -> int:
        """How many units a category needs to be found with probability at least ``FOUND``."""
        # The noise is below minus this half-width with a probability of at most 1 - FOUND.
        return self.mechanism.threshold + 1 + int(self.mechanism.half_width(2 * FOUND - 1))

    def publish(self, noisy: Noisy) -> Published:
        found, mechanism = self.found(noisy), self.mechanism
        texts = np.array([text for text in self.categories if text in found], dtype=str)
        counts = np.array([found[text] for text in texts.tolist()], dtype=np.int64)
        scale, threshold = float(mechanism.scale), mechanism.threshold
        counted, given = "the number of units with a record counted here", "given that it was found"
        table = Table(
            "tables",
            self.name,
            [
                TableColumn(self.column, texts, f"Category of {self.column}", self.column),
                TableColumn("noisy_count", counts, f"{counted.capitalize()}, plus noise"),
                TableColumn(
                    "standard_error",
                    passed_error(scale, threshold, counts),
                    f"Root mean squared error of noisy_count, {given}",
                ),
                *interval_columns(*passed_interval(scale, threshold, counts, LEVEL), counted),
            ],
            (
                Uncertainty(
                    "noisy_count",
                    "standard_error",
                    ENDS,
                    "exact",
                    f"The interval contains the exact count with probability 90%, {given}. The standard"
                    " error is an average over all exact counts that could give the noisy one.",
                ),
            ),
        )
        return Published(
            (table,),
            {
                "threshold": threshold,
                "categories": len(texts),
                "found_with_95_percent_from": self.needed,
                "left_out": "Records with another text are counted in the last category of the column.",
            },
        )

    def expected_error(self) -> tuple[ErrorStatement, ...]:
        needed = f"number of units at which a category is found with probability {FOUND:.0%}"
        return (
            ErrorStatement(needed, self.needed, "only one record of each unit is counted"),
            ErrorStatement("standard error of a count", self.mechanism.stddev, "noise"),
        )
