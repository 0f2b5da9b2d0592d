"""Consistent count tables, and records that are fitted to them.

The tables are published in two forms: as the least squares estimate from all measurements, in which
they agree with each other and with n if it is public; and as non-negative whole numbers that are the
margins of one table of records.  The exact variances of the estimate do not depend on the draw.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import chain
from typing import Self

import numpy as np
from numpy.typing import NDArray

from dpcore.arrays import Floats, Integers
from dpcore.domain.domain import Domain, size_text
from dpcore.domain.tally import Tally
from dpcore.line.mechanism import Mechanism
from dpcore.line.statistic import Exact, Noisy
from dpcore.post.records.weighted import LARGEST_FIT, WeightedRecords
from dpcore.post.tables.consistency import Agreement, side_by_side
from dpcore.post.tables.count_errors import repeats
from dpcore.post.tables.margins import Attributes, Margin, summed_to
from dpcore.releases.abilities import FitsRecords, blocks_of
from dpcore.releases.base import ErrorStatement, post_processing_generator
from dpcore.releases.counts.cells import describe_cells
from dpcore.releases.replicates import agreed_again, replicate_generator
from dpcore.releases.table import TWO_SIDED, Published, TableColumn
from dpcore.releases.tables.agreed import AgreedTables
from dpcore.releases.tables.allocation import MOST_WAYS, Aim, agreed_variances
from dpcore.releases.tables.measured import MeasuredTables, TableNoise
from dpcore.releases.work import Work, publishing

LARGEST_TOTAL = 2**24
"""The most cells that the tables of one release may have together."""

FITTED = 5e-4
"""CPU seconds of a fit per square root of records and of tables; larger fits take fewer steps."""

SIMULATED = 1000
"""Errors of counts are simulated for at least this many cells; not more, because fits take long."""


@dataclass(frozen=True)
class FittedTables(AgreedTables, FitsRecords):
    """Count tables over ``sets`` of positions in the domain, each ascending, and records.

    It combines a measurement (``measurement``) and a way to fit records to it (``fit``).  ``aim``: the
    aim of the precisions; None if all tables get the same.
    """

    sets: tuple[Attributes, ...] = ()
    noise: TableNoise = "discrete-laplace"
    aim: Aim | None = None

    chart = "cells"
    refines = "counts"
    estimate_means = (
        " plus noise of mean zero, from all measurements. All tables of the release agree with each"
        " other{total}. May be negative"
    )
    count_means = "all tables of the release agree"

    def __post_init__(self) -> None:
        super().__post_init__()
        cells = self.measurement.cells
        if cells > LARGEST_TOTAL:
            raise ValueError(
                f"{size_text(cells)} cells in {len(self.tables)} tables are too many; use fewer ways,"
                " fewer columns or wider bins"
            )
        held = set(chain.from_iterable(self.tables))
        missing = [name for i, name in enumerate(self.domain.names) if i not in held]
        if missing:
            raise ValueError(f"sets: no set contains the columns {missing}")

    @cached_property
    def measurement(self) -> MeasuredTables:
        """The measured tables, with their noise."""
        of = self.domain.shape, self.share, self.adjacency, self.sets, self.noise
        return MeasuredTables(*of, self.aim)

    @abstractmethod
    def fit(self, noisy: Noisy, rows: int) -> WeightedRecords:
        """Records whose margins are near the noisy ones."""

    @property
    def tables(self) -> tuple[Attributes, ...]:
        return self.measurement.sets

    @property
    def mechanism(self) -> Mechanism:
        return self.measurement.mechanism

    def in_series(self) -> Self:
        """The release that each run of a series counts: the noises of runs add up cell by cell, so all
        tables get the same."""
        if self.aim not in ("balanced", "records", None):
            raise ValueError(
                "optimise: remove it, because a series measures all tables with the same noise"
            )
        return replace(self, aim=None)

    def statistic(self, tally: Tally) -> Exact:
        names = self.domain.names

        def table(attributes: Attributes) -> Integers:
            counts = tally.margin(tuple(names[a] for a in attributes))
            return counts.reshape([self.domain.shape[a] for a in attributes])

        return Exact(self.counted(table))

    def counted(self, table: Callable[[Attributes], Integers]) -> Integers:
        """The numbers to which noise is added, from the tables over sets of columns."""
        return self.measurement.counted(table)

    @cached_property
    def domains(self) -> tuple[Domain, ...]:
        axes = self.domain.axes
        return tuple(Domain(tuple(axes[a] for a in attributes)) for attributes in self.tables)

    def agreement(self, noisy: Noisy) -> Agreement:
        """The measurements as consistent tables, also with the number of records if that is public."""
        total = float(self.rows) if self.adjacency.public_rows else None
        return Agreement(self.domain.shape, self.measurement.measured(noisy), total)

    @cached_property
    def of_nothing(self) -> Agreement:
        return self.agreement(Noisy(np.zeros(self.mechanism.size, dtype=np.int64)))

    def cell_variances(self, tables: Sequence[Attributes]) -> Floats:
        """The variance (tables,) of a cell of each table after agreement, the same for every draw."""
        if max(map(len, self.tables)) > MOST_WAYS:  # too many subsets to list
            return np.array([self.of_nothing.margin(attributes).variance for attributes in tables])
        blocks, variances = self.measurement.allocation.blocks, self.measurement.variances
        known = self.adjacency.public_rows
        return agreed_variances(self.domain.shape, tables, blocks, variances, known)

    def consistent_margins(self, noisy: Noisy) -> list[Margin]:
        """The tables, adjusted to agree with each other, and with the number of rows if it is public."""
        agreement = self.agreement(noisy)
        return [agreement.margin(attributes) for attributes in self.tables]

    def noisy_margins(self, noisy: Noisy) -> list[Margin]:
        """The tables for models: the drawn ones, or ``consistent_margins`` if residuals were drawn."""
        if self.measurement.allocation.equal:
            drawn = self.measurement.measured(noisy)
            return [each for each in drawn if isinstance(each, Margin)]
        return self.consistent_margins(noisy)

    def total(self, noisy: Noisy) -> int:
        if self.adjacency.public_rows:
            return self.rows
        return max(round(float(self.agreement(noisy).margin(()).table)), 1)

    @property
    def work(self) -> Work:
        cells = self.measurement.cells
        once = self.model_seconds + self.fit_seconds(self.rows)
        return publishing(cells) + Work((1 + repeats(cells, SIMULATED)) * once)

    def fit_seconds(self, rows: int) -> float:
        return FITTED * math.sqrt(min(rows, LARGEST_FIT) * max(len(self.tables), 16))

    def publish(self, noisy: Noisy) -> Published:
        agreed, total = self.consistent_margins(noisy), self.total(noisy)
        whole = _fitted(self, noisy.to_bytes(), total).margins(self.domain.shape, self.tables)
        estimates = [margin.table for margin in agreed]
        stddevs = [np.full(each.table.shape, max(each.variance, 0.0) ** 0.5) for each in agreed]
        tables = self.agreed_tables(estimates, stddevs, whole, self._again(noisy, whole))
        cells = sum(table.size for table in whole)
        facts: dict[str, object] = {"tables": len(tables), "cells": cells}
        return Published(tables, facts | self.weight_facts)

    def _again(
        self, noisy: Noisy, whole: list[Integers]
    ) -> Iterator[tuple[list[Integers], list[Floats]]]:
        """Counts and estimates from simulated noise and fits, starting from the fitted tables."""
        generator = post_processing_generator(noisy)
        for _ in range(repeats(self.measurement.cells, SIMULATED)):
            drawn = self._drawn_again(whole, generator)
            fitted = self.fit(drawn, self.total(drawn)).margins(self.domain.shape, self.tables)
            yield fitted, [margin.table for margin in self.consistent_margins(drawn)]

    def described(self, domain: Domain) -> list[TableColumn]:
        return describe_cells(domain)

    def _drawn_again(self, whole: list[Integers], generator: np.random.Generator) -> Noisy:
        """A simulated noisy statistic, with these tables as the exact ones."""

        def table(attributes: Attributes) -> Integers:
            # Fitted tables agree, so any table that contains these columns will do.
            holding = (i for i, each in enumerate(self.tables) if {*attributes} <= {*each})
            place = next(holding)
            return summed_to(whole[place], self.tables[place], attributes)

        return Noisy(self.counted(table) + self.noise_alone(generator).values)

    def replicate_noise(self, noisy: Noisy, number: int) -> Mapping[str, NDArray[np.float32]]:
        """Simulated noise of all measurements, after the agreement of the tables."""
        generator = replicate_generator(noisy)
        # Noise alone adds up to zero if the number of records is public.
        total = 0.0 if self.adjacency.public_rows else None

        def noise(several: int) -> list[Floats]:
            again = [self.measurement.measured(self.noise_alone(generator)) for _ in range(several)]
            agreed = side_by_side([Agreement(self.domain.shape, each, total) for each in again])
            return [self.unit.scaled(agreed.margin(attrs).table) for attrs in self.tables]

        domains = self.domains
        tables = agreed_again(noise, [domain.size for domain in domains], number)
        names = [self.table_name(domain) for domain in domains]
        return dict(zip(names, tables, strict=True))

    def expected_error(self) -> tuple[ErrorStatement, ...]:
        errors = np.sqrt(self.cell_variances(self.tables)).tolist()
        mean_absolute = sum(
            error * domain.size * (2 / np.pi) ** 0.5
            for error, domain in zip(errors, self.domains, strict=True)
        )
        unit, width = self.unit, TWO_SIDED * max(errors)
        wished = self.aim in ("mean", "max") or isinstance(self.aim, tuple)
        equal = "; for this aim, equal precision of all tables is best" * (
            wished and self.measurement.allocation.equal
        )
        one = f"standard error of a {unit.number}"
        in_wrong = min(mean_absolute / len(self.tables) / self.rows / 2, 1.0)
        return (
            ErrorStatement(
                f"{one}, at most", unit.scaled(max(errors)), "once the tables agree" + equal
            ),
            ErrorStatement(
                f"90% interval of a {unit.number}: at most plus or minus", unit.scaled(width)
            ),
            ErrorStatement(
                "expected L1 error per table",
                unit.scaled(mean_absolute / len(self.tables)),
                f"mean over tables; noise puts {in_wrong:.1%} of the {unit.things} into wrong cells",
            ),
        )

    def sum_variance(self, weights: Mapping[str, Floats]) -> float:
        """The variance of sums of ``estimate`` over one or more tables, whose cells are correlated."""
        places = {
            self.table_name(d): attrs for d, attrs in zip(self.domains, self.tables, strict=True)
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
        holding: dict[int, list[set[int]]] = {}
        for table in self.tables:
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

    def sample(self, noisy: Noisy, rows: int) -> tuple[Domain, Integers]:
        domain, blocks = self.sample_blocks(noisy, rows)
        return domain, np.concatenate([*blocks])

    def sample_blocks(self, noisy: Noisy, rows: int) -> tuple[Domain, Iterator[Integers]]:
        generator = post_processing_generator(noisy)
        # For as many rows as the survey has, these are the records whose margins are published as
        # ``count``.
        blocks = _fitted(self, noisy.to_bytes(), rows).blocks(len(blocks_of(rows)))
        # Unpermuted, copies of a record would be adjacent.
        return self.domain, map(generator.permutation, blocks)


@lru_cache(maxsize=2)
def _fitted(release: FittedTables, data: bytes, rows: int) -> WeightedRecords:
    """The result of ``fit``, computed once for the tables and the synthetic records."""
    return release.fit(Noisy.from_bytes(data), rows)


@lru_cache(maxsize=1)
def _agreement(release: FittedTables, data: bytes) -> Agreement:
    return release.agreement(Noisy.from_bytes(data))
