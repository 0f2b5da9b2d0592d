"""Classifiers that count each column first, so that their features are finer where records are many.

    counts of each column of numbers  --noise-->  places of its values in [0, 1]
    features of places, over records  --noise-->  a decision value

Both are priced as one draw, of whose precision the first has ``part``.  It is left out (part 0), and
places are even ones, where its noise would hide them (``part_for_places``).
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Generic, TypeVar

import numpy as np

from dpcore.accounting.budget import Budget
from dpcore.domain.axes import Axis
from dpcore.domain.domain import Domain
from dpcore.domain.tally import Tally
from dpcore.line.statistic import Exact, Noisy
from dpcore.mechanisms import DiscreteGaussian, StagedGaussian
from dpcore.mechanisms.rounds import two_rounds
from dpcore.releases.base import Release
from dpcore.releases.machines.curves import FeatureSums, Places, even_places, spread_places
from dpcore.releases.machines.descent import Descent
from dpcore.releases.machines.features import ordered, require_names_apart
from dpcore.releases.tables.fitted import dotted_name
from dpcore.releases.tables.margins import Margins
from dpcore.releases.work import Work

Second = TypeVar("Second", bound=FeatureSums | Descent)

FOR_PLACES = Fraction(1, 20)
"""Of the precision (of rho) for the counts of columns, where they are worth it.  In tables of
``python -m benchmarks.classifiers`` 1/10 and 1/50 are as good."""

BLURRED = 0.25
"""Counts are worth it where half of those of a column err by less than this part of the records."""


@dataclass(frozen=True)
class PlacedClassifier(Release, Generic[Second]):
    """``signs``: +1 or -1 for each code of the label, the last axis; ``part``: of the precision, for the
    counts by which values get places; 0 for even places; ``weight``: how many times a record of the
    positive side counts, where one of the negative side counts once; None: both sides weigh the same."""

    finer = "fewer features"

    signs: tuple[int, ...] = ()
    part: Fraction = FOR_PLACES
    weight: float | None = 1.0

    def __post_init__(self) -> None:
        label = self.domain.axes[-1]
        if label.nullable:
            raise ValueError(
                f"label.column: {label.name} has nulls, which are neither positive nor negative;"
                " choose a column without nulls"
            )
        require_names_apart(self.feature_axes)
        super().__post_init__()

    @property
    def feature_axes(self) -> tuple[Axis, ...]:
        return self.domain.axes[:-1]

    @cached_property
    def domains(self) -> tuple[Domain, ...]:
        return tuple(Domain((axis,)) for axis in self.feature_axes)

    def table_name(self, domain: Domain) -> str:
        return dotted_name(self.name, domain)

    @cached_property
    def _shares(self) -> tuple[Budget, Budget]:
        """Of both steps, in rho; without a first one, the whole share."""
        if not self.part:
            return Budget(), self.share
        axes = self._numbers
        squared = self.adjacency.squared(moved=Fraction(2 * len(axes)), present=Fraction(len(axes)))
        rounds = two_rounds(
            self.share,
            "discrete-gaussian",
            (self.part, 1 - self.part),
            (sum(axis.size for axis in axes), squared),
            (self._even.size, self._even.sensitivity_squared),
        )
        first, again = (each.event.concentrated for each in rounds)
        assert first
        assert again
        return Budget(rho=first[0]), Budget(rho=again[0])

    @property
    def _numbers(self) -> tuple[Axis, ...]:
        return tuple(axis for axis in self.feature_axes if ordered(axis))

    @cached_property
    def choice(self) -> Margins:
        """The first step: counts of each column of numbers."""
        axes, share = self._numbers, self._shares[0]
        sets = tuple((i,) for i in range(len(axes)))
        facts = (self.name, Domain(axes), self.rows, share, sets)
        return Margins(*facts, noise="discrete-gaussian", adjacency=self.adjacency)

    @property
    def rest(self) -> Budget:
        """The share of the second step."""
        return self._shares[1]

    def after(self, choice: Noisy | None) -> Second:
        """The second step at the places that the counts show; without them at even ones."""
        places = dict(zip(self.domain.names, self._even.places, strict=False))
        if choice is not None:
            tables = self.choice.measurement.measured(choice)
            for axis, table in zip(self._numbers, tables, strict=True):
                places[axis.name] = spread_places(axis, table.table)
        return replace(self._even, share=self.rest, places=tuple(places.values()))

    @cached_property
    def _even(self) -> Second:
        """The second step at even places, for the whole share."""
        return self.at_places(tuple(even_places(axis) for axis in self.feature_axes))

    @abstractmethod
    def at_places(self, places: Places) -> Second:
        """What is measured of features at these places, for the whole share."""

    @cached_property
    def mechanism(self) -> StagedGaussian | DiscreteGaussian:
        if not self.part:
            return self._even.mechanism
        again = self.after(None).mechanism
        counts = self.choice.mechanism.size
        return StagedGaussian(self.domain.size, self, self.domain, counts, again.size, again)

    @property
    def largest_statistic(self) -> int:
        return max(self._even.largest_statistic, self.most_rows)

    def statistic(self, tally: Tally) -> Exact:
        return Exact(tally.counts, tally.cells) if self.part else self._even.statistic(tally)

    @property
    def work(self) -> Work:
        return self._even.work

    def settled(self, noisy: Noisy) -> tuple[Second, Noisy]:
        """The second step as it was measured, at its places, and its draw."""
        if not self.part:
            return self._even, noisy
        counts = self.choice.mechanism.size
        measured = self.after(Noisy(noisy.values[:counts]))
        return measured, replace(noisy, values=noisy.values[counts:])


def part_for_places(release: PlacedClassifier[Any]) -> Fraction:
    """The part for counts of columns, or 0 where noise would hide the places.

    Half of a column's counts err, added up, by sqrt(cells / 2) standard deviations of one.
    """
    numbers = [axis.size for axis in release.feature_axes if ordered(axis)]
    if not numbers:
        return Fraction(0)
    counts = replace(release, part=FOR_PLACES).choice.mechanism
    assert isinstance(counts, DiscreteGaussian)
    blurred = counts.stddev * float(np.sqrt(max(numbers) / 2)) > BLURRED * release.rows
    return Fraction(0) if blurred else FOR_PLACES
