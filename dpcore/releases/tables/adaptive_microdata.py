"""Synthetic microdata from pairs of which some are measured twice, and triples that pairs do not imply.

The worst errors of ``Microdata`` at a small budget lie in a few pairs of columns that are strongly
correlated, as a number and its deciles are; and records from pairs have nothing of an interaction of
three columns.  Here a fifth of the budget measures again the pairs that look strongly correlated in a
first noisy round, and triples of columns whose counts are far from what the noisy pairs imply
(``dpcore.mechanisms.adaptive_margins``).  Where a table was drawn twice, its counts are the means of
both draws, weighted by their precision.

Noise influences which tables are chosen, so in pairs the first draw errs a little towards association.
Their second draw does not, and has most of the weight where few of many tables are chosen;
``benchmarks.coverage`` measures the coverage of the intervals.

Candidates are the triples of the fewest cells, up to ``MOST_CELLS`` in all, whose three pairs are
measured: larger tables would be mostly noise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import chain, combinations
from typing import Self

import numpy as np

from dpcore.arrays import Floats, Integers
from dpcore.domain.domain import Domain
from dpcore.line.statistic import ABSENT, Noisy
from dpcore.mechanisms import AdaptiveMargins
from dpcore.mechanisms.adaptive_margins import Triples
from dpcore.post.tables.consistency import Agreement
from dpcore.post.tables.margins import Attributes, Margin, Residual, cells
from dpcore.releases.base import ErrorStatement
from dpcore.releases.table import Published
from dpcore.releases.tables.microdata import Microdata

MOST_CELLS = 2**16
"""Of all candidates together."""


@dataclass(frozen=True)
class AdaptiveMicrodata(Microdata):
    """``chosen``: how many pairs are measured twice; the noisy tables determine which.

    ``triples``: how many triples are measured; chosen from the counts, at a price.
    """

    draws_choose = True

    chosen: int = 20
    triples: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 <= self.chosen <= len(self.sets):
            raise ValueError(f"chosen: must lie between 1 and the {len(self.sets)} pairs")
        if any(len(attributes) != 2 for attributes in self.sets):
            raise ValueError("choose: adaptive chooses among pairs of columns")
        if self.triples and not 0 < self.triples <= len(self.candidates):
            if not self.candidates:
                raise ValueError(
                    "triples: no three columns have all of their pairs measured; write 0"
                )
            raise ValueError(
                f"triples: must lie between 0 and the {len(self.candidates)} triples that can be chosen:"
                f" their pairs are measured, and they have at most {MOST_CELLS:,} cells together"
            )

    @cached_property
    def candidates(self) -> tuple[Attributes, ...]:
        """The triples among which some are chosen: those of the fewest cells."""
        return candidates_among(self.domain.shape, self.sets)

    @cached_property
    def mechanism(self) -> AdaptiveMargins:  # type: ignore[override]
        shapes = tuple((domain.shape[0], domain.shape[1]) for domain in self.domains)
        gaussian = self.noise == "discrete-gaussian"
        norm = self.adjacency.squared if gaussian else self.adjacency.sensitivity
        sensitivity = norm(moved=Fraction(2), present=Fraction(1))
        places = {attributes: place for place, attributes in enumerate(self.sets)}
        pairs = (combinations(attributes, 2) for attributes in self._scored)
        triples = Triples(
            tuple((places[ab], places[ac], places[bc]) for ab, ac, bc in pairs),
            self.triples,
            self.adjacency.sensitivity(moved=Fraction(2), present=Fraction(1)),
        )
        return AdaptiveMargins.within(
            self.share,
            shapes,
            self.chosen,
            sensitivity,
            self.noise,
            triples if self.triples else None,
        )

    @property
    def _scored(self) -> tuple[Attributes, ...]:
        """The candidates that are counted."""
        return self.candidates if self.triples else ()

    @property
    def stddev(self) -> float:
        return self.mechanism.first.stddev

    @cached_property
    def _variances(self) -> Floats:
        """Before it is known which tables are measured twice."""
        return np.full(len(self.allocation.parts), self.stddev**2)

    def memory_needed(self, rows: int) -> int:
        counted = sum(cells(attributes, self.domain.shape) for attributes in self._scored)
        largest = max((cells(a[:-1], self.domain.shape) for a in self._scored), default=0)
        return super().memory_needed(rows) + 256 * counted + 16_000 * largest

    def _counted(self, table: Callable[[Attributes], Integers]) -> Integers:
        triples = [table(attributes).ravel() for attributes in self._scored]
        return np.concatenate([super()._counted(table), *triples])

    def sets_of(self, noisy: Noisy) -> tuple[Attributes, ...]:
        return tuple(margin.attributes for margin in self.measured(noisy))

    def domains_of(self, noisy: Noisy | None) -> tuple[Domain, ...]:
        if noisy is None:
            return self._domains((*self.sets, *self._scored))
        return super().domains_of(noisy)

    def measured(self, noisy: Noisy) -> list[Margin | Residual]:
        """Pairs as drawn, or the precision-weighted means of both draws; then the chosen triples."""
        once, twice, _ = self.mechanism.rounds(noisy.values[None])
        ends = np.cumsum([cells(a, self.domain.shape) for a in (*self.sets, *self._scored)])[:-1]
        again = np.split(twice[0], ends)
        precision = self.mechanism.again.stddev**-2 / self.stddev**-2
        found: list[Margin | Residual] = []
        for attributes, first, second in zip(
            self.sets, np.split(once[0], ends[: len(self.sets) - 1]), again, strict=False
        ):
            weight = 0.0 if second[0] == ABSENT else precision
            mean = (first + weight * (second if weight else 0)) / (1 + weight)
            found.append(self._drawn(attributes, mean, self.stddev**2 / (1 + weight)))
        found += [
            self._drawn(attributes, table, self.mechanism.again.stddev**2)
            for attributes, table in zip(self._scored, again[len(self.sets) :], strict=True)
            if table[0] != ABSENT
        ]
        return found

    def _drawn(self, attributes: Attributes, values: Floats | Integers, variance: float) -> Margin:
        shape = [self.domain.shape[a] for a in attributes]
        return Margin(attributes, values.astype(np.float64).reshape(shape), variance)

    @cached_property
    def of_nothing(self) -> Agreement:
        """Before it is known which tables are measured twice."""
        mechanism = self.mechanism
        absent, none = np.full(mechanism.size, ABSENT), np.zeros(self.triples, dtype=np.int64)
        first = np.zeros(mechanism.first.size, dtype=np.int64)
        return self.agreement(Noisy(np.concatenate([first, absent, none])))

    def publish(self, noisy: Noisy) -> Published:
        published, names = super().publish(noisy), self.domain.names
        again = [
            [names[a] for a in margin.attributes]
            for margin in self.measured(noisy)
            if len(margin.attributes) == 2 and margin.variance < self.stddev**2
        ]
        _, _, order = self.mechanism.rounds(noisy.values[None])
        triples = [[names[a] for a in self._scored[number]] for number in order[0]]
        more = {"measured_twice": again} | ({"triples": triples} if triples else {})
        return Published(published.tables, {**published.facts, **more})

    def weighed(self, step: Fraction) -> Self:
        raise ValueError("weighted: adaptive microdata count records only; use choose: fixed")

    def sum_variance(self, weights: object) -> float:
        raise ValueError(
            f"{self.name}: its numbers cannot be added up, as which tables were measured twice is"
            " known only after the draw"
        )

    def expected_error(self) -> tuple[ErrorStatement, ...]:
        again = self.mechanism.again.stddev
        more = [
            ErrorStatement(
                "standard error of a count drawn twice",
                (self.stddev**-2 + again**-2) ** -0.5,
                f"in {self.chosen} tables that the first draw chooses",
            )
        ]
        if self.triples:
            among = f"chosen among {len(self.candidates):,} by what pairs do not imply"
            note = f"in {self.triples} tables of three columns, {among}"
            more.append(ErrorStatement("standard error of a count of a triple", again, note))
        return (*super().expected_error(), *more)

    def _plus_noise(self, noisy: Noisy, counted: Integers, generator: np.random.Generator) -> Noisy:
        _, (twice,), (order,) = self.mechanism.rounds(noisy.values[None])
        first, again = self.mechanism.first, self.mechanism.again
        once = counted[: first.size] + first.simulate(first.size, generator)
        second = counted + again.simulate(again.size, generator)
        return Noisy(np.concatenate([once, np.where(twice == ABSENT, ABSENT, second), order]))


def candidates_among(
    shape: tuple[int, ...], pairs: tuple[Attributes, ...]
) -> tuple[Attributes, ...]:
    """Triples of columns, all of whose pairs are given: those of the fewest cells, ascending."""
    both = np.zeros((len(shape), len(shape)), dtype=bool)
    for first, second in pairs:
        both[first, second] = min(shape[first], shape[second]) > 1
    every = np.fromiter(chain.from_iterable(combinations(range(len(shape)), 3)), dtype=np.int64)
    a, b, c = every.reshape(-1, 3).T
    found = every.reshape(-1, 3)[both[a, b] & both[a, c] & both[b, c]]
    sizes = np.prod(np.array(shape, dtype=np.float64)[found], axis=1)
    fewest = np.argsort(sizes, kind="stable")
    fitting = fewest[np.cumsum(sizes[fewest]) <= MOST_CELLS]
    return tuple((a, b, c) for a, b, c in found[np.sort(fitting)].tolist())
