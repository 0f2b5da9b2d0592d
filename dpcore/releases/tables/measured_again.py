"""Pairs measured once, some of them again, and triples that the pairs do not imply.

The worst errors of pairs at a small budget lie in a few that are strongly correlated, as a number and
its deciles are; and records from pairs have nothing of an interaction of three columns.  Here a fifth of
the budget measures again the pairs that look strongly correlated in a first noisy round, and triples of
columns whose counts are far from what the noisy pairs imply (``dpcore.mechanisms.adaptive_margins``).
Where a table was drawn twice, its counts are the means of both draws, weighted by their precision.

Noise influences which tables are chosen, so in pairs the first draw errs a little towards association.
The second draw does not, and has most of the weight where few of many tables are chosen;
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

import numpy as np

from dpcore.arrays import Floats, Integers
from dpcore.line.statistic import ABSENT, Noisy
from dpcore.mechanisms import AdaptiveMargins
from dpcore.mechanisms.adaptive_margins import Triples
from dpcore.post.tables.margins import Attributes, Margin, Residual, cells
from dpcore.releases.tables.allocation import Allocation
from dpcore.releases.tables.measured import MeasuredTables

MOST_CELLS = 2**16
"""Of all candidates together."""


@dataclass(frozen=True)
class MeasuredAgain:
    """``once``: all pairs; ``chosen``: how many are measured twice, which the noisy tables determine.

    ``triples``: how many triples are measured; chosen from the counts, at a price.

    Raises:
        ValueError: where there are fewer pairs or candidates than are to be chosen.
    """

    once: MeasuredTables
    chosen: int
    triples: int = 0

    def __post_init__(self) -> None:
        if not 1 <= self.chosen <= len(self.sets):
            raise ValueError(f"chosen: must lie between 1 and the {len(self.sets)} pairs")
        if any(len(attributes) != 2 for attributes in self.sets):
            raise ValueError("choose: adaptive chooses among pairs of columns")
        candidates = candidates_among(self.shape, self.sets)
        if self.triples and not candidates:
            raise ValueError("triples: no three columns have all of their pairs measured; write 0")
        if not 0 <= self.triples <= len(candidates):
            raise ValueError(
                f"triples: must lie between 0 and the {len(candidates)} triples that can be chosen:"
                f" their pairs are measured, and they have at most {MOST_CELLS:,} cells together"
            )

    @property
    def shape(self) -> tuple[int, ...]:
        return self.once.shape

    @property
    def sets(self) -> tuple[Attributes, ...]:
        """The pairs."""
        return self.once.sets

    @property
    def cells(self) -> int:
        """The cells of all pairs together."""
        return self.once.cells

    @property
    def allocation(self) -> Allocation:
        """Of the first round."""
        return self.once.allocation

    @cached_property
    def candidates(self) -> tuple[Attributes, ...]:
        """The triples that are counted, of which some are chosen."""
        return candidates_among(self.shape, self.sets) if self.triples else ()

    @property
    def possible(self) -> tuple[Attributes, ...]:
        return (*self.sets, *self.candidates)

    def sets_of(self, noisy: Noisy) -> tuple[Attributes, ...]:
        return tuple(margin.attributes for margin in self.measured(noisy))

    @cached_property
    def mechanism(self) -> AdaptiveMargins:
        adjacency, noise = self.once.adjacency, self.once.noise
        norm = adjacency.squared if noise == "discrete-gaussian" else adjacency.sensitivity
        sensitivity = norm(moved=Fraction(2), present=Fraction(1))
        places = {attributes: place for place, attributes in enumerate(self.sets)}
        pairs = (combinations(attributes, 2) for attributes in self.candidates)
        triples = Triples(
            tuple((places[ab], places[ac], places[bc]) for ab, ac, bc in pairs),
            self.triples,
            adjacency.sensitivity(moved=Fraction(2), present=Fraction(1)),
        )
        return AdaptiveMargins.within(
            self.once.share,
            tuple((self.shape[a], self.shape[b]) for a, b in self.sets),
            self.chosen,
            sensitivity,
            noise,
            triples if self.triples else None,
        )

    @cached_property
    def variances(self) -> Floats:
        """(pairs,) before it is known which are measured twice."""
        return np.full(len(self.sets), self.mechanism.first.stddev**2)

    def counted(self, table: Callable[[Attributes], Integers]) -> Integers:
        """What is counted of all pairs, then of all candidates."""
        triples = [table(attributes).ravel() for attributes in self.candidates]
        return np.concatenate([self.once.counted(table), *triples])

    def measured(self, noisy: Noisy) -> list[Margin | Residual]:
        """Pairs as drawn, or the precision-weighted means of both draws; then the chosen triples."""
        once, twice, _ = self.mechanism.rounds(noisy.values[None])
        first, second = self.mechanism.first.stddev**2, self.mechanism.again.stddev**2
        ends = np.cumsum([cells(attributes, self.shape) for attributes in self.possible])[:-1]
        again = np.split(twice[0], ends)
        found: list[Margin | Residual] = []
        for attributes, values, more in zip(
            self.sets, np.split(once[0], ends[: len(self.sets) - 1]), again, strict=False
        ):
            weight = 0.0 if more[0] == ABSENT else self._precision
            mean = (values + weight * (more if weight else 0)) / (1 + weight)
            found.append(self._drawn(attributes, mean, first / (1 + weight)))
        found += [
            self._drawn(attributes, table, second)
            for attributes, table in zip(self.candidates, again[len(self.sets) :], strict=True)
            if table[0] != ABSENT
        ]
        return found

    @property
    def _precision(self) -> float:
        """Of the second draw, with that of the first as one."""
        return float(self.mechanism.again.stddev**-2 / self.mechanism.first.stddev**-2)

    def _drawn(self, attributes: Attributes, values: Floats | Integers, variance: float) -> Margin:
        shape = [self.shape[a] for a in attributes]
        return Margin(attributes, values.astype(np.float64).reshape(shape), variance)

    def chosen_of(self, noisy: Noisy) -> tuple[list[Attributes], list[Attributes]]:
        """The pairs that one draw measured twice, and its triples in the order of their choice."""
        _, _, order = self.mechanism.rounds(noisy.values[None])
        twice: list[Attributes] = [
            margin.attributes
            for margin in self.measured(noisy)
            if len(margin.attributes) == 2 and margin.variance < self.mechanism.first.stddev**2
        ]
        return twice, [self.candidates[number] for number in order[0]]

    @property
    def nothing(self) -> Noisy:
        """Before it is known which tables are measured twice."""
        absent = np.full(self.mechanism.size, ABSENT)
        first = np.zeros(self.mechanism.first.size, dtype=np.int64)
        return Noisy(np.concatenate([first, absent, np.zeros(self.triples, dtype=np.int64)]))

    def plus_noise(self, noisy: Noisy, counted: Integers, generator: np.random.Generator) -> Noisy:
        """A noisy statistic like this one, had this been counted, of the tables chosen here."""
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
