"""Synthetic microdata from pairs of which some are measured twice: where the first draw says so.

The worst errors of ``Microdata`` at a small budget lie in a few pairs of columns that are strongly
correlated, as a number and its deciles are.  Here a fifth of the budget measures again the pairs that
look strongly correlated in a first noisy round (``dpcore.mechanisms.adaptive_margins``); where a
table was drawn twice, its counts are the means of both draws, weighted by their precision.

Noise influences which tables are chosen, so in those the first draw errs a little towards association.
Their second draw does not, and has most of the weight where few of many tables are chosen;
``benchmarks.coverage`` measures the coverage of the intervals.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Self

import numpy as np

from dpcore.arrays import Floats, Integers
from dpcore.mechanisms import AdaptiveMargins
from dpcore.post.tables.consistency import Agreement
from dpcore.post.tables.margins import Margin, Residual
from dpcore.releases.base import ErrorStatement
from dpcore.releases.table import Published
from dpcore.releases.tables.microdata import Microdata
from dpcore.statistic import ABSENT, Noisy


@dataclass(frozen=True)
class AdaptiveMicrodata(Microdata):
    """``chosen``: how many pairs are measured twice; the noisy tables determine which."""

    chosen: int = 20

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 <= self.chosen <= len(self.sets):
            raise ValueError(f"chosen: must lie between 1 and the {len(self.sets)} pairs")
        if len(self.sets[0]) != 2:
            raise ValueError("choose: adaptive chooses among pairs of columns")

    @cached_property
    def mechanism(self) -> AdaptiveMargins:  # type: ignore[override]
        shapes = tuple((domain.shape[0], domain.shape[1]) for domain in self.domains)
        gaussian = self.noise == "discrete-gaussian"
        norm = self.adjacency.squared if gaussian else self.adjacency.sensitivity
        sensitivity = norm(moved=Fraction(2), present=Fraction(1))
        return AdaptiveMargins.within(self.share, shapes, self.chosen, sensitivity, self.noise)

    @property
    def stddev(self) -> float:
        return self.mechanism.first.stddev

    @cached_property
    def _variances(self) -> Floats:
        """Before it is known which tables are measured twice."""
        return np.full(len(self.allocation.parts), self.stddev**2)

    def measured(self, noisy: Noisy) -> list[Margin | Residual]:
        """The tables: as drawn, or the precision-weighted means of both draws."""
        once, twice = noisy.values.reshape(2, self.cells)
        precision = self.mechanism.again.stddev**-2 / self.stddev**-2
        weight = np.where(twice == ABSENT, 0.0, precision)
        mean = (once + weight * np.where(twice == ABSENT, 0, twice)) / (1 + weight)
        ends = np.cumsum([domain.size for domain in self.domains])[:-1]
        return [
            Margin(attrs, table.reshape(domain.shape), self.stddev**2 / (1 + weights[0]))
            for attrs, domain, table, weights in zip(
                self.sets, self.domains, np.split(mean, ends), np.split(weight, ends), strict=True
            )
        ]

    @cached_property
    def of_nothing(self) -> Agreement:
        """Before it is known which tables are measured twice."""
        none = np.full(self.cells, ABSENT)
        return self.agreement(Noisy(np.concatenate([np.zeros(self.cells, dtype=np.int64), none])))

    def publish(self, noisy: Noisy) -> Published:
        published = super().publish(noisy)
        again = [
            [self.domain.names[a] for a in margin.attributes]
            for margin in self.noisy_margins(noisy)
            if margin.variance < self.stddev**2
        ]
        return Published(published.tables, {**published.facts, "measured_twice": again})

    def weighed(self, step: Fraction) -> Self:
        raise ValueError("weighted: adaptive microdata count records only; use choose: fixed")

    def sum_variance(self, weights: object) -> float:
        raise ValueError(
            f"{self.name}: its numbers cannot be added up, as which tables were measured twice is"
            " known only after the draw"
        )

    def expected_error(self) -> tuple[ErrorStatement, ...]:
        more = ErrorStatement(
            "standard error of a count drawn twice",
            (self.stddev**-2 + self.mechanism.again.stddev**-2) ** -0.5,
            f"in {self.chosen} tables that the first draw chooses",
        )
        return (*super().expected_error(), more)

    def _plus_noise(self, noisy: Noisy, counted: Integers, generator: np.random.Generator) -> Noisy:
        twice = noisy.values[self.cells :]
        noise = [
            round_.simulate(self.cells, generator)
            for round_ in (self.mechanism.first, self.mechanism.again)
        ]
        again = np.where(twice == ABSENT, ABSENT, counted + noise[1])
        return Noisy(np.concatenate([counted + noise[0], again]))
