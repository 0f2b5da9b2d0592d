"""Values that many records share, and the roundness of the other values.

People round, and some numbers only look continuous: an income of 50,000 is a hundred times as common
as 50,137, and if there are five districts, their densities have five values.  Bins show neither.  So
each column is counted in two tables:

    all multiples of its step              only counts above all likely noise are published
    powers of ten x degrees of roundness   all counts: how many incomes from 10,000 to 99,999 are
                                           multiples of 10,000, how many others of 5,000, ...

**Lemma.**  A record adds 1 to one cell of the first table and to at most one of the second, and
replacing it changes two cells of each.  So for k columns the squared L2 norm changes by at most 2k, or
4k.

**Published values.**  With half-width t of the noise at level 1 - 0.1/K for one of K cells, all K noisy
counts are within t of the exact ones with a probability of at least 90% (union bound).  Counts above t
are published with the interval +- t, so all intervals are right at once, although the values were
selected; in particular, with that probability each published value has a record.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from dpcore.arrays import Floats, Integers
from dpcore.domain.axes import Axis
from dpcore.domain.domain import Domain
from dpcore.domain.step_values import Roundness, StepValues
from dpcore.domain.tally import Tally
from dpcore.domain.words import summed
from dpcore.line.statistic import Exact, Noisy
from dpcore.mechanisms import DiscreteGaussian
from dpcore.post.records.shrinkage import kept_beside
from dpcore.releases.abilities import Refining
from dpcore.releases.base import LARGEST_STATISTIC, ErrorStatement
from dpcore.releases.counts.unit import RECORDS
from dpcore.releases.table import (
    ENDS,
    LEVEL,
    Published,
    Table,
    TableColumn,
    Uncertainty,
    exact_interval,
)
from dpcore.releases.tables.names import dotted_name
from dpcore.releases.work import Work

MOST_VALUES = 2**21
"""The most values of all columns together."""

VALUE, VALUE_BYTES = 1e-6, 64
"""CPU seconds and bytes for each value."""

ROUNDNESS = ("size_from", "size_to", "multiple_of", "values")


@dataclass(frozen=True)
class Heaping(Refining):
    """Values of columns that many records share, and how round other values are."""

    values: tuple[StepValues, ...] = ()

    chart = "values"
    refines = "values"
    statistics = (*ROUNDNESS, "noisy_count", "standard_error", *ENDS)
    finer = "fewer columns"

    def __post_init__(self) -> None:
        for column in self.values:
            if column.axis.cells < 2:
                raise ValueError(
                    f"columns: {column.axis.name!r} has fewer than two multiples of its step; leave it"
                    " out"
                )
        if sum(column.axis.cells for column in self.values) > MOST_VALUES:
            raise ValueError(
                f"columns: have more than {MOST_VALUES:,} different values, and no round number is a"
                " multiple of their `step`; leave some out, or state narrower bounds"
            )
        super().__post_init__()

    @property
    def largest_statistic(self) -> int:
        return self.most_rows

    @cached_property
    def mechanism(self) -> DiscreteGaussian:
        tables = 2 * len(self.values)
        squared = self.adjacency.squared(moved=Fraction(2 * tables), present=Fraction(tables))
        return DiscreteGaussian.within(self.share, sum(self._sizes), squared)

    @cached_property
    def _sizes(self) -> list[int]:
        """The number of cells of each table: for each column its values, then its classes."""
        of = ((each.axis.cells, len(each.roundness.power)) for each in self.values)
        return [size for both in of for size in both]

    @property
    def work(self) -> Work:
        """The work: noise is drawn for all values, although few of them are published."""
        return Work(VALUE * sum(self._sizes), VALUE_BYTES * sum(self._sizes))

    def statistic(self, tally: Tally) -> Exact:
        tables = []
        for column in self.values:
            # Null is the cell after these, and counts in no table.
            counts = tally.margin((column.axis.name,))[: column.axis.cells]
            kinds = column.roundness
            tables += [counts, _by_class(kinds, kinds.of, counts)]
        return Exact(np.concatenate(tables))

    @property
    def domains(self) -> tuple[Domain, ...]:
        return tuple(Domain((column.axis,)) for column in self.values)

    def table_name(self, domain: Domain) -> str:
        return dotted_name(self.name, domain)

    def published_names(self, axis: Axis) -> tuple[str, ...]:
        return (axis.name,)

    def threshold(self, column: StepValues) -> int:
        """A bound on the noise in all values of a column, with 90% probability."""
        level = 1 - (1 - LEVEL) / column.axis.cells
        return math.ceil(self.mechanism.half_width(level))

    def stored_part(self, noisy: Noisy) -> Noisy:
        """The counts of shared values and of classes; nearly all other counts are pure noise."""
        least = [
            -LARGEST_STATISTIC if own is None else own
            for column in self.values
            for own in (self.threshold(column), None)
        ]
        cells = np.flatnonzero(noisy.values > np.repeat(least, self._sizes))
        return Noisy(noisy.values[cells], cells, noisy.reproducible)

    def _drawn(self, noisy: Noisy) -> Iterator[tuple[StepValues, Integers, Integers, Integers]]:
        """For each column the cells of shared values, their noisy counts, and the counts of classes."""
        # Only the kept counts are stored: a draw may come from the privacy line or from the ledger.
        noisy = self.stored_part(noisy) if noisy.cells is None else noisy
        assert noisy.cells is not None
        ends = np.cumsum(self._sizes)
        parts = np.searchsorted(noisy.cells, ends)
        cells, values = (np.split(each, parts[:-1]) for each in (noisy.cells, noisy.values))
        for i, column in enumerate(self.values):
            before = ends[2 * i] - column.axis.cells
            yield column, cells[2 * i] - before, values[2 * i], values[2 * i + 1]

    def publish(self, noisy: Noisy) -> Published:
        found = [
            table
            for column, cells, counts, classes in self._drawn(noisy)
            for table in (
                self._shared_values(column, cells, counts),
                self._round_values(column, classes),
            )
        ]
        return Published(tuple(found))

    def _shared_values(self, column: StepValues, cells: Integers, counts: Integers) -> Table:
        name, width = column.axis.name, self.threshold(column)
        ends = np.maximum(counts - width, 0), np.minimum(counts + width, self.most_rows)
        columns = [
            TableColumn(name, column.numbers(cells), self._about(column), name),
            *RECORDS.noisy_columns(counts, self.mechanism.stddev, ""),
            *RECORDS.interval(*ends),
        ]
        statement = (
            f"Only values with a noisy count above {width} are listed, out of {column.axis.cells:,}."
            " With at least 90% probability all their intervals are right at once."
        )
        known = Uncertainty("noisy_count", "standard_error", ENDS, "exact", statement)
        return Table("tables", self.table_name(Domain((column.axis,))), columns, (known,))

    @staticmethod
    def _about(column: StepValues) -> str:
        name, step = column.axis.name, float(column.step)
        within = "" if column.axis.integer else f", or within {step / 2:.15g} of it"
        return f"Value of {name} that many records share{within}"

    def _round_values(self, column: StepValues, counts: Integers) -> Table:
        kinds, unit = column.roundness, float(column.step)
        ends = exact_interval(counts, self.mechanism.half_width, self.most_rows)
        sizes = 10.0**kinds.power * unit, 10.0 ** (kinds.power + 1) * unit
        about = column.axis.name
        means = (
            f"Absolute value of {about}: at least",
            f"Absolute value of {about}: below",
            f"The largest of 1, 5, 10, 50, ... that divides {about}",
            f"Number of values of {about} in this class",
        )
        described = (*sizes, kinds.every * unit, kinds.values)
        columns = [
            *(TableColumn(*part) for part in zip(ROUNDNESS, described, means, strict=True)),
            *RECORDS.noisy_columns(counts, self.mechanism.stddev, "; may be negative"),
            *RECORDS.interval(*ends),
        ]
        known = Uncertainty(
            "noisy_count", "standard_error", ENDS, "exact", "From the distribution of the noise."
        )
        name = self.table_name(Domain((column.axis,)))
        return Table("tables", f"{name}.roundness", columns, (known,))

    def occurring(
        self, noisy: Noisy, name: str
    ) -> tuple[StepValues, Floats, Floats, Integers, Integers]:
        """The relative frequencies of the values (cells,) of a column.

        Returns:
            The values; their relative frequencies within bins, which use roundness only where it exceeds
            noise; the frequencies of equally large values that are not round; the cells (k,) of shared
            values, and their noisy counts.
        """
        column, cells, counts, classes = next(
            drawn for drawn in self._drawn(noisy) if drawn[0].axis.name == name
        )
        kinds = column.roundness
        rest = (classes - _by_class(kinds, kinds.of[cells], counts)).astype(np.float64)
        values = kinds.values - _by_class(kinds, kinds.of[cells], np.ones_like(cells))
        even = np.maximum(_alike(rest, values, kinds.power), 1e-9)
        # The distance from an even distribution grows with the number of people, not with the few round
        # values: half of all incomes may be multiples of 10,000.
        near = np.maximum(np.bincount(kinds.power, rest)[kinds.power], 1.0)
        kept = kept_beside(near, near + rest - even, self.mechanism.stddev**2)
        seen = np.maximum(even + kept * (rest - even), 1e-9)
        each = np.append(seen / np.maximum(values, 1), 0.0)  # zero has no class
        # Classes are in the order of powers, and of roundness within each: the first is the least round.
        least = np.append(each[np.searchsorted(kinds.power, kinds.power)], 0.0)
        return column, each[kinds.of], least[kinds.of], cells, counts

    @property
    def least_seen(self) -> int:
        """The number of records with which a value of any column is published."""
        return max(self.threshold(column) for column in self.values)

    def expected_error(self) -> tuple[ErrorStatement, ...]:
        needed = "number of records from which a value of any column is published"
        return (
            ErrorStatement("standard error of a count", self.mechanism.stddev),
            ErrorStatement(needed, float(self.least_seen)),
        )


def _by_class(kinds: Roundness, of: Integers, counts: Integers) -> Integers:
    """For each class except the one of value 0, the sum of counts (k,) of values with classes ``of``."""
    return summed(of[of >= 0], counts[of >= 0], len(kinds.power))


def _alike(counts: Floats, values: Integers, power: Integers) -> Floats:
    """Counts (k,) that divide each power of ten among its classes in proportion to their ``values``."""
    # Noise may make a total negative.
    totals = np.maximum(np.bincount(power, counts), 1.0)
    return np.asarray(totals[power] * values / np.maximum(np.bincount(power, values), 1)[power])
