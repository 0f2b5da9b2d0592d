r"""The survey design for a model: weights, units of several records, strata and clusters.

A privacy unit is one record of a wide domain: the cells of up to ``members`` records, each with its
weight in steps, and the stratum and cluster of its first record.  Columns of absent members are null.

    unit  age  _steps             age.1  _steps.1  age.2  _steps.2  _stratum
    7     31   4       ----->     31     4         34     9         north
    7     34   9                  80     5         null   null      north
    9     80   5

So tables that differ in one unit differ in one such record, and clipping acts on units.

>>> from dpcore.domain.axes import Categories
>>> two = SurveyDesign(members=2, steps=9, usual=3.0)
>>> owns = (Categories("owns", ("no", "yes")),)
>>> two.domain(owns).names
('owns.1', 'owns.2', '_steps.1', '_steps.2')
>>> codes, weights, _ = two.unpacked(np.array([[1, 2, 6, 10]]), owns)  # a member who owns, and no other
>>> codes.tolist(), weights.tolist()
([[[1], [2]]], [[2.0, 0.0]])
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dpcore.arrays import Floats, Integers
from dpcore.domain.axes import Axis, Grid
from dpcore.domain.domain import Domain

STEPS, STRATUM, CLUSTER = "_steps", "_stratum", "_cluster"
"""Columns of weights in steps, strata and clusters.  Columns of plans never begin with an underscore."""

MOST_MEMBERS, MOST_STRATA, MOST_CLUSTERS = 50, 200, 10_000


@dataclass(frozen=True)
class SurveyDesign:
    """How a survey was drawn; all public.

    ``members``: the most records of a unit; ``steps``: the largest weight of a record in steps, 0 if
    all records count once; ``usual``: the weight in steps that counts as 1, about the mean; ``step``:
    the weight of a step; ``strata``, ``clusters``: their columns, as in the survey; ``drawn_clusters``:
    how many of the listed clusters were drawn, 0 for all; ``weight``, ``unit``: names in words.
    """

    members: int = 1
    steps: int = 0
    usual: float = 1.0
    step: float = 1.0
    strata: Axis | None = None
    clusters: Axis | None = None
    drawn_clusters: int = 0
    weight: str = ""
    unit: str = ""

    @property
    def simple(self) -> bool:
        """Whether records are counted as in any other release: no weights, units or groups."""
        return self.members == 1 and not self.steps and not self.groups

    @property
    def size(self) -> float:
        """The approximate length of a unit's score, relative to that of a record that counts once."""
        return math.sqrt(self.members * (2.0 if self.steps else 1.0))

    @property
    def groups(self) -> dict[str, Axis]:
        """The columns of strata and clusters, under the names used here."""
        found = {STRATUM: self.strata, CLUSTER: self.clusters}
        return {name: axis for name, axis in found.items() if axis}

    @property
    def sizes(self) -> tuple[int, int]:
        """The numbers of strata and of clusters; empty without any."""
        return self.strata.size if self.strata else 0, self.clusters.size if self.clusters else 0

    @property
    def clusters_in_survey(self) -> int:
        """The number of clusters that were drawn; 0 without clusters."""
        return self.drawn_clusters or self.sizes[1]

    @property
    def drawn(self) -> str:
        """The independently drawn units, in words."""
        named = f"{self.unit} units" if self.unit != "unit" else "units"
        units = f"{named}, and not their records," if self.unit else "records"
        if self.clusters:
            units = f"clusters ({self.clusters.name})"
        within = f" within strata ({self.strata.name})" if self.strata else ""
        return f"{units} are drawn independently{within}"

    @property
    def population(self) -> str:
        """The population of the estimates, in words."""
        if self.weight:
            return f"the population that the weights ({self.weight}) describe"
        return "the population from which the survey is taken to be drawn"

    @property
    def assumed(self) -> tuple[str, ...]:
        """The assumptions of the errors besides independently drawn records, in sentences."""
        said = f"Intervals are for {self.population}, and assume that {self.drawn}."
        return () if self.simple else (said,)

    def domain(self, axes: Sequence[Axis]) -> Domain:
        """The domain of units, given the axes of a record."""
        found = [*axes]
        if self.steps:
            found.append(Grid(STEPS, 0, self.steps + 1, self.steps + 1, integer=True))
        if self.members > 1:
            places = range(1, self.members + 1)
            found = [
                replace(axis, name=f"{axis.name}.{i}", nullable=True)
                for axis in found
                for i in places
            ]
        groups = (replace(axis, name=name) for name, axis in self.groups.items())
        return Domain((*found, *groups))

    def columns(self, domain: Domain) -> list[str]:
        """The survey columns that make up the cells of units, except weights and strata."""
        found = [axis.name for axis in domain.axes if axis.name not in self.groups]
        if self.members > 1:
            found = [name.rpartition(".")[0] for name in found]
        return [name for name in dict.fromkeys(found) if name != STEPS]

    def unpacked(self, codes: Integers, axes: Sequence[Axis]) -> tuple[Integers, Floats, Integers]:
        """Codes (n, members, axes) of the records, their weights (n, members), and the groups (n,
        groups) of units.

        ``codes``: (n, axes of ``domain``).  A record that is absent, or lacks a value that the plan
        requires, has the weight 0.
        """
        several = len(axes) + bool(self.steps)
        records = codes[:, : several * self.members].reshape(-1, several, self.members)
        found = np.swapaxes(records[:, : len(axes)], 1, 2)
        weights = np.ones(found.shape[:2])
        if self.steps:
            steps = records[:, -1]
            # The code above the largest weight is null.
            weights = np.where(steps > self.steps, 0, steps) / self.usual
        there = np.all(found < [axis.size for axis in axes], axis=2)
        return found, np.where(there, weights, 0.0), codes[:, several * self.members :]

    def packed(
        self, codes: Integers, weights: Floats, groups: Integers, domain: Domain
    ) -> Integers:
        """The cells (n,) or (n, words) of ``domain`` for which ``unpacked`` gives these arguments."""
        found = np.swapaxes(codes, 1, 2)
        if self.steps:
            steps = np.rint(weights * self.usual).astype(np.int64)
            found = np.concatenate([found, np.minimum(steps, self.steps)[:, None]], axis=1)
        if self.members > 1:
            null = np.array(domain.shape[: found[0].size]).reshape(found[0].shape) - 1
            found = np.where(weights[:, None] > 0, found, null)
        flat = found.reshape(len(codes), -1)
        return domain.pack(np.column_stack([flat, groups]))


SIMPLE = SurveyDesign()
