"""Contingency margins: count tables over several sets of columns, from one joint draw.

Replacing a record changes each of the k tables in at most two cells, by one, and two records that
differ in every column do so in all tables at once: the joint L1 sensitivity is exactly 2k and the
joint L2 sensitivity sqrt(2k) (METHODS d).  One that is added or removed changes one cell of each: k
and sqrt(k).  (A table whose columns all have one category cannot
change; it only makes the bound safe.)

The noisy tables are published three times over: as drawn; adjusted by least squares so that they
agree with each other and with n, where it is public, with the exact standard error that this
leaves; and as whole numbers that are not negative, agree, and are the margins of one table of
records.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dpcore.arrays import Floats, Integers
from dpcore.domain import Domain, Tally
from dpcore.mechanisms import DiscreteGaussian, DiscreteLaplace
from dpcore.post.records.tree import sample_tree, spanning_tree
from dpcore.post.records.weighted import WeightedRecords, fit_weighted
from dpcore.post.tables.bounded import bounded_interval
from dpcore.post.tables.consistency import (
    combination_variance,
    consistent_variance,
    estimated_total,
    make_consistent,
)
from dpcore.post.tables.margins import Margin, summed_to
from dpcore.post.tables.simulation import pooled_means
from dpcore.releases.base import ErrorStatement, Release, Tree, post_processing_generator
from dpcore.releases.counts.cells import describe_cells
from dpcore.releases.counts.unit import OF_COUNTS, CountsRelease
from dpcore.releases.table import ENDS, ONE_SIDED, TWO_SIDED, Published, Table, Uncertainty
from dpcore.statistic import Exact, Noisy

LARGEST_TOTAL = 2**24
"""The most cells that the tables of one release may have together."""

SIMULATED = 1000
"""Errors of counts are simulated for at least this many cells: fitting records takes its time."""

MOST_REPEATS = 20


@dataclass(frozen=True)
class Margins(CountsRelease):
    """Count tables over ``sets`` of positions in the domain, each ascending."""

    sets: tuple[tuple[int, ...], ...] = ()
    noise: Literal["discrete-laplace", "discrete-gaussian"] = "discrete-laplace"

    tree: tuple[tuple[int, int], ...] | Literal["auto"] | None = None
    """Edges of a spanning tree that synthetic records follow, or the tree that the noisy tables
    suggest; None fits all tables at once."""

    chart = "cells"
    refines = "counts"
    statistics = (*OF_COUNTS, "estimate", "noisy_standard_error")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.cells > LARGEST_TOTAL:
            raise ValueError(
                f"{self.cells:.3g} cells in {len(self.sets)} tables are too many; use fewer ways,"
                " fewer columns or wider bins"
            )
        names = self.domain.names
        missing = [
            name for i, name in enumerate(names) if not any(i in attrs for attrs in self.sets)
        ]
        if missing:
            raise ValueError(f"sets: no set holds the columns {missing}")
        joined = list(range(len(names)))
        for one, other in self.tree if isinstance(self.tree, tuple) else ():
            if not any({one, other} <= set(attrs) for attrs in self.sets):
                raise ValueError(f"tree: no set holds both {names[one]!r} and {names[other]!r}")
            if joined[one] == joined[other]:
                raise ValueError(f"tree: {names[one]!r} - {names[other]!r} closes a cycle")
            joined = [joined[one] if part == joined[other] else part for part in joined]

    def sampler(self, rows: int, tree: Tree | None = None) -> Release:
        if tree is None or isinstance(tree, str):
            return replace(self, tree=tree)
        names = self.domain.names
        for a, b in tree:
            if a not in names or b not in names or a == b:
                raise ValueError(f"tree: {a!r} - {b!r} are not two columns of the margins")
        return replace(self, tree=tuple((names.index(a), names.index(b)) for a, b in tree))

    @cached_property
    def domains(self) -> tuple[Domain, ...]:
        """The domain of each table."""
        return tuple(Domain(tuple(self.domain.axes[a] for a in attrs)) for attrs in self.sets)

    @property
    def cells(self) -> int:
        """The cells of all tables together."""
        return sum(domain.size for domain in self.domains)

    @cached_property
    def mechanism(self) -> DiscreteLaplace | DiscreteGaussian:
        # In L1, and also the square in L2.
        moved, present = Fraction(2 * len(self.sets)), Fraction(len(self.sets))
        if self.noise == "discrete-gaussian":
            squared = self.adjacency.squared(moved=moved, present=present)
            return DiscreteGaussian.within(self.share, self.cells, squared)
        sensitivity = self.adjacency.sensitivity(moved=moved, present=present)
        return DiscreteLaplace.within(self.share, self.cells, sensitivity)

    def statistic(self, tally: Tally) -> Exact:
        tables = [tally.roll_up(domain.names).dense() for domain in self.domains]
        return Exact(np.concatenate(tables))

    @property
    def stddev(self) -> float:
        """Of the noise in a cell as drawn; the largest, where tables differ."""
        return self.mechanism.stddev

    def noisy_margins(self, noisy: Noisy) -> list[Margin]:
        """The tables as drawn."""
        ends = np.cumsum([domain.size for domain in self.domains])[:-1]
        return [
            Margin(attrs, part.reshape(domain.shape).astype(np.float64), self.stddev**2)
            for attrs, domain, part in zip(
                self.sets, self.domains, np.split(noisy.values, ends), strict=True
            )
        ]

    def consistent_margins(self, noisy: Noisy) -> list[Margin]:
        """The tables adjusted so that they agree with each other, and with the rows if public."""
        rows = self.rows if self.adjacency.public_rows else None
        return make_consistent(self.domain.shape, self.noisy_margins(noisy), rows)

    def total(self, noisy: Noisy) -> int:
        """The number of records: the public one, or an estimate from all tables, at least one."""
        if self.adjacency.public_rows:
            return self.rows
        return round(estimated_total(self.noisy_margins(noisy)))

    def fit(self, noisy: Noisy, rows: int) -> WeightedRecords:
        """Records whose margins are near the noisy ones."""
        return fit_weighted(
            self.domain.shape,
            self.noisy_margins(noisy),
            rows,
            post_processing_generator(noisy),
            total=self.total(noisy),
        )

    def publish(self, noisy: Noisy) -> Published:
        agreed, total = self.consistent_margins(noisy), self.total(noisy)
        whole = _fitted(self, noisy.to_bytes(), total).margins(self.domain.shape, self.sets)
        tables = [
            self._table(*parts)
            for parts in zip(
                self.domains,
                self.noisy_margins(noisy),
                agreed,
                whole,
                self._count_errors(noisy, agreed, whole),
                strict=True,
            )
        ]
        facts: dict[str, object] = {"tables": len(tables), "cells": self.cells}
        return Published(tuple(tables), facts | self.weight_facts)

    def _count_errors(
        self, noisy: Noisy, agreed: list[Margin], whole: list[Integers]
    ) -> list[Floats]:
        """Root mean squared errors of ``count``: noise and fit, repeated on the fitted tables.

        (count - exact)^2 is (count - estimate)^2 plus what the noise in estimate adds.  The first is
        known and only the second, which is small, is simulated; so a fit that leaves something out
        is noticed (covariance penalties, Efron 2004).  No stated error is below that of the
        simulation.
        """
        scales = np.repeat(
            [max(margin.variance, 1e-12) ** 0.5 for margin in agreed],
            [margin.table.size for margin in agreed],
        )
        counts, estimates = _all_cells(whole), _all_cells([margin.table for margin in agreed])
        generator = post_processing_generator(noisy)
        added, errors, levels = [], [], []
        for _ in range(int(np.clip(SIMULATED // self.cells, 1, MOST_REPEATS))):
            again = self._drawn_again(noisy, counts, generator)
            records = self.fit(again, self.total(again))
            fitted = _all_cells(records.margins(self.domain.shape, self.sets))
            estimated = _all_cells([margin.table for margin in self.consistent_margins(again)])
            errors.append(((fitted - counts) / scales) ** 2)
            added.append(errors[-1] - ((fitted - estimated) / scales) ** 2)
            levels.append(fitted / scales)
        seen, at = ((counts - estimates) / scales) ** 2, counts / scales
        simulated = pooled_means(np.stack(errors), np.stack(levels), at)
        squares = pooled_means(seen, at, at) + pooled_means(np.stack(added), np.stack(levels), at)
        ends = np.cumsum([table.size for table in whole])[:-1]
        return np.split(np.sqrt(np.maximum(squares, simulated)) * scales, ends)

    def _drawn_again(self, noisy: Noisy, counts: Integers, generator: np.random.Generator) -> Noisy:
        """A noisy statistic like this one, had ``counts`` been the exact one: for simulation."""
        return Noisy(counts + self.mechanism.simulate(self.cells, generator))

    def _table(
        self,
        domain: Domain,
        drawn: Margin,
        agreed: Margin,
        whole: Integers,
        errors: Floats,
    ) -> Table:
        unit, size = self.unit, domain.size
        estimate, error = agreed.table.ravel(), agreed.variance**0.5
        ends = bounded_interval(estimate, TWO_SIDED * error, ONE_SIDED * error, self.most_rows)
        total = f" and with the number of {unit.things}" if self.adjacency.public_rows else ""
        columns = [
            *describe_cells(domain),
            *unit.noisy_columns(
                np.rint(drawn.table.ravel()).astype(np.int64),
                drawn.variance**0.5,
                ", as drawn",
                "noisy_standard_error",
            ),
            unit.column(
                "estimate",
                estimate,
                f"noisy_count adjusted so that all tables of the release agree with each other{total};"
                " unbiased, may be negative",
            ),
            unit.column(
                "standard_error",
                np.full(size, error),
                "Standard deviation of the noise left in estimate",
            ),
            *unit.interval(*ends, " (normal)"),
            unit.column(
                "count",
                whole.ravel().astype(np.int64),
                f"A {unit.whole} that is not negative; all tables of the release agree",
            ),
            unit.column(
                "count_standard_error", errors, "Root mean squared error of count, simulated"
            ),
        ]
        return Table("tables", self.table_name(domain), columns, self._uncertainty())

    def _uncertainty(self) -> tuple[Uncertainty, ...]:
        return (
            Uncertainty(
                "noisy_count",
                "noisy_standard_error",
                None,
                "exact",
                "From the distribution of the noise; estimate is at least as accurate.",
            ),
            Uncertainty(
                "estimate",
                "standard_error",
                ENDS,
                "normal",
                "The variance after agreement is exact. The interval is normal and cut to the possible"
                f" {self.unit.numbers}, so that it is not empty even where estimate is negative.",
            ),
            Uncertainty(
                "count",
                "count_standard_error",
                ENDS,
                "simulated",
                "The standard error comes from the distance between count and estimate, and from noise"
                f" and fit repeated on the published {self.unit.numbers}, pooled over cells of about"
                " the same size. The interval is that of estimate.",
            ),
        )

    def expected_error(self) -> tuple[ErrorStatement, ...]:
        drawn = self.stddev
        empty = [
            Margin(attrs, np.zeros(domain.shape), drawn**2)
            for attrs, domain in zip(self.sets, self.domains, strict=True)
        ]
        errors = [self._consistent_variance(empty, attrs) ** 0.5 for attrs in self.sets]
        mean_absolute = sum(
            error * domain.size * (2 / np.pi) ** 0.5
            for error, domain in zip(errors, self.domains, strict=True)
        )
        unit, width = self.unit, TWO_SIDED * max(errors)
        one = f"standard error of a {unit.number}"
        return (
            ErrorStatement(f"{one} as drawn", unit.scaled(drawn)),
            ErrorStatement(f"{one}, at most", unit.scaled(max(errors)), "after agreement"),
            ErrorStatement(
                f"90% interval of a {unit.number}: plus or minus, at most", unit.scaled(width)
            ),
            ErrorStatement(
                "expected L1 error per table",
                unit.scaled(mean_absolute / len(self.sets)),
                f"mean over tables, normal; {mean_absolute / len(self.sets) / self.rows:.1%} of all"
                f" {unit.things}",
            ),
        )

    def table_name(self, domain: Domain) -> str:
        return dotted_name(self.name, domain)

    def sum_variance(self, weights: Mapping[str, Floats]) -> float:
        """Of sums of ``estimate``, over one table or several: agreement makes cells covary."""
        places = {self.table_name(domain): i for i, domain in enumerate(self.domains)}
        nothing = Noisy(np.zeros(self.cells, dtype=np.int64))
        variance = combination_variance(
            self.domain.shape,
            self.noisy_margins(nothing),
            {
                places[name]: weight.reshape(self.domains[places[name]].shape)
                for name, weight in weights.items()
            },
            public_total=self.adjacency.public_rows,
        )
        return variance * float(self.step) ** 2

    def _consistent_variance(self, margins: Sequence[Margin], attrs: Sequence[int]) -> float:
        return consistent_variance(
            self.domain.shape, margins, attrs, public_total=self.adjacency.public_rows
        )

    def supported_margin(self, noisy: Noisy, names: tuple[str, ...]) -> tuple[Floats, float] | None:
        attrs = tuple(sorted(self.domain.names.index(name) for name in names))
        followed = self.sets if self.tree is None else (*self._edges(noisy), *_singles(self.sets))
        if not any(set(attrs) <= set(other) for other in followed):
            return None
        covering = next(
            m for m in _agreed(self, noisy.to_bytes()) if set(attrs) <= set(m.attributes)
        )
        table = summed_to(covering.table, covering.attributes, attrs)
        variance = self._consistent_variance(self.noisy_margins(noisy), attrs)
        return self.scaled_margin(table.ravel(), variance**0.5)

    def _edges(self, noisy: Noisy) -> tuple[tuple[int, int], ...]:
        """The tree that records follow."""
        if isinstance(self.tree, tuple):
            return self.tree
        return tuple(spanning_tree(self.domain.shape, self.noisy_margins(noisy), self.total(noisy)))

    def sample(self, noisy: Noisy, rows: int) -> tuple[Domain, Integers]:
        """Synthetic records from all tables at once, or along the named tree.

        Without a tree and with as many rows as the survey they are the records whose margins are
        published as ``count``.
        """
        generator = post_processing_generator(noisy)
        if self.tree is None:
            records = _fitted(self, noisy.to_bytes(), rows).records()
        else:
            shape, margins = self.domain.shape, self.noisy_margins(noisy)
            total = self.total(noisy)
            records = sample_tree(shape, self._edges(noisy), margins, rows, generator, total)
        return self.domain, generator.permutation(records)


@lru_cache(maxsize=2)
def _fitted(release: Margins, data: bytes, rows: int) -> WeightedRecords:
    """The result of ``fit``, computed once for the tables and the synthetic records."""
    return release.fit(Noisy.from_bytes(data), rows)


@lru_cache(maxsize=1)
def _agreed(release: Margins, data: bytes) -> list[Margin]:
    return release.consistent_margins(Noisy.from_bytes(data))


def _singles(sets: Sequence[tuple[int, ...]]) -> set[tuple[int, ...]]:
    return {(attribute,) for attrs in sets for attribute in attrs}


def _all_cells(tables: Sequence[NDArray[Any]]) -> NDArray[Any]:
    return np.concatenate([table.ravel() for table in tables])


def dotted_name(release: str, domain: Domain) -> str:
    """The name of a release's table over some columns, fit for a file."""
    return ".".join([release, *map(file_word, domain.names)])


def file_word(name: str) -> str:
    """A column name as part of a file name."""
    return "".join(c if c.isalnum() or c in "-_" else "-" for c in name)
