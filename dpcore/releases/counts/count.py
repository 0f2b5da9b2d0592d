"""How many records satisfy a condition on one column.

Replacing a record changes a count by at most one, and so does adding or removing a record.

    Count   discrete Laplace noise, and the best answer to it for a public prior and loss: among all
            alpha-DP mechanisms it has the least expected loss
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dpcore.domain.tally import Tally
from dpcore.line.statistic import Exact, Noisy
from dpcore.mechanisms import DiscreteLaplace
from dpcore.releases.base import ErrorStatement, Release
from dpcore.releases.counts.best_answer import CountLoss, best_answer
from dpcore.releases.counts.unit import RECORDS
from dpcore.releases.replicates import drawn_again, replicate_generator
from dpcore.releases.table import (
    ENDS,
    LEVEL,
    Published,
    Table,
    TableColumn,
    Uncertainty,
    error_column,
    exact_interval,
    one_row,
)

PENALTIES = {
    "absolute": "absolute error",
    "squared": "squared error",
    "zero-one": "zero-one loss (the probability of an answer that is not exact)",
}
AT_LEAST = "The interval contains the exact count with probability at least 90%, for any count."


@dataclass(frozen=True)
class SingleCount(Release):
    """One count; ``counted``: the cells of the single column whose records are counted, some but not
    all; ``what``: the counted records in words.
    """

    counted: tuple[int, ...] = ()
    loss: CountLoss = "absolute"
    what: str = field(default="records that satisfy the condition", kw_only=True)

    chart = "number"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < len(set(self.counted)) < self.domain.size:
            raise ValueError("condition: must be true for some values of the column, not for all")

    @property
    def largest_statistic(self) -> int:
        return self.most_rows

    def number_counted(self, tally: Tally) -> int:
        """How many records satisfy the condition: private."""
        return int(tally.counts[np.isin(tally.cells, self.counted)].sum())

    def statistic(self, tally: Tally) -> Exact:
        return Exact(np.array([self.number_counted(tally)], dtype=np.int64))

    @property
    @abstractmethod
    def answer(self) -> str:
        """The meaning of the column ``count``, in words."""

    def published(
        self, columns: list[TableColumn], uncertainty: tuple[Uncertainty, ...]
    ) -> Published:
        """A table with one row."""
        table = Table("tables", self.name, columns, uncertainty)
        return Published((table,), {"rows": self.rows} if self.adjacency.public_rows else {})


@dataclass(frozen=True)
class Count(SingleCount):
    """The best answer to a noisy count; ``proportion``: of a binomial prior, or None for a uniform
    one."""

    proportion: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.proportion is not None and not 0 < self.proportion < 1:
            raise ValueError("prior: a proportion must lie strictly between 0 and 1")
        self._answer(0)  # refuses a prior with too many likely counts

    @cached_property
    def mechanism(self) -> DiscreteLaplace:
        sensitivity = self.adjacency.sensitivity(moved=Fraction(1), present=Fraction(1))
        return DiscreteLaplace.within(self.share, 1, sensitivity)

    @property
    def answer(self) -> str:
        prior = f"each of {self.rows:,} records is counted with probability {self.proportion}"
        if self.proportion is None:
            prior = f"every count from 0 to {self.most_rows:,} is equally likely"
        return (
            f"Number of {self.what}: the answer with the smallest expected {PENALTIES[self.loss]};"
            f" prior: {prior}"
        )

    def _answer(self, noisy_count: int) -> int:
        scale = float(self.mechanism.scale)
        most = self.most_rows if self.proportion is None else self.rows
        return best_answer(noisy_count, most, scale, self.loss, self.proportion)

    def publish(self, noisy: Noisy) -> Published:
        noisy_count = int(noisy.values[0])
        (lower,), (upper,) = exact_interval(noisy.values, self.mechanism.half_width, self.most_rows)
        columns = [
            TableColumn(
                "noisy_count",
                noisy.values,
                f"Number of {self.what}, plus noise of mean zero; may be negative",
            ),
            error_column(np.array([self.mechanism.stddev]), "noisy_count"),
            *RECORDS.interval(np.array([math.ceil(lower)]), np.array([math.floor(upper)])),
            one_row("count", self._answer(noisy_count), self.answer),
        ]
        uncertainty = (
            Uncertainty("noisy_count", "standard_error", ENDS, "exact", AT_LEAST),
            Uncertainty(
                "count", None, ENDS, "exact", f"{AT_LEAST} The interval is made from noisy_count."
            ),
        )
        return self.published(columns, uncertainty)

    def replicate_noise(self, noisy: Noisy, number: int) -> Mapping[str, NDArray[np.float32]]:
        generator = replicate_generator(noisy)
        return {self.name: drawn_again(lambda: self.mechanism.simulate(1, generator), number)}

    def expected_error(self) -> tuple[ErrorStatement, ...]:
        rate = 1 / float(self.mechanism.scale)
        noise = {
            "absolute": self.mechanism.mean_absolute,
            "squared": self.mechanism.stddev**2,
            "zero-one": 2 / (math.exp(rate) + 1) if rate < 700 else 0.0,
        }[self.loss]
        return (
            ErrorStatement(f"expected {self.loss} loss, at most", noise, "the loss of noisy_count"),
            ErrorStatement(
                "90% interval of the count: plus or minus", self.mechanism.half_width(LEVEL)
            ),
        )
