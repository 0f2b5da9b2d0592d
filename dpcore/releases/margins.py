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
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dpcore.domain import Domain, Tally
from dpcore.mechanisms import DiscreteGaussian, DiscreteLaplace
from dpcore.post.bounded import bounded_interval
from dpcore.post.consistency import (
    combination_variance,
    consistent_variance,
    estimated_total,
    make_consistent,
)
from dpcore.post.margins import Margin, summed_to
from dpcore.post.simulation import noise_like, pooled_means
from dpcore.post.tree import sample_tree, spanning_tree
from dpcore.post.weighted import Weighted, fit_weighted
from dpcore.releases.base import (
    ONE_SIDED,
    TWO_SIDED,
    ErrorStatement,
    Published,
    Release,
    Table,
    Uncertainty,
    post_processing_generator,
)
from dpcore.releases.cells import describe_cells, described_as
from dpcore.statistic import Exact, Noisy

LARGEST_TOTAL = 2**24
"""The most cells that the tables of one release may have together."""

SIMULATED = 1000
"""Errors of counts are simulated for at least this many cells: fitting records takes its time."""

MOST_REPEATS = 20

UNCERTAINTY = (
    Uncertainty(
        "noisy_count",
        "noisy_standard_error",
        None,
        "exact",
        "The law of the noise is known; estimate is at least as accurate.",
    ),
    Uncertainty(
        "estimate",
        "standard_error",
        ("lower_90", "upper_90"),
        "normal",
        "The variance after agreement is exact. The interval is normal, and made for counts from 0"
        " to the rows: it is a range even where estimate is negative.",
    ),
    Uncertainty(
        "count",
        "count_standard_error",
        ("lower_90", "upper_90"),
        "simulated",
        "The standard error is seen from the distance of count and estimate, and from noise and fit"
        " repeated on the published counts, pooled over cells of about the same count. The interval"
        " is that of estimate.",
    ),
)


