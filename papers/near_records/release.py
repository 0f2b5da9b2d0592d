"""Synthetic records of one column that are near the exact ones: the draw is the release.

    NearRecords    by the distance of their distribution functions (Kolmogorov and Smirnov)
    NearSeries     by the integrated squared distance of their cosine series of a few terms
    NearMean       a single one, by its distance from their mean

All are drawn by the exponential mechanism, exactly (``paths``, ``tilted``, ``sampling.choice``).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np

from dpcore.arrays import Floats, Integers
from dpcore.domain.axes import Bins, Grid
from dpcore.domain.domain import Domain
from dpcore.domain.tally import Tally
from dpcore.line.statistic import Exact, Noisy
from dpcore.mechanisms import ExponentialMechanism
from dpcore.post.tables.simplex import round_to_total
from dpcore.releases.abilities import Prepared, Samplable
from dpcore.releases.base import ErrorStatement, post_processing_generator
from dpcore.releases.counts.cells import describe_cells
from dpcore.releases.numbers.mean import numeric_axis
from dpcore.releases.table import LEVEL, Published, Table, TableColumn, Uncertainty
from dpcore.releases.work import Work
from papers.near_records.by_distribution import PRODUCT, NearRecordsMechanism
from papers.near_records.by_series import BITS, NearMeansMechanism


@dataclass(frozen=True)
class NearRecordsRelease(Samplable):
    """``draws`` records over the cells of one numeric column."""

    draws: int

    chart = "cumulative"
    statistics = ("drawn",)
    distance_fact: ClassVar[str] = "distance_90"

    bounded: ClassVar[str]
    """Words for the quantity that ``distance`` bounds."""

    holds: ClassVar[str]
    """Words for the conditions under which the bound holds."""

    def __post_init__(self) -> None:
        (axis,) = self.domain.axes
        if not isinstance(axis, Bins | Grid) or axis.nullable:
            raise ValueError(f"column: {axis.name} must be numeric and without nulls")
        self.adjacency.require_public_rows("near-records")
        super().__post_init__()

    @property
    @abstractmethod
    def distance(self) -> float:
        """An upper bound for the distance of drawn from exact records, with probability LEVEL."""

    @property
    @abstractmethod
    def statement(self) -> str:
        """A sentence on the meaning of the distance."""

    def publish(self, noisy: Noisy) -> Published:
        drawn = TableColumn("drawn", self.drawn(noisy), "Synthetic records drawn in the cell")
        table = Table(
            "tables",
            self.name,
            [*describe_cells(self.domain), drawn],
            (Uncertainty("drawn", None, None, "exact", self.statement),),
        )
        return Published((table,), {"draws": self.draws, self.distance_fact: self.distance})

    def drawn(self, noisy: Noisy) -> Integers:
        """The number of records drawn in each cell, (cells,)."""
        return noisy.values

    def expected_error(self) -> tuple[ErrorStatement, ...]:
        return (ErrorStatement(f"90% bound of the {self.bounded}", self.distance, self.holds),)

    def supported_margin(self, noisy: Noisy, names: tuple[str, ...]) -> tuple[Floats, float] | None:
        return np.asarray(self.drawn(noisy) * (self.rows / self.draws)), math.nan

    def sample(self, noisy: Noisy, rows: int) -> tuple[Domain, Integers]:
        """The drawn records, or ``rows`` records in proportion to them."""
        cells = np.repeat(np.arange(self.domain.size), round_to_total(self.drawn(noisy), rows))
        return self.domain, self.domain.unpack(post_processing_generator(noisy).permutation(cells))


@dataclass(frozen=True)
class NearRecords(Prepared, NearRecordsRelease):
    """Records drawn by their Kolmogorov-Smirnov distance from the private ones."""

    bounded = "Kolmogorov-Smirnov distance at ends of bins"
    holds = "between the synthetic records and the exact ones, whatever the data"

    @cached_property
    def mechanism(self) -> NearRecordsMechanism:
        return NearRecordsMechanism.within(self.share, self.domain.size, self.rows, self.draws)

    @property
    def preparation(self) -> Work:
        return Work(PRODUCT * self.mechanism.products(self.mechanism.levels(self.rows)))

    @property
    def largest_statistic(self) -> int:
        return self.most_rows

    def statistic(self, tally: Tally) -> Exact:
        return Exact(tally.dense())

    @cached_property
    def distance(self) -> float:
        """An upper bound on the distance at bin ends, with probability LEVEL, whatever the data.

        Rounding the cumulative counts gives a sequence within 1/(2 draws).  All sequences whose score is
        larger by s have a total weight of at most cells^draws exp(-s/scale) times its weight.
        """
        beyond = self.draws * math.log(self.domain.size) - math.log(1 - LEVEL)
        score = self.rows / (2 * self.draws) + float(self.mechanism.scale) * beyond
        return min((score + 1) / self.rows, 1.0)

    @property
    def statement(self) -> str:
        return (
            "With probability 90%, the share of synthetic records up to the end of a cell differs by at"
            f" most {self.distance:.3g} from the share of exact records, for all cells at once."
        )


@dataclass(frozen=True)
class NearSeries(NearRecordsRelease):
    """Records drawn by the distance of their first ``terms`` cosine coefficients from private ones."""

    terms: int = 1

    distance_fact = "squared_series_distance_90"
    bounded = "integrated squared distance of the series"
    holds = "between synthetic and exact records, if no cell has more than twice an even share"

    @cached_property
    def mechanism(self) -> NearMeansMechanism:
        cells = self.domain.size
        return NearMeansMechanism.within(self.share, cells, self.terms, self.rows, self.draws)

    @property
    def largest_statistic(self) -> int:
        return self.most_rows * math.ceil(math.ldexp(math.sqrt(2), BITS))

    def statistic(self, tally: Tally) -> Exact:
        return Exact(tally.counts @ self.mechanism.features[tally.cells])

    @cached_property
    def distance(self) -> float:
        """The bound on the integrated squared distance, if no cell has more than twice an even share.

        Let z be drawn from the records themselves.  Its score E is 2 terms / draws on average, and it is
        at most 2^draws times likelier than under even draws.  So the total weight is at least (2^-draws
        cells^draws) exp(-E/scale) on average (Jensen), and scores of at least s weigh at most
        cells^draws exp(-s/scale).
        """
        scale = float(self.mechanism.scale) / 4.0**BITS
        beyond = self.draws * math.log(2) - math.log(1 - LEVEL)
        largest = float(self.mechanism.l2_sensitivity_squared) / 4.0**BITS
        return min(2 * self.terms / self.draws + scale * beyond, largest)

    @property
    def statement(self) -> str:
        return (
            "With probability 90%, the integrated squared difference between the cosine series"
            f" ({self.terms} terms) of synthetic and of exact records is at most {self.distance:.3g}, if"
            " no cell has more than twice an even share of the exact records. Often it is far less."
        )


@dataclass(frozen=True)
class NearMean(NearRecordsRelease):
    """A single cell of the column's grid, drawn by n times the distance of its code from the mean code;
    more records would be no nearer (Wasserman & Zhou 2010, section 5.2)."""

    draws: int = 1

    distance_fact = "mean_distance_90"
    holds = "whatever the data; a release of kind mean has about two fifths of this error"

    def __post_init__(self) -> None:
        super().__post_init__()
        numeric_axis(self.domain)
        if self.draws != 1:
            raise ValueError(
                "draws: must be 1 with mean-exponential; more are no nearer to the mean"
            )

    @property
    def _largest_move(self) -> int:
        """The largest change of a sum of codes, and so of every score, when a record is replaced."""
        return max(self.domain.size - 1, 1)

    @cached_property
    def mechanism(self) -> ExponentialMechanism:
        return ExponentialMechanism.within(
            self.share, 1, self.domain.size, Fraction(self._largest_move)
        )

    @property
    def largest_statistic(self) -> int:
        return self.most_rows * self._largest_move

    def statistic(self, tally: Tally) -> Exact:
        codes = np.arange(self.domain.size, dtype=np.int64)
        far = np.abs(int(tally.counts @ tally.cells) - self.rows * codes)
        return Exact(np.minimum(far, self.largest_statistic))

    def drawn(self, noisy: Noisy) -> Integers:
        return np.bincount(noisy.values, minlength=self.domain.size)

    @cached_property
    def distance(self) -> float:
        """An upper bound on the distance in units of the column, with probability LEVEL.

        The nearest cell is within half a step of the mean.  With r = exp(-n/scale), cells at least t
        steps away weigh at most r^t (1 + r + r^2 + ...) on either side.  All cells on the longer side
        weigh at least r^(1/2) times a sum of no fewer of these terms.  So the chance is at most
        2 r^(t - 1/2).
        """
        steps = float(self.mechanism.scale) / self.rows * math.log(2 / (1 - LEVEL)) + 0.5
        grid = numeric_axis(self.domain)
        return min(steps, float(self._largest_move)) * (grid.upper - grid.lower) / grid.cells

    @property
    def statement(self) -> str:
        return (
            f"With probability 90% the middle of the cell lies within {self.distance:.3g} of the mean of"
            " the exact records."
        )

    @property
    def bounded(self) -> str:  # type: ignore[override]
        return f"distance of the drawn {self.domain.names[0]} from the mean"
