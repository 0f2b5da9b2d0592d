"""Abilities that only some releases have; callers test for them with ``isinstance``.

``Release`` (``base``) has the methods of every kind.  Synthetic records, functions at any point,
replicates, periods of a series and conditional guarantees are separate abilities: a class that has one
inherits from the ability's class here, or has its method.  A function here that takes a release has an
answer for every kind.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, ClassVar, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from dpcore.arrays import Floats, Integers
from dpcore.domain.axes import Bins
from dpcore.domain.domain import Domain
from dpcore.domain.series import Factor
from dpcore.domain.tally import Tally
from dpcore.line.statistic import Noisy
from dpcore.post.records.columns import RecordColumns
from dpcore.post.records.nested import Nested
from dpcore.post.records.rules import Rule
from dpcore.post.tables.margins import Attributes
from dpcore.releases.base import Release
from dpcore.releases.counts.unit import TableOfCounts
from dpcore.releases.table import Published
from dpcore.releases.tables.criteria import Criterion
from dpcore.releases.work import Work

BLOCK = 2**18
"""The number of synthetic records that are drawn, given values and written at a time."""


def blocks_of(rows: int) -> list[int]:
    """The number of rows in each block; blocks have about the same size.

    >>> blocks_of(5), blocks_of(3 * 2**18 - 1)
    ([5], [262144, 262144, 262143])
    """
    number = max(-(-rows // BLOCK), 1)
    return [(rows + i) // number for i in reversed(range(number))]


class Refining(Release):
    """A release that may say where values lie inside the bins of another release."""

    refines: ClassVar[Literal["density", "counts", "values"] | None] = None
    """How it says so: by a density, by counts in finer bins, by frequent values, or not."""

    def resolves(self, axis: Bins) -> bool:
        """Whether the release is fine enough to place values inside these bins of one of its columns."""
        return True


class Samplable(Refining):
    """A release from which synthetic records can be drawn."""

    counts_points: ClassVar[bool] = True
    """Whether records at the point masses of a column are counted, and so drawn."""

    rules: tuple[Rule, ...] = ()
    """Rules that hold in every synthetic record."""

    nested: tuple[Nested, ...] = ()
    """Groups that a column determines in every synthetic record."""

    @property
    def record_columns(self) -> RecordColumns:
        return RecordColumns.of(self.domain, self.rules, self.nested)

    @abstractmethod
    def sample(self, noisy: Noisy, rows: int) -> tuple[Domain, Integers]:
        """Codes (rows, columns) of synthetic records over the axes of the returned domain."""

    def sample_blocks(self, noisy: Noisy, rows: int) -> tuple[Domain, Iterator[Integers]]:
        """The same records in blocks of about ``BLOCK`` rows, which may take less memory."""
        domain, codes = self.sample(noisy, rows)
        return domain, iter(np.array_split(codes, len(blocks_of(rows))))

    @abstractmethod
    def supported_margin(self, noisy: Noisy, names: tuple[str, ...]) -> tuple[Floats, float] | None:
        """Noisy counts over some of the columns, which synthetic records follow, and their error.

        Returns:
            Counts (cells,), row-major, and the standard error of each (NaN where it differs from cell
            to cell or is unknown); None if the release has no joint information on these columns.
        """

    def supported_margins(
        self, noisy: Noisy, several: Sequence[tuple[str, ...]]
    ) -> Iterator[tuple[Floats, float] | None]:
        """``supported_margin`` for several sets of columns, which is faster than one by one."""
        return (self.supported_margin(noisy, names) for names in several)

    def require_memory(self, rows: int) -> None:
        """Raise ``ValueError`` if ``rows`` synthetic records need more memory than allowed."""
        return

    @property
    def follows(self) -> Mapping[str, str]:
        """For each column that another one determines in all drawn records, the determining column."""
        names = self.domain.names
        return {names[each.group]: names[each.detail] for each in self.nested}


class FitsRecords(TableOfCounts, Samplable):
    """A release of tables over ``tables`` of its columns, to which any number of records are fitted."""

    @property
    @abstractmethod
    def tables(self) -> tuple[Attributes, ...]:
        """The sets of columns that every draw measures."""

    @abstractmethod
    def total(self, noisy: Noisy) -> int:
        """The number of records: the public one, or an estimate from all tables, at least one."""

    @abstractmethod
    def fit_seconds(self, rows: int) -> float:
        """CPU seconds for fitting this number of records."""

    @property
    def model_seconds(self) -> float:
        """CPU seconds before the fit of records."""
        return 0.0


class Trained(Release):
    """A release whose exact statistic is found by a training, which takes most of a run's time."""


@runtime_checkable
class CountsUnits(Protocol):
    """A release that may count each privacy unit once, where other releases count its records."""

    counts_units: bool
    """Whether it does, as the plan is written."""


@runtime_checkable
class ColumnSearch(Protocol):
    """A search for categories or bounds that the plan leaves open."""

    needed: int
    """How many units a category or a range needs to be found with a probability of 95%."""

    def found(self, noisy: Noisy) -> Any:
        """What a draw found, as the column of the plan takes it."""
        ...


