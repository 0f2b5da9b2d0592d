"""Contingency margins: the measured tables, and records from them.

The tables are published twice over: as the least squares estimate from all that was measured
(``measured_margins``), with its exact standard error; and as whole numbers that are not negative, agree,
and are the margins of one table of records.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal
from unicodedata import category

import numpy as np
from numpy.typing import NDArray

from dpcore.arrays import Floats, Integers
from dpcore.domain.domain import Domain
from dpcore.line.statistic import Noisy
from dpcore.post.records.tree import sample_tree, spanning_tree
from dpcore.post.records.weighted import LARGEST_FIT, WeightedRecords, fit_weighted
from dpcore.post.tables.bounded import bounded_interval
from dpcore.post.tables.consistency import Agreement, side_by_side
from dpcore.post.tables.count_errors import count_errors, repeats
from dpcore.post.tables.margins import Attributes, Margin, summed_to
from dpcore.releases.base import ErrorStatement, Release, Tree, post_processing_generator
from dpcore.releases.counts.cells import describe_cells
from dpcore.releases.counts.unit import OF_COUNTS, around_count
from dpcore.releases.replicates import agreed_again, replicate_generator
from dpcore.releases.table import (
    COUNT_ENDS,
    ENDS,
    ONE_SIDED,
    TWO_SIDED,
    Published,
    Table,
    Uncertainty,
)
from dpcore.releases.tables.measured_margins import MeasuredMargins
from dpcore.releases.work import Work, publishing

FITTED, RULED = 2e-5, 1.5e-6
"""Seconds of a fit for each record and root of the number of tables, of which more take fewer steps; and
for each record and rule."""

SIMULATED = 1000
"""Errors of counts are simulated for at least this many cells: fitting records takes its time."""


@dataclass(frozen=True)
class Margins(MeasuredMargins):
    """Count tables, and the records that they describe."""

    tree: tuple[tuple[int, int], ...] | Literal["auto"] | None = None
    """Edges of a spanning tree that synthetic records follow, or the tree that the noisy tables
    suggest; None fits all tables at once."""

    chart = "cells"
    refines = "counts"
    statistics = (*(name for name in OF_COUNTS if name != "noisy_count"), "estimate")

    def __post_init__(self) -> None:
        super().__post_init__()
        names = self.domain.names
        joined = list(range(len(names)))
        for one, other in self.tree if isinstance(self.tree, tuple) else ():
            if not any({one, other} <= set(attrs) for attrs in self.sets):
                raise ValueError(f"tree: no set holds both {names[one]!r} and {names[other]!r}")
            if joined[one] == joined[other]:
                raise ValueError(f"tree: {names[one]!r} - {names[other]!r} closes a cycle")
            joined = [joined[one] if part == joined[other] else part for part in joined]

    def sampler(self, rows: int, tree: Tree | None = None) -> Release:
        if tree == self.tree:
            return self
        if tree is None or isinstance(tree, str):
            return replace(self, tree=tree)
        names = self.domain.names
        for a, b in tree:
            if a not in names or b not in names or a == b:
                raise ValueError(f"tree: {a!r} - {b!r} are not two columns of the margins")
        return replace(self, tree=tuple((names.index(a), names.index(b)) for a, b in tree))

    @property
    def work(self) -> Work:
        once = self._model_seconds + self.fit_seconds(self.rows)
        return publishing(self.cells) + Work((1 + repeats(self.cells, SIMULATED)) * once)

    def fit_seconds(self, rows: int) -> float:
        """To fit so many records to the tables."""
        return min(rows, LARGEST_FIT) * FITTED * math.sqrt(max(len(self.sets), 16))

    @property
    def _model_seconds(self) -> float:
        """Of what goes before a fit of records to the tables."""
        return 0.0

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
        sets = self.sets_of(noisy)
        whole = _fitted(self, noisy.to_bytes(), total).margins(self.domain.shape, sets)
        tables = [
            self._table(*parts)
            for parts in zip(
                self.domains_of(noisy),
                agreed,
                whole,
                *self._count_errors(noisy, agreed, whole),
                strict=True,
            )
        ]
        cells = sum(table.size for table in whole)
        facts: dict[str, object] = {"tables": len(tables), "cells": cells}
        return Published(tuple(tables), facts | self.weight_facts)

    def _count_errors(
        self, noisy: Noisy, agreed: list[Margin], whole: list[Integers]
    ) -> Iterator[list[Floats]]:
        """Root mean squared errors of ``count``, and both ends of 90% intervals around it.

        Noise and fit are repeated on the fitted tables.
        """
        sizes = [table.size for table in whole]
        stddevs = np.repeat([max(margin.variance, 0.0) ** 0.5 for margin in agreed], sizes)
        counts, estimates = _all_cells(whole), _all_cells([margin.table for margin in agreed])
        generator, sets = post_processing_generator(noisy), self.sets_of(noisy)

        def again() -> Iterator[tuple[Integers, Floats]]:
            for _ in range(repeats(self.cells, SIMULATED)):
                drawn = self._drawn_again(noisy, whole, generator)
                fitted = self.fit(drawn, self.total(drawn)).margins(self.domain.shape, sets)
                estimated = [margin.table for margin in self.consistent_margins(drawn)]
                yield _all_cells(fitted), _all_cells(estimated)

        ends = self._interval(estimates, stddevs)
        found = count_errors(counts, estimates, stddevs, ends, counts, sizes, again())
        return (np.split(each, np.cumsum(sizes)[:-1]) for each in found)

    def _interval(self, estimate: Floats, error: Floats | float) -> tuple[Floats, Floats]:
        """Ends of 90% intervals for the exact numbers behind unbiased ones."""
        return bounded_interval(estimate, TWO_SIDED * error, ONE_SIDED * error, self.most_rows)

    def _drawn_again(
        self, noisy: Noisy, whole: list[Integers], generator: np.random.Generator
    ) -> Noisy:
        """A noisy statistic like this one, had these tables been the exact ones: for simulation."""
        sets = self.sets_of(noisy)

        def table(attributes: Attributes) -> Integers:
            place = next((i for i, attrs in enumerate(sets) if set(attributes) <= set(attrs)), None)
            if place is None:  # it was not chosen
                return np.zeros([self.domain.shape[a] for a in attributes], dtype=np.int64)
            return summed_to(whole[place], sets[place], attributes)

        return self._plus_noise(noisy, self._counted(table), generator)

    def _plus_noise(self, noisy: Noisy, counted: Integers, generator: np.random.Generator) -> Noisy:
        """A noisy statistic like this one, had this been counted."""
        return Noisy(counted + self.mechanism.simulate(counted.size, generator))

    def noise_alone(self, noisy: Noisy, generator: np.random.Generator) -> Noisy:
        nothing = np.zeros(self.mechanism.size, dtype=np.int64)
        return self._plus_noise(noisy, nothing, generator)

    def replicate_noise(self, noisy: Noisy, number: int) -> Mapping[str, NDArray[np.float32]]:
        """The noise in all that was measured, sent through the agreement of the tables."""
        generator, sets = replicate_generator(noisy), self.sets_of(noisy)
        total = 0.0 if self.adjacency.public_rows else None

        def noise(several: int) -> list[Floats]:
            again = [self.measured(self.noise_alone(noisy, generator)) for _ in range(several)]
            agreed = side_by_side([Agreement(self.domain.shape, each, total) for each in again])
            return [self.unit.scaled(agreed.margin(attrs).table) for attrs in sets]

        domains = self.domains_of(noisy)
        tables = agreed_again(noise, [domain.size for domain in domains], number)
        names = [self.table_name(domain) for domain in domains]
        return dict(zip(names, tables, strict=True))

    def _table(
        self,
        domain: Domain,
        agreed: Margin,
        whole: Integers,
        errors: Floats,
        lower: Floats,
        upper: Floats,
    ) -> Table:
        unit, size = self.unit, domain.size
        estimate, error = agreed.table.ravel(), agreed.variance**0.5
        ends = self._interval(estimate, error)
        total = f" and with the number of {unit.things}" if self.adjacency.public_rows else ""
        columns = [
            *describe_cells(domain),
            unit.column(
                "estimate",
                estimate,
                f"{unit.amount} plus noise of mean zero, from all that was measured; all tables of the"
                f" release agree with each other{total}; may be negative",
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
            *unit.count_interval(lower, upper, self.most_rows),
        ]
        return Table("tables", self.table_name(domain), columns, self._uncertainty())

    def _uncertainty(self) -> tuple[Uncertainty, ...]:
        said = (
            f"{around_count('estimate', self.unit)} The standard error also knows the distance between"
            " count and estimate."
        )
        return (
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
                COUNT_ENDS,
                "simulated",
                said,
            ),
        )

    def expected_error(self) -> tuple[ErrorStatement, ...]:
        errors = np.sqrt(self.cell_variances(self.sets)).tolist()
        mean_absolute = sum(
            error * domain.size * (2 / np.pi) ** 0.5
            for error, domain in zip(errors, self.domains, strict=True)
        )
        unit, width = self.unit, TWO_SIDED * max(errors)
        one = f"standard error of a {unit.number}"
        wished = self.aim in ("mean", "max") or isinstance(self.aim, tuple)
        alike = "; no precisions serve optimise better than equal ones" * (
            wished and self.allocation.equal
        )
        return (
            ErrorStatement(f"{one}, at most", unit.scaled(max(errors)), "in agreement" + alike),
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
        places = {
            self.table_name(d): attrs for d, attrs in zip(self.domains, self.sets, strict=True)
        }
        variance = self.of_nothing.combination_variance(
            {
                places[name]: weight.reshape([self.domain.shape[a] for a in places[name]])
                for name, weight in weights.items()
            }
        )
        return variance * float(self.step) ** 2

    def supported_margin(self, noisy: Noisy, names: tuple[str, ...]) -> tuple[Floats, float] | None:
        return next(self.supported_margins(noisy, [names]))

    def supported_margins(
        self, noisy: Noisy, several: Sequence[tuple[str, ...]]
    ) -> Iterator[tuple[Floats, float] | None]:
        sets = self.sets_of(noisy)
        followed = sets if self.tree is None else (*self._edges(noisy), *_singles(sets))
        holding: dict[int, list[set[int]]] = {}
        for table in followed:
            for attribute in table:
                holding.setdefault(attribute, []).append(set(table))
        agreement, positions = _agreement(self, noisy.to_bytes()), self.domain.positions

        def supported(names: tuple[str, ...]) -> tuple[Floats, float] | None:
            attrs = tuple(sorted(positions[name] for name in names))
            if not any(table.issuperset(attrs) for table in holding.get(attrs[0], ())):
                return None
            counts, variance = agreement.margin(attrs)[1:]
            return self.scaled_margin(counts.ravel(), variance**0.5)

        return map(supported, several)

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
def _agreement(release: Margins, data: bytes) -> Agreement:
    return release.agreement(Noisy.from_bytes(data))


def _singles(sets: Sequence[tuple[int, ...]]) -> set[tuple[int, ...]]:
    return {(attribute,) for attrs in sets for attribute in attrs}


def _all_cells(tables: Sequence[NDArray[Any]]) -> NDArray[Any]:
    return np.concatenate([table.ravel() for table in tables])


def dotted_name(release: str, domain: Domain) -> str:
    """The name of a release's table over some columns, fit for a file."""
    return ".".join([release, *map(file_word, domain.names)])


def file_word(name: str) -> str:
    """A column name as part of a file name: its letters with their marks, and digits."""
    return "".join(c if c.isalnum() or c in "-_" or category(c)[0] == "M" else "-" for c in name)
