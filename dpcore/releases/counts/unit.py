"""The unit of counts: records, or survey weights in steps.

A weighted record counts as a whole number of steps, from none to the largest weight; the tally of a
weighted release counts steps.  Mechanism and post-processing treat steps like records, with the
sensitivity of a unit that has as many records as it has steps; only published numbers are multiplied by
the step:

    weight 1.4, step 1/2  --engine-->  3 steps  --privacy line, post-processing-->  3 * 1/2
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from dpcore.accounting.budget import decimal_text
from dpcore.arrays import Floats, Integers
from dpcore.line.statistic import Noisy
from dpcore.post.tables.consistency import Agreement
from dpcore.post.tables.margins import Margin
from dpcore.releases.base import Release
from dpcore.releases.table import (
    COUNT_ENDS,
    ENDS,
    TableColumn,
    Uncertainty,
    error_column,
    interval_columns,
)


@dataclass(frozen=True)
class Unit:
    """The unit of a count, for its columns and descriptions.  ``step``: the weight of one step."""

    weighted: bool = False
    step: Fraction = Fraction(1)

    @property
    def things(self) -> str:
        return "weights" if self.weighted else "records"

    @property
    def number(self) -> str:
        """The word for one number, after an article: a count, an exact count."""
        return "sum of weights" if self.weighted else "count"

    @property
    def numbers(self) -> str:
        return "sums of weights" if self.weighted else "counts"

    @property
    def amount(self) -> str:
        """The phrase for one number at the beginning of a description."""
        return "Sum of weights" if self.weighted else "Count of records"

    @property
    def whole(self) -> str:
        """The word for an exact value, in the singular."""
        return "whole number" if self.step == 1 else f"multiple of {decimal_text(self.step)}"

    def scaled(self, steps: Any) -> Any:
        """Convert steps into published numbers; whole weights stay whole numbers."""
        whole = self.step.denominator == 1
        return steps * (self.step.numerator if whole else float(self.step))

    def column(self, name: str, steps: NDArray[Any], description: str) -> TableColumn:
        """A column of counts, or of their errors."""
        return TableColumn(name, self.scaled(steps), description)

    def noisy_columns(self, steps: Integers, stddev: float, note: str) -> list[TableColumn]:
        """Columns ``noisy_count`` (k,), with noise of mean zero, and its standard error."""
        noisy = f"{self.amount} plus noise of mean zero{note}"
        return [
            self.column("noisy_count", steps, noisy),
            error_column(self.scaled(np.full(len(steps), stddev)), "noisy_count"),
        ]

    def interval(
        self, lower: Floats | Integers, upper: Floats | Integers, note: str = ""
    ) -> list[TableColumn]:
        """Columns with the ends of 90% intervals for exact counts."""
        of = f"the exact {self.number}{note}"
        return interval_columns(self.scaled(lower), self.scaled(upper), of)

    def estimate_columns(
        self,
        estimates: Floats,
        errors: Floats,
        ends: tuple[Floats, Floats],
        meaning: str,
    ) -> list[TableColumn]:
        """Columns ``estimate`` (k,), unbiased, its standard error and the ends of its intervals."""
        about = "Standard deviation of the noise left in estimate"
        return [
            self.column("estimate", estimates, f"{self.amount}{meaning}"),
            self.column("standard_error", errors, about),
            *self.interval(*ends, " (normal)"),
        ]

    def count_columns(
        self,
        counts: Integers,
        errors: Floats,
        ends: tuple[Floats, Floats],
        most: int,
        meaning: str,
    ) -> list[TableColumn]:
        """Columns ``count`` (k,), its error and the ends of intervals, rounded outwards."""
        lower, upper = np.floor(ends[0]), np.ceil(ends[1])
        first, last = (
            self.scaled(np.clip(end, 0, most).astype(np.int64)) for end in (lower, upper)
        )
        of = (
            f"the exact {self.number}, around count; shorter than the interval of estimate if count is"
            " small"
        )
        return [
            self.column("count", counts, meaning),
            self.column(
                "count_standard_error", errors, "Root mean squared error of count, simulated"
            ),
            *interval_columns(first, last, of, COUNT_ENDS),
        ]


RECORDS = Unit()

BEST = ("best_estimate", "best_standard_error", "best_lower_90", "best_upper_90")
"""The columns with the joint estimate from all releases of a bundle."""

OF_COUNTS = (
    *("noisy_count", "standard_error", *ENDS),
    *("count", "count_standard_error", *COUNT_ENDS),
)
"""The possible columns of tables of counts."""


def estimate_uncertainty(unit: Unit) -> Uncertainty:
    """The statement of how the error and the interval of ``estimate`` are computed."""
    return Uncertainty(
        "estimate",
        "standard_error",
        ENDS,
        "normal",
        "The variance of adjusted estimates is exact. The interval is normal and cut to the possible"
        f" {unit.numbers}; it is not empty even if estimate is negative.",
    )


def count_uncertainty(unbiased: str, unit: Unit, more: str = "") -> Uncertainty:
    """The statement of how the error and the interval of ``count`` are computed."""
    return Uncertainty(
        "count",
        "count_standard_error",
        COUNT_ENDS,
        "simulated",
        "The standard error is simulated: noise and post-processing are repeated on the published"
        f" {unit.numbers}, and errors are pooled over cells of about the same size. The interval inverts"
        f" this simulation. If an end of the interval of {unbiased} is far from count, or count is not"
        " near zero, the interval extends to that end. If count is above two standard deviations of the"
        f" noise, or the release has few cells, it equals the interval of {unbiased}. The coverage is"
        " approximate: larger than stated for small cells, and slightly smaller for other cells that"
        f" look empty because of large noise.{more}",
    )


@dataclass(frozen=True, eq=False)
class AsMeasured:
    """A release whose tables agree, with its draw.

    ``groups``: for columns that were measured in merged cells, by position: the merged cell of each of
    their cells.  ``alone``: the one-way table of each merged column in its own cells, if it was drawn.
    """

    release: TableOfCounts
    noisy: Noisy | None
    groups: Mapping[int, Integers] = field(default_factory=dict)
    alone: Mapping[int, Margin] = field(default_factory=dict)

    def agreement(self) -> Agreement | None:
        """The agreement of the draw; before there is a draw, the agreement of a draw of zeros."""
        if self.noisy is None:
            return self.release.of_nothing
        return self.release.agreement(self.noisy)


@dataclass(frozen=True)
class TableOfCounts(Release):
    """A release of counts of records, or of sums of their weights.

    ``step``: the weight of one step of the tally.  If weights are counted, ``rows`` is the public scale
    of their sum, in steps.
    """

    step: Fraction = field(default=Fraction(1), kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.step != 1 and not self.adjacency.weighted:
            raise ValueError("adjacency: must be weighted if step is not 1")

    @property
    def largest_statistic(self) -> int:
        return self.most_rows

    @property
    def unit(self) -> Unit:
        return Unit(self.adjacency.weighted, self.step)

    @property
    def weight_facts(self) -> dict[str, object]:
        """Facts for the manifest if weights are counted."""
        return {"step": str(self.step)} if self.adjacency.weighted else {}

    def noise_alone(self, generator: np.random.Generator) -> Noisy:
        """A draw of the noise only, from an ordinary generator, for replicates."""
        return Noisy(self.mechanism.simulate(self.mechanism.size, generator))

    @cached_property
    def of_nothing(self) -> Agreement | None:
        """The agreement of a draw of zeros, with the variances of every draw; None if there is none."""
        return self.agreement(Noisy(np.zeros(self.mechanism.size, dtype=np.int64)))

    def as_measured(self, noisy: Noisy | None) -> AsMeasured:
        """The release as it was measured in this draw (or before a draw): itself, unless noisy counts
        decided which cells were merged."""
        return AsMeasured(self, noisy)

    def as_supposed(self, shares: Mapping[str, Floats]) -> AsMeasured:
        """The release as it would be measured if the columns' cells had these shares of records."""
        return self.as_measured(None)

    def weighed(self, step: Fraction) -> Self:
        """This release for sums of weights, in multiples of ``step``."""
        return replace(self, step=step)

    def sum_variance(self, weights: Mapping[str, Floats]) -> float:
        """The exact variance of the noise in a weighted sum of unbiased counts, from public values.

        Args:
            weights: one weight for each row of a table, by the name of the table.

        Raises:
            ValueError: if the release's numbers cannot be added up.
        """
        raise ValueError(f"{self.name}: the numbers of this release cannot be added up")

    def agreement(self, noisy: Noisy) -> Agreement | None:
        """The measured counts over ``domain``, in a form that can be combined with other releases.

        None unless the numbers are sums of cells with independent noise of known variance.
        """
        return None

    def scaled_margin(self, steps: Floats, stddev: float) -> tuple[Floats, float]:
        """A supported margin and its error, in published numbers."""
        return self.unit.scaled(steps), self.unit.scaled(stddev)


def tables_of_counts(releases: Mapping[str, Release]) -> dict[str, TableOfCounts]:
    """The releases of counts among several, by name."""
    return {name: each for name, each in releases.items() if isinstance(each, TableOfCounts)}