@runtime_checkable
class JudgesRecords(Protocol):
    """A release that measures synthetic records of its plan, which are made first."""

    of: str
    """The name of the synthetic table."""

    criteria: Sequence[Criterion]
    """What is measured."""

    def counting(self, source: Release, noisy: Noisy | None = None) -> Release:
        """The release with the number of rows that the source of the records measured."""
        ...

    def judging(self, records: Tally) -> Release:
        """The release with these records."""
        ...


@runtime_checkable
class Weighable(Protocol):
    """A release of counts that may sum weights instead."""

    def weighed(self, step: Fraction) -> Release:
        """This release for sums of weights, in multiples of ``step``."""
        ...


@runtime_checkable
class Repeatable(Protocol):
    """A release of counts that may be repeated in a series."""

    def in_series(self) -> TableOfCounts | None:
        """The release that each run of a series counts; None if the noises of its runs do not add up.

        Raises ``ValueError`` if the plan has to be changed first.
        """
        ...


@runtime_checkable
class ReplicableRun(Protocol):
    """A ``RunOfSeries`` whose noise has a simple joint law with that of earlier runs."""

    run: int

    def replicate_noise(
        self, noisy: Noisy, number: int, earlier: Sequence[tuple[Any, Noisy]] = ()
    ) -> Mapping[str, NDArray[np.float32]]:
        """``Replicable.replicate_noise``, with the noise of earlier runs."""
        ...


@runtime_checkable
class StatesMeans(Protocol):
    """A release of means of the last column of its domain, by the columns before it."""

    groups: int
    """The number of means."""

    def intervals(self, noisy: Noisy, level: float) -> tuple[Floats, Floats]:
        """The ends (groups,) of an interval that contains each mean in this fraction of releases."""
        ...


@runtime_checkable
class Evaluable(Protocol):
    """A release of a function that can be evaluated anywhere."""

    def evaluate(self, noisy: Noisy, points: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """The function at points, one array (k,) for each of its columns, in their own units.

        Returns:
            Columns (k,): the value under the kind's own name, ``standard_error``, and the ends of
            intervals for the value without noise.

        Raises:
            ValueError: if a column is missing, or a value is outside the range that the plan allows.
        """
        ...


@runtime_checkable
class Replicable(Protocol):
    """A release whose unbiased columns have noise of a simple joint law."""

    def replicate_noise(self, noisy: Noisy, number: int) -> Mapping[str, NDArray[np.float32]]:
        """Noise (number, rows) with the joint law of the noise in the unbiased columns of the tables.

        The keys are names of tables; tables without such a column are left out.
        """
        ...


class EstimatesDensity(Release):
    """A release of a smooth density whose total error is known from public values only."""

    @property
    @abstractmethod
    def error_parts(self) -> Mapping[str, float]:
        """The typical noise, and bounds of the approximation errors, relative to a uniform density."""

    @property
    def whole_error(self) -> float:
        """The total error, from noise and approximation."""
        return sum(self.error_parts.values())


class RunOfSeries(Release):
    """A release of one run of a series of periods; ``run``: its number, from 1; ``factor``: the weights
    of the periods in each run."""

    run: int
    factor: Factor

    @abstractmethod
    def publish(self, noisy: Noisy, earlier: Sequence[tuple[Any, Noisy]] = ()) -> Published:
        """Tables for the run's period; ``earlier``: all earlier runs and their draws, in order."""

    @property
    @abstractmethod
    def of_period(self) -> Release:
        """The release of the run's period alone; itself if the run only measures a sum over periods."""

    def drawn_of_period(self, noisy: Noisy) -> Noisy:
        """A draw of this release, converted to a draw of ``of_period``."""
        return noisy


def of_period(release: Release) -> Release:
    """The release that records and models are made from: itself, or one period of a series."""
    return release.of_period if isinstance(release, RunOfSeries) else release


def drawn_of_period(release: Release, noisy: Noisy) -> Noisy:
    """A draw of a release, converted to a draw of ``of_period``."""
    return release.drawn_of_period(noisy) if isinstance(release, RunOfSeries) else noisy


@runtime_checkable
class DrawsSetting(Protocol):
    """A release with a setting that is drawn from the records first; ``setting``: its name, in words."""

    setting: str


@runtime_checkable
class StoredInPart(Protocol):
    """A release that needs only a part of a draw to publish."""

    def stored_part(self, noisy: Noisy) -> Noisy:
        """The part of a draw that is stored."""
        ...


class Prepared(Release):
    """A release whose mechanism computes on a table for a noticeable time before it draws."""

    @property
    @abstractmethod
    def preparation(self) -> Work:
        """The time and memory of these computations."""

    @property
    def work(self) -> Work:
        return super().work + self.preparation


@runtime_checkable
class Conditional(Protocol):
    """A release whose guarantee holds for some neighbours only, as in random differential privacy."""

    def promises(self, near: Tally, far: Tally) -> bool:
        """Whether the guarantee holds for these neighbours."""
        ...


def promised(release: Release, near: Tally, far: Tally) -> bool:
    """Whether the release's guarantee holds for these neighbours: always, unless ``Conditional``."""
    return not isinstance(release, Conditional) or release.promises(near, far)
