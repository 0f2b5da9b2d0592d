"""The width of the shortest interval that holds half of the records: a spread that outliers leave alone.

For a normal distribution it is 1.349 standard deviations, like the interquartile range; unlike it, it
also describes skewed columns, whose middle half lies elsewhere (Rousseeuw & Leroy 1987, section 4.4).

**Lemma.**  Let c(w) be the most records in any w neighbouring cells of the public grid.  A width scores
by how many records c(w) misses ceil(n/2).  Replacing a record moves the count of each window by at most
1, so it moves their maximum c(w), and the score, by at most 1.  QED

The exponential mechanism chooses a width (``dpcore.mechanisms.exponential``, which proves its price).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np
from pydantic import StrictStr

from dpcore.accounting.budget import Budget
from dpcore.domain.axes import Grid
from dpcore.domain.tally import Tally
from dpcore.line.statistic import Exact, Noisy
from dpcore.mechanisms import ExponentialMechanism
from dpcore.releases.base import ErrorStatement, Release
from dpcore.releases.table import LEVEL, Published, Table, TableColumn, Uncertainty, one_row
from schemas.releases.base import ReleaseSection, SurveyFacts, declared, domain_of


@dataclass(frozen=True)
class ShortestHalf(Release):
    """Of one numeric column without nulls; the number of records is public."""

    def __post_init__(self) -> None:
        (axis,) = self.domain.axes
        if not isinstance(axis, Grid) or axis.nullable:
            raise ValueError(f"column: {axis.name} must be numeric and without nulls")
        self.adjacency.require_public_rows("shortest-half")
        super().__post_init__()

    @cached_property
    def mechanism(self) -> ExponentialMechanism:
        return ExponentialMechanism.within(self.share, 1, self.domain.size, Fraction(1))

    @property
    def largest_statistic(self) -> int:
        return self.most_rows

    def statistic(self, tally: Tally) -> Exact:
        below = np.concatenate([[0], np.cumsum(tally.dense())])
        widths = range(1, self.domain.size + 1)
        most = np.array([(below[width:] - below[:-width]).max() for width in widths])
        return Exact(np.abs(most - math.ceil(self.rows / 2)))

    @cached_property
    def missed(self) -> float:
        """The most records by which the chosen width misses half of them, with probability LEVEL.

        Some width scores at most half the records of the fullest cell, here taken as 0; a width that
        scores s more has weight exp(-s/scale) beside it, and there are ``domain.size`` of them.
        """
        return float(self.mechanism.scale) * math.log(self.domain.size / (1 - LEVEL))

    def publish(self, noisy: Noisy) -> Published:
        (axis,) = self.domain.axes
        assert isinstance(axis, Grid)
        width = (int(noisy.values[0]) + 1) * (axis.upper - axis.lower) / axis.cells
        statement = (
            f"With probability 90% the fullest interval of this width holds half of the records, give or"
            f" take {self.missed:.3g} and half of those in the fullest cell."
        )
        meaning = f"Width of the shortest interval of {axis.name} that holds half of the records"
        columns: list[TableColumn] = [one_row("width", width, meaning)]
        table = Table(
            "tables", self.name, columns, (Uncertainty("width", None, None, "exact", statement),)
        )
        return Published((table,), {"rows": self.rows})

    def expected_error(self) -> tuple[ErrorStatement, ...]:
        share = f"{self.missed / self.rows:.1%} of all records"
        return (ErrorStatement("90% bound of the records missed", self.missed, share),)


class ShortestHalfSection(ReleaseSection):
    """The width of the shortest interval that holds half of the records."""

    words: ClassVar[str] = "Shortest half"
    kind: Literal["shortest-half"]
    column: StrictStr
    mechanism: Literal["exponential"] = "exponential"

    def build(self, survey: SurveyFacts, share: Budget) -> Release:
        if survey.weights:
            raise ValueError("kind: counts every record once, but the plan states weights")
        axis = declared(survey.columns, self.column, "column").axis(self.column)
        return ShortestHalf(
            self.name, domain_of([axis]), survey.rows, share, adjacency=survey.adjacency
        )

    @property
    def subject(self) -> str:
        return self.column
