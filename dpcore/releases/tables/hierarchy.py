"""Counts over a tree of regions, with a table of cells at every node, from one joint draw.

A record counts in one cell of one node of each level, so that replacing it changes each measured level
in at most two cells, by one: with k levels the joint L1 sensitivity is 2k and the joint L2 sensitivity
sqrt(2k).  Adding or removing a record changes one cell of each level: k and sqrt(k).  A level with a
single cell, such as a root without further columns, does not change if a record is replaced.

All levels have the same noise.  Least squares then makes the nodes agree with the sums of their
children, with the least variance (``dpcore.post.tables.tree``), and with public totals; the counts are
whole numbers that are not negative and agree too (``dpcore.post.tables.apportion``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dpcore.arrays import Booleans, Floats, Integers
from dpcore.domain.axes import Axis, Categories
from dpcore.domain.domain import Domain
from dpcore.domain.regions import Regions
from dpcore.domain.tally import Tally
from dpcore.domain.words import summed
from dpcore.line.mechanism import WorstTable
from dpcore.line.statistic import Exact, Noisy
from dpcore.mechanisms import DiscreteGaussian, DiscreteLaplace
from dpcore.post.tables.apportion import whole_counts
from dpcore.post.tables.count_errors import repeats
from dpcore.post.tables.tree import TreeSquares
from dpcore.releases.base import ErrorStatement, post_processing_generator
from dpcore.releases.counts.cells import describe_cells
from dpcore.releases.replicates import drawn_again, replicate_generator
from dpcore.releases.table import Published, TableColumn
from dpcore.releases.tables.agreed import AgreedTables
from dpcore.releases.tables.fitted import LARGEST_TOTAL
from dpcore.releases.tables.totals import Totals

LARGEST_CROWN = 2**24
"""The limit of (cells of a node)^2 times the number of nodes, in the levels above known totals."""

SIMULATED = 2**16
"""Errors of counts are simulated for at least this many cells."""

LEAST_VARIANCE = 1e-12
"""The least variance: weights of least squares are ratios of variances, so none may be zero."""


@dataclass(frozen=True, eq=False)
class Hierarchy(AgreedTables):
    """Count tables at the nodes of ``regions``.

    The first columns of ``domain`` define the regions; the others are the columns of each table.
    ``possible``: (leaves, cells), False for cells that must be empty.
    """

    regions: Regions
    noise: Literal["discrete-laplace", "discrete-gaussian"] = "discrete-laplace"
    totals: Totals | None = None
    possible: Booleans | None = None

    chart = "regions"
    estimate_means = (
        ", from noisy tables at all levels, adjusted so that they agree; unbiased, and may be"
        " negative"
    )
    count_means = "the counts of a region add up to the region's total"
    count_caveat = (
        f"{AgreedTables.count_caveat} Sums of count over many small cells are biased; sums of estimate"
        " are not."
    )

    __eq__ = object.__eq__
    __hash__ = object.__hash__

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.first > self.regions.depth or (self.adjacency.public_rows and not self.changing):
            raise ValueError(
                "hierarchy: all of its counts are public, so there is nothing to measure"
            )
        if self.mechanism_size > LARGEST_TOTAL:
            raise ValueError(
                f"hierarchy: {self.mechanism_size:,} cells at all levels are more than"
                f" {LARGEST_TOTAL:,}; use fewer columns or wider bins"
            )
        above = sum(self.regions.sizes[: self.known or 0])
        if self.width > 1 and above * self.width**2 > LARGEST_CROWN:
            raise ValueError(
                f"totals: {above:,} nodes lie above their level, too many for tables of {self.width:,}"
                " cells; state totals of a higher level, or use fewer cells"
            )
        if self.totals is not None:
            self.totals.check(self.rows, self.regions, self.adjacency)
        if self.possible is not None and self.known is not None:
            self._check_possible(self.possible, self.known)

    def _check_possible(self, possible: Booleans, known: int) -> None:
        reachable = possible.any(axis=1)
        for level in range(self.regions.depth, known, -1):
            reachable = np.logical_or.reduceat(reachable, self.regions.starts[level])
        if np.any(self._known_totals[~reachable] > 0):
            raise ValueError("impossible: a region has records, but none of its cells is possible")

    @cached_property
    def cells(self) -> Domain:
        """The columns of the table at each node."""
        return Domain(self.domain.axes[self.regions.depth :])

    @property
    def width(self) -> int:
        """The number of cells of one node."""
        return self.cells.size

    @property
    def known(self) -> int | None:
        """The level whose totals over cells are public, if there is one."""
        if self.totals is not None:
            return self.totals.level
        return 0 if self.adjacency.public_rows else None

    @property
    def first(self) -> int:
        """The first measured level; tables of one cell are their totals."""
        return 0 if self.known is None or self.width > 1 else self.known + 1

    @property
    def measured(self) -> range:
        """The levels that are measured and published."""
        return range(self.first, self.regions.depth + 1)

    @property
    def changing(self) -> int:
        """How many measured levels change if a record is replaced."""
        return sum(self.regions.sizes[level] * self.width > 1 for level in self.measured)

    @property
    def mechanism_size(self) -> int:
        """The number of cells of all measured levels together."""
        return sum(self.regions.sizes[level] for level in self.measured) * self.width

    @cached_property
    def mechanism(self) -> DiscreteLaplace | DiscreteGaussian:
        # The L1 sensitivity, which equals the squared L2 sensitivity.
        moved, present = Fraction(2 * self.changing), Fraction(len(self.measured))
        if self.noise == "discrete-gaussian":
            squared = self.adjacency.squared(moved=moved, present=present)
            return DiscreteGaussian.within(self.share, self.mechanism_size, squared)
        sensitivity = self.adjacency.sensitivity(moved=moved, present=present)
        return DiscreteLaplace.within(self.share, self.mechanism_size, sensitivity)

    def statistic(self, tally: Tally) -> Exact:
        region, cell = np.divmod(tally.cells, self.width)
        places = self.regions.leaf_of(region) * self.width + cell
        leaves = summed(places, tally.counts, self.regions.sizes[-1] * self.width)
        tables = [leaves.reshape(-1, self.width)]
        for level in range(self.regions.depth, self.first, -1):
            tables.insert(0, self.regions.gathered(level, tables[0]))
        return Exact(np.concatenate(tables).ravel())

    def worst_tables(self) -> Iterator[WorstTable]:
        """Tables in which a record moves between regions, possibly from outside to outside."""
        first, last = (int(self.regions.leaves[i]) * self.width for i in (0, -1))
        last += self.width - 1
        yield "from the first region to the last", {first: self.rows - 1}, first, last

    @cached_property
    def fit(self) -> TreeSquares:
        """The least squares fit over the noisy tables."""
        unknown = None
        if self.totals is not None and self.regions.outside and not self.adjacency.public_rows:
            unknown = np.isnan(self._known_totals)
        return TreeSquares(
            self.regions,
            self.width,
            max(self.mechanism.stddev**2, LEAST_VARIANCE),
            self.first,
            self.possible,
            self.known,
            unknown,
        )

    @cached_property
    def _known_totals(self) -> Floats:
        """The totals (nodes,) of level ``known``; NaN outside all regions if the rows are private."""
        if self.totals is None:
            return np.array([float(self.rows)])
        counts = self.totals.counts.astype(np.float64)
        if not self.regions.outside:
            return counts
        rest = self.rows - counts.sum() if self.adjacency.public_rows else np.nan
        return np.append(counts, rest)

    def estimates(self, values: NDArray[Any]) -> list[Floats]:
        """The unbiased counts (nodes, cells) of all levels, from a noisy statistic."""
        tables = [part.reshape(-1, self.width) for part in self._by_level(values)]
        totals = None if self.known is None else np.nan_to_num(self._known_totals)
        return self.fit.estimates(tables, totals)

    def counts(self, estimates: list[Floats]) -> list[Integers]:
        """Non-negative whole counts (nodes, cells) of all levels, which agree."""
        top = self.fit.top
        found = np.maximum(np.rint(estimates[top].sum(axis=1)), 0)
        if self.known is not None:
            found = np.where(np.isnan(self._known_totals), found, self._known_totals)
        return whole_counts(self.regions, estimates, found.astype(np.int64), top, self.possible)

    def publish(self, noisy: Noisy) -> Published:
        estimates = self.estimates(noisy.values)
        counts = self.counts(estimates)
        stddevs = [
            np.broadcast_to(variance**0.5, own.shape)
            for variance, own in zip(self.variances, counts, strict=True)
        ]
        numbers, errors, whole = (self._measured_of(e) for e in (estimates, stddevs, counts))
        tables = self.agreed_tables(numbers, errors, whole, self._again(noisy, counts))
        names = ("all", *self.regions.domain.names)
        facts: dict[str, object] = {
            "levels": {names[level]: self.regions.sizes[level] for level in self.measured},
            "cells": self.mechanism_size,
        }
        if self.regions.outside:
            facts["outside"] = (
                f"If the combination of {', '.join(self.regions.domain.names)} is not in the hierarchy,"
                f" {self.unit.things} are counted in rows without a region."
            )
        if self.totals is not None:
            facts["totals"] = self.totals.promise(names[self.totals.level], self.adjacency)
        return Published(tables, facts | self.weight_facts)

    def replicate_noise(self, noisy: Noisy, number: int) -> Mapping[str, NDArray[np.float32]]:
        """Simulated noise of all levels, after least squares."""
        generator, nothing = replicate_generator(noisy), np.zeros(self.mechanism_size)
        # With known totals, estimates from zero counts are not zero.
        start = self._joined(self.estimates(nothing))

        def noise() -> Floats:
            again = self.mechanism.simulate(self.mechanism_size, generator)
            return np.asarray(
                self.unit.scaled(self._joined(self.estimates(nothing + again)) - start)
            )

        tables = self._by_level(drawn_again(noise, number))
        names = [self.table_name(domain) for domain in self.domains]
        return dict(zip(names, tables, strict=True))

    def _joined(self, levels: Sequence[NDArray[Any]]) -> NDArray[Any]:
        """The published numbers of all levels, concatenated."""
        return np.concatenate([each.ravel() for each in self._measured_of(levels)])

    def _measured_of(self, levels: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        """The published levels, selected from all levels."""
        return [levels[level] for level in self.measured]

    def _by_level(self, joined: NDArray[Any]) -> list[NDArray[Any]]:
        """Split concatenated numbers into levels, along the last axis."""
        ends = np.cumsum([self.regions.sizes[level] * self.width for level in self.measured])[:-1]
        return np.split(joined, ends, axis=-1)

    def _again(
        self, noisy: Noisy, counts: list[Integers]
    ) -> Iterator[tuple[list[Integers], list[Floats]]]:
        """Counts and estimates from simulated noise and post-processing, starting from the counts."""
        generator, start = post_processing_generator(noisy), self._joined(counts)
        for _ in range(repeats(self.mechanism_size, SIMULATED)):
            noise = self.mechanism.simulate(self.mechanism_size, generator)
            estimated = self.estimates(start + noise)
            yield self._measured_of(self.counts(estimated)), self._measured_of(estimated)

    def described(self, domain: Domain) -> Iterator[TableColumn]:
        """The columns (nodes x cells,) of regions and of cells, from the plan only.

        The rows of a node are consecutive.  Records outside all regions have separate rows, the last
        ones, in which the columns of regions are empty.
        """
        regions, size = self.regions, self.width
        axes = domain.axes[: len(domain.axes) - len(self.cells.axes)]
        codes = Domain(axes).unpack(regions.nodes[len(axes)])
        about = "; empty outside all regions" * regions.outside
        for axis, code in zip(axes, codes.T, strict=True):
            names = _named(axis, code, regions.outside, size)
            yield TableColumn(axis.name, names, f"Category of {axis.name}{about}", axis.name)
        rows = np.tile(np.arange(size), regions.sizes[len(axes)])
        for part in describe_cells(self.cells):
            yield TableColumn(part.name, _light(part.values)[rows], part.description, part.about)

    def level_domain(self, level: int) -> Domain:
        return Domain((*self.regions.domain.axes[:level], *self.cells.axes))

    @property
    def domains(self) -> tuple[Domain, ...]:
        return tuple(self.level_domain(level) for level in self.measured)

    @cached_property
    def variances(self) -> tuple[Floats, ...]:
        """The exact variance of each estimate, (nodes, cells) or (nodes, 1); never negative."""
        return tuple(np.maximum(variance, 0.0) for variance in self.fit.variances)

    def expected_error(self) -> tuple[ErrorStatement, ...]:
        unit = self.unit
        statements = [
            ErrorStatement(
                f"standard error of a {unit.number} as drawn", unit.scaled(self.mechanism.stddev)
            )
        ]
        names = ("over all regions", *(f"by {name}" for name in self.regions.domain.names))
        counted = "root mean square of {:,} regions, at most {:.4g}"
        for level in self.measured:
            variance = self.variances[level]
            if not variance.any():
                continue
            typical, most = np.sqrt([variance[variance > 0].mean(), variance.max()]).tolist()
            statements.append(
                ErrorStatement(
                    f"standard error of a {unit.number} {names[level]}",
                    unit.scaled(typical),
                    counted.format(self.regions.sizes[level], unit.scaled(most)) if level else "",
                )
            )
        return tuple(statements)

    def sum_variance(self, weights: Mapping[str, Floats]) -> float:
        """The variance of sums of ``estimate`` over one or more tables, whose cells are correlated."""
        levels = {self.table_name(self.level_domain(level)): level for level in self.measured}
        tables = {levels[name]: w.reshape(-1, self.width) for name, w in weights.items()}
        return self.fit.sum_variance(tables) * float(self.step) ** 2


def _named(axis: Axis, codes: Integers, outside: bool, width: int) -> NDArray[Any]:
    """The category of each row, masked in rows outside all regions."""
    assert isinstance(axis, Categories)
    names = _light(np.asarray(axis.categories))[codes]
    if not outside:
        return np.repeat(names, width)
    rows = np.repeat(np.append(names, names[:1]), width)
    return np.ma.masked_array(rows, mask=np.arange(len(rows)) >= len(codes) * width)


def _light(values: NDArray[Any]) -> NDArray[Any]:
    """Text as references to one object per category, because columns of millions of rows repeat them."""
    return values.astype(object) if values.dtype.kind == "U" else values