@dataclass(frozen=True)
class Margins(Release):
    """Count tables over ``sets`` of positions in the domain, each ascending."""

    sets: tuple[tuple[int, ...], ...] = ()
    noise: Literal["discrete-laplace", "discrete-gaussian"] = "discrete-laplace"

    tree: tuple[tuple[int, int], ...] | Literal["auto"] | None = None
    """Edges of a spanning tree that synthetic records follow, or the tree that the noisy tables
    suggest; None fits all tables at once."""

    def __post_init__(self) -> None:
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
            raise ValueError(f"sets: {missing} are columns of no set, so nothing is said of them")
        joined = list(range(len(names)))
        for one, other in self.tree if isinstance(self.tree, tuple) else ():
            if not any({one, other} <= set(attrs) for attrs in self.sets):
                raise ValueError(f"tree: no set holds both {names[one]!r} and {names[other]!r}")
            if joined[one] == joined[other]:
                raise ValueError(f"tree: {names[one]!r} - {names[other]!r} closes a cycle")
            joined = [joined[one] if part == joined[other] else part for part in joined]

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
        """The records that the tables describe: the rows, or one at least that all tables tell."""
        if self.adjacency.public_rows:
            return self.rows
        return round(estimated_total(self.noisy_margins(noisy)))

    def fit(self, noisy: Noisy, rows: int) -> Weighted:
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
        return Published(tuple(tables), {"tables": len(tables), "cells": self.cells})

    def _count_errors(
        self, noisy: Noisy, agreed: list[Margin], whole: list[NDArray[np.int64]]
    ) -> list[NDArray[np.float64]]:
        """Root mean squared errors of ``count``: noise and fit, repeated on the fitted tables.

        Of  (count - exact)^2 = (count - estimate)^2 + what the noise in estimate adds,  the first
        is seen and only the second, small and law-like, is simulated: so a fit that leaves
        something out is noticed (covariance penalties, Efron 2004).  No error is stated below that
        of the simulation.
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

    def _drawn_again(
        self, noisy: Noisy, counts: NDArray[np.int64], generator: np.random.Generator
    ) -> Noisy:
        """A noisy statistic like this one, had ``counts`` been the exact one: for simulation."""
        return Noisy(counts + noise_like(self.mechanism.event, self.cells, generator))

    def _table(
        self,
        domain: Domain,
        drawn: Margin,
        agreed: Margin,
        whole: NDArray[np.int64],
        errors: NDArray[np.float64],
    ) -> Table:
        columns, descriptions = describe_cells(domain, np.arange(domain.size))
        estimate, error = agreed.table.ravel(), agreed.variance**0.5
        lower, upper = bounded_interval(
            estimate, TWO_SIDED * error, ONE_SIDED * error, self.most_rows
        )
        return Table(
            "tables",
            self._table_name(domain),
            columns
            | {
                "noisy_count": np.rint(drawn.table.ravel()).astype(np.int64),
                "noisy_standard_error": np.full(domain.size, drawn.variance**0.5),
                "estimate": estimate,
                "standard_error": np.full(domain.size, error),
                "lower_90": lower,
                "upper_90": upper,
                "count": whole.ravel().astype(np.int64),
                "count_standard_error": errors,
            },
            descriptions
            | {
                "noisy_count": "Count of records plus noise of mean zero, as drawn",
                "noisy_standard_error": "Standard deviation of the noise in noisy_count",
                "estimate": "noisy_count adjusted so that all tables of the release agree with each"
                + f" other{' and with the rows' * self.adjacency.public_rows};"
                + " unbiased, may be negative",
                "standard_error": "Standard deviation of the noise left in estimate",
                "lower_90": "Lower end of a 90% interval for the exact count (normal)",
                "upper_90": "Upper end of a 90% interval for the exact count (normal)",
                "count": "Whole number that is not negative; all tables of the release agree",
                "count_standard_error": "Root mean squared error of count, simulated",
            },
            described_as(domain),
            UNCERTAINTY,
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
        width = TWO_SIDED * max(errors)
        return (
            ErrorStatement("standard error of a count as drawn", drawn),
            ErrorStatement("standard error of a count, at most", max(errors), "after agreement"),
            ErrorStatement("90% interval of a count: plus or minus, at most", width),
            ErrorStatement(
                "expected L1 error per table",
                mean_absolute / len(self.sets),
                f"mean over tables, normal; {mean_absolute / len(self.sets) / self.rows:.1%} of rows",
            ),
        )

    def _table_name(self, domain: Domain) -> str:
        return f"{self.name}.{'.'.join(file_word(name) for name in domain.names)}"

    def sum_variance(self, weights: Mapping[str, NDArray[np.float64]]) -> float:
        """Of sums of ``estimate``, over one table or several: agreement makes cells covary."""
        places = {self._table_name(domain): i for i, domain in enumerate(self.domains)}
        nothing = Noisy(np.zeros(self.cells, dtype=np.int64))
        return combination_variance(
            self.domain.shape,
            self.noisy_margins(nothing),
            {
                places[name]: weight.reshape(self.domains[places[name]].shape)
                for name, weight in weights.items()
            },
            public_total=self.adjacency.public_rows,
        )

    def _consistent_variance(self, margins: Sequence[Margin], attrs: Sequence[int]) -> float:
        return consistent_variance(
            self.domain.shape, margins, attrs, public_total=self.adjacency.public_rows
        )

    def supported_margin(
        self, noisy: Noisy, names: tuple[str, ...]
    ) -> tuple[NDArray[np.float64], float] | None:
        attrs = tuple(sorted(self.domain.names.index(name) for name in names))
        followed = self.sets if self.tree is None else (*self._edges(noisy), *_singles(self.sets))
        if not any(set(attrs) <= set(other) for other in followed):
            return None
        covering = next(
            m for m in _agreed(self, noisy.to_bytes()) if set(attrs) <= set(m.attributes)
        )
        table = summed_to(covering.table, covering.attributes, attrs)
        return table.ravel(), self._consistent_variance(self.noisy_margins(noisy), attrs) ** 0.5

    def _edges(self, noisy: Noisy) -> tuple[tuple[int, int], ...]:
        """The tree that records follow."""
        if isinstance(self.tree, tuple):
            return self.tree
        return tuple(spanning_tree(self.domain.shape, self.noisy_margins(noisy), self.total(noisy)))

    def sample(self, noisy: Noisy, rows: int) -> tuple[Domain, NDArray[np.int64]]:
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
def _fitted(release: Margins, data: bytes, rows: int) -> Weighted:
    """What ``fit`` gives, once: the tables and the synthetic records want the same."""
    return release.fit(Noisy.from_bytes(data), rows)


@lru_cache(maxsize=1)
def _agreed(release: Margins, data: bytes) -> list[Margin]:
    return release.consistent_margins(Noisy.from_bytes(data))


def _singles(sets: Sequence[tuple[int, ...]]) -> set[tuple[int, ...]]:
    return {(attribute,) for attrs in sets for attribute in attrs}


def _all_cells(tables: Sequence[NDArray[Any]]) -> NDArray[Any]:
    return np.concatenate([table.ravel() for table in tables])


def file_word(name: str) -> str:
    """A column name as part of a file name."""
    return "".join(c if c.isalnum() or c in "-_" else "-" for c in name)
