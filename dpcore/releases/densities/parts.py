"""Densities and counts of several parts of the records, where each record is in one part.

    a group        a density of its records.  Their number is private under every relation, so it is
                   divided by the group's noisy mass (``answered``)
    a point mass   the number of records, in each group, at a value that many share.  If a fifth of all
                   incomes are 0, a kernel estimate would have a bump where nobody is, so the density
                   describes the other records

The statistic has for each group the counts of its point masses, then the numbers of its density.  A
count is in steps of ``Density.one_record``, which is at most a record's effect on the numbers of the
density, in either norm.

**Lemma.**  Let adding or removing a record change the numbers of its part by at most ``present``, and
replacing it within a part by at most ``moved``.  Then a step to a neighbour moves all numbers by at most

    L1    moved, or 2 present where a record leaves one part for another
    L2    the root of moved^2, or of 2 present^2: the numbers of two parts have no coordinate in common

*Proof.*  A record is in one part, or in none.  A step adds or removes a record, which gives
``present``, or replaces one within its part, or removes one from a part and adds one to another.  All
other parts stay as they are.  QED

For ``binned-laplace``, moved is 2 present already, so that several parts cost nothing; for
``spectral-gaussian``, moved^2 is 2 (largest - smallest) and present^2 is ``largest``, so that they cost
little if the bandwidth is small.  Rounding to a lattice counts in each part that a step may touch.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcore.arrays import Floats, Integers
from dpcore.domain.axes import Axis, Bins, Grid
from dpcore.domain.domain import Domain
from dpcore.domain.tally import Tally
from dpcore.line.statistic import Exact, Noisy
from dpcore.mechanisms import DiscreteGaussian, DiscreteLaplace
from dpcore.post.tables.simplex import round_to_total
from dpcore.releases.abilities import EstimatesDensity, Samplable
from dpcore.releases.base import Chart, ErrorStatement, named_points, post_processing_generator
from dpcore.releases.counts.cells import cell_names, describe_cells
from dpcore.releases.densities.banded import WHOLE
from dpcore.releases.densities.binned_density import BinnedDensity
from dpcore.releases.densities.density import Density
from dpcore.releases.densities.spectral_density import SpectralDensity
from dpcore.releases.numbers.by_group import groups_of, require_groups
from dpcore.releases.table import (
    ENDS,
    Published,
    Table,
    TableColumn,
    Uncertainty,
    error_column,
    exact_interval,
    interval_columns,
)
from dpcore.releases.work import Work

OF_EACH = ("simultaneous_factor", "noisy_rows", "rows_standard_error")
"""Facts of a density that each group has separately, in the order of the groups."""

MOST_DENSITIES = 256
"""The most groups with a density, because the band of each group is simulated separately."""

OF_POINTS = Uncertainty(
    "estimate", "standard_error", ENDS, "exact", "From the distribution of the noise."
)


@dataclass(frozen=True)
class DensityOfParts(EstimatesDensity, Samplable):
    """Densities of groups, with counts of point masses; ``density``: each group's density has its
    columns and form.  The first axes of the domain, before the axes of the density, define the groups;
    there may be none.
    """

    density: Density

    finer = "a larger bandwidth, fewer groups or fewer columns"
    refines = "density"
    statistics = Density.statistics

    def __post_init__(self) -> None:
        if not isinstance(self.each, BinnedDensity | SpectralDensity):
            raise ValueError("by: needs the mechanism binned-laplace or spectral-gaussian")
        require_groups(self.by.axes, MOST_DENSITIES, "density")
        super().__post_init__()

    def require_publishable(self) -> None:
        # On a coarse lattice a record's share of the density may be less than one step.
        if len(self.points) and not self.each.one_record:
            raise ValueError(
                f"columns: with {self.rows:,} rows and up to {self.adjacency.most:,} records of a unit,"
                f" a record at a point mass of {self.each.domain.names[0]} is too light to be counted;"
                " use a larger bandwidth, fewer records per unit or mechanism: binned-laplace"
            )
        super().require_publishable()

    @property
    def chart(self) -> Chart:  # type: ignore[override]
        return "curves" if self.by.axes else "curve"

    @cached_property
    def each(self) -> Density:
        """The density of one group, with this share and neighbouring relation."""
        return replace(
            self.density,
            rows=self.rows,
            share=self.share,
            adjacency=self.adjacency,
            grouped=True,
        )

    @property
    def smooth(self) -> Density:
        return self.each

    @cached_property
    def by(self) -> Domain:
        """The columns that define the groups."""
        return Domain(self.domain.axes[: -len(self.density.domain.axes)])

    @property
    def groups(self) -> int:
        """The number of groups: one if the plan names no column of groups."""
        return self.by.size

    @cached_property
    def points(self) -> Floats:
        """The values (k,) of the column that are counted as point masses."""
        axis, *others = self.each.domain.axes
        return np.asarray(axis.points if isinstance(axis, Grid) and not others else (), np.float64)

    @property
    def numbers(self) -> int:
        """The number of values that the statistic has for each group."""
        return len(self.points) + self.each.mechanism.size

    @cached_property
    def mechanism(self) -> DiscreteLaplace | DiscreteGaussian:
        alone = self.each.mechanism
        assert isinstance(alone, DiscreteLaplace | DiscreteGaussian)
        # ``each`` is grouped: its noise is already for neighbours that differ in two groups.
        return replace(alone, size=self.groups * self.numbers)

    @property
    def largest_statistic(self) -> int:
        return self.each.largest_statistic

    def statistic(self, tally: Tally) -> Exact:
        codes, columns = tally.domain.unpack(tally.cells), len(self.by.axes)
        group, cells = self.by.pack(codes[:, :columns]), self.each.domain.pack(codes[:, columns:])
        values = []
        for i in range(self.groups):
            here = group == i
            values += self._of_group(Tally(self.each.domain, cells[here], tally.counts[here]))
        return Exact(np.concatenate(values))

    def _of_group(self, tally: Tally) -> list[Integers]:
        """The exact numbers of one group: private."""
        at = self.each.answered.size + np.arange(len(self.points))
        counts = [int(tally.counts[tally.cells == cell].sum()) for cell in at]
        steps = np.minimum(np.array(counts, dtype=np.int64), self.most_rows)
        return [steps * self.each.one_record, self.each.numbers(tally)]

    def resolves(self, axis: Bins) -> bool:
        return self.each.resolves(axis)

    def of_group(self, noisy: Noisy, group: int) -> tuple[Floats, Noisy]:
        """A group's noisy numbers (k,) of records at the point masses, and its density's numbers."""
        here = slice(group * self.numbers, (group + 1) * self.numbers)
        points, density = np.split(noisy.values[here], [len(self.points)])
        return points / self.each.one_record, Noisy(density, reproducible=noisy.reproducible)

    @property
    def stddev(self) -> float:
        """The standard deviation of the noise in the number of records at a point mass."""
        return self.mechanism.stddev / self.each.one_record

    def publish(self, noisy: Noisy) -> Published:
        parts = [self.of_group(noisy, i) for i in range(self.groups)]
        published = [self.each.publish(density) for _, density in parts]
        facts, tables = dict(published[0].facts), [*published[0].tables]
        if self.by.axes:  # without coefficients: there would be many
            tables = [self._of_all_groups([one.tables[0] for one in published])]
            facts = facts | {name: [one.facts[name] for one in published] for name in OF_EACH}
        if len(self.points):
            tables.append(self.table_of_points(np.concatenate([counts for counts, _ in parts])))
        return Published(tuple(tables), facts)

    def _of_all_groups(self, tables: Sequence[Table]) -> Table:
        rows = [len(table.parts[0].values) for table in tables]
        columns = [
            replace(column, values=_together([t.columns[column.name] for t in tables]))
            for column in tables[0].parts
        ]
        return replace(tables[0], parts=[*self._described(rows), *columns])

    def _described(self, rows: Sequence[int]) -> list[TableColumn]:
        """The columns of groups; each group is repeated for each of its rows."""
        return describe_cells(self.by, np.repeat(np.arange(self.groups), rows))

    def table_of_points(self, counts: Floats) -> Table:
        """The table of noisy counts (groups x k,) of records at the point masses."""
        (name,) = self.each.domain.names
        ends = exact_interval(
            counts,
            lambda level: self.mechanism.half_width(level) / self.each.one_record,
            self.most_rows,
        )
        values = np.tile(self.points, self.groups)
        columns = [
            *self._described([len(self.points)] * self.groups),
            TableColumn(name, values, f"Value of {name}, counted separately", name),
            TableColumn("estimate", counts, "Records with this value, plus noise of mean zero"),
            error_column(np.full(len(counts), self.stddev), "estimate"),
            *interval_columns(*ends, "the exact number of records"),
        ]
        return Table("tables", f"{self.name}.points", columns, (OF_POINTS,))

    def evaluate(self, noisy: Noisy, points: Mapping[str, NDArray[Any]]) -> dict[str, Floats]:
        """The density of the records at none of the point masses, as in ``Density.evaluate``; the
        points also have values in the columns of groups."""
        given, groups = named_points(points, self.domain.names), len(self.by.axes)
        own = dict(zip(self.each.domain.names, given[groups:], strict=True))
        group = groups_of(self.by, given[:groups], len(given[-1]))
        found: dict[str, Floats] = {}
        for i in np.unique(group).tolist():
            here = group == i
            at = {name: values[here] for name, values in own.items()}
            for name, answers in self.each.evaluate(self.of_group(noisy, i)[1], at).items():
                found.setdefault(name, np.ma.array(np.zeros(group.shape), mask=True))[here] = (
                    answers
                )
        return {n: a if np.ma.is_masked(a) else np.asarray(a) for n, a in found.items()}

    def _likely_counts(self, noisy: Noisy) -> Floats:
        """Non-negative records (groups, k + 1) at the point masses and elsewhere; they sum to the
        rows."""
        found = np.empty((self.groups, len(self.points) + 1))
        for i in range(self.groups):
            counts, density = self.of_group(noisy, i)
            points = np.clip(counts, 0, self.rows)
            mass = self.each.mass(density)
            found[i] = [*points, mass * self.rows]
        # The counts at point masses have less noise, so they determine the last count.
        nullable = any(axis.nullable for axis in self.each.domain.axes)
        if len(self.points) and self.groups == 1 and self.adjacency.public_rows and not nullable:
            found[:, -1] = max(self.rows - float(found[:, :-1].sum()), 0.0)
        return np.asarray(found * (self.rows / found.sum()))

    def supported_margin(self, noisy: Noisy, names: tuple[str, ...]) -> tuple[Floats, float] | None:
        gone = tuple(i for i, axis in enumerate(self.each.domain.axes) if axis.name not in names)
        tables = []
        for i, (*points, others) in enumerate(self._likely_counts(noisy)):
            table = np.zeros(self.each.domain.shape)
            inside = tuple(map(slice, self.each.answered.shape))
            table[inside] = others * self.each.probabilities(self.of_group(noisy, i)[1])
            if points:
                table[self.each.answered.size :][: len(points)] = points
            tables.append(table.sum(axis=gone))
        counts = np.reshape(tables, [*self.by.shape, *tables[0].shape])
        left_out = tuple(i for i, axis in enumerate(self.by.axes) if axis.name not in names)
        return counts.sum(axis=left_out).ravel(), math.nan

    def sample(self, noisy: Noisy, rows: int) -> tuple[Domain, Integers]:
        """Records with a value: each group and each point mass has its noisy number of records, and the
        others follow the density."""
        numbers = round_to_total(self._likely_counts(noisy).ravel() * (rows / self.rows), rows)
        numbers = numbers.reshape(self.groups, -1)
        drawn = []
        for i, (*points, others) in enumerate(numbers.tolist()):
            drawn.append(self.each.sample(self.of_group(noisy, i)[1], others)[1])
            heaped = np.repeat(self.each.answered.size + np.arange(len(points)), points)
            drawn.append(np.tile(heaped[:, None], len(self.each.domain.axes)))
        groups = self.by.unpack(np.repeat(np.arange(self.groups), numbers.sum(axis=1)))
        codes = np.concatenate([groups, np.concatenate(drawn)], axis=1)
        own = self.each.domain if len(self.points) else self.each.answered
        axes = tuple(replace(axis, nullable=False) for axis in own.axes)
        return Domain((*self.by.axes, *axes)), post_processing_generator(noisy).permutation(codes)

    def published_names(self, axis: Axis) -> tuple[str, ...]:
        return cell_names(axis) if axis in self.by.axes else self.each.published_names(axis)

    @property
    def work(self) -> Work:
        one = self.each.work
        return replace(one, seconds=one.seconds * self.groups)

    @property
    def error_parts(self) -> dict[str, float]:
        """The typical noise in a group with an equal share of the records, and bounds of approximation
        errors, relative to a uniform density."""
        parts = self.each.error_parts
        return parts | {"noise": parts["noise"] * self.groups}

    def expected_error(self) -> tuple[ErrorStatement, ...]:
        found = self.each.expected_error()
        if self.by.axes:
            noise, *bounds = self.error_parts.items()
            most = ", ".join(f"{name} {value:.2g}" for name, value in bounds)
            note = (
                f"in a group of average size, {self.rows / self.groups:.3g} records: noise"
                f" {noise[1]:.2g} (ten times larger for a tenth of the records); at most"
                f" {most}{self.each.of_scale}"
            )
            found = (ErrorStatement(WHOLE, self.whole_error, note),)
        if len(self.points):
            at_points = "standard error of the records at a point mass"
            found = (*found, ErrorStatement(at_points, self.stddev))
        return found


def _together(parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    mask = np.concatenate([np.ma.getmaskarray(each) for each in parts])
    values = np.concatenate([np.ma.getdata(each) for each in parts])
    return np.ma.masked_array(values, mask) if mask.any() else values
