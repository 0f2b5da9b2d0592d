"""A density of the records of each group, where every group has cells of its own (METHODS c, g).

The statistic is that of one density, for each group, one after the other.  The number of records of a
group is private under every relation, so that each density is divided by its own noisy mass
(``answered``).

**Lemma.**  Let a record that comes or goes move the numbers of its group by ``present`` at most, and one
that is replaced within a group by ``moved``.  Then a step to a neighbour moves all numbers by

    L1    moved, or 2 present where a record leaves one group for another
    L2    the root of moved^2, or of 2 present^2: the numbers of two groups have no coordinate in common

*Proof.*  A record is in one group.  A step adds or removes a record, which is ``present``, or replaces
one: within its group, or as one that goes from a group and one that comes to another.  All other groups
stay as they are.  QED

Of ``binned-laplace`` moved is 2 present already, so that the groups cost nothing; of
``spectral-gaussian`` moved^2 is 2 (largest - smallest) and present^2 is ``largest``, so that they cost
little where the bandwidth is small.  Rounding to a lattice counts in each group that a step may touch.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from dpcore.domain import Axis, Domain, Tally
from dpcore.mechanisms import DiscreteGaussian, DiscreteLaplace
from dpcore.releases.base import ErrorStatement, Release
from dpcore.releases.counts.cells import cell_names, describe_cells
from dpcore.releases.densities.binned_density import BinnedDensity
from dpcore.releases.densities.density import WHOLE, Density
from dpcore.releases.densities.spectral_density import SpectralDensity
from dpcore.releases.numbers.by_group import require_groups
from dpcore.releases.table import Published
from dpcore.releases.work import Work
from dpcore.statistic import Exact, Noisy

OF_EACH = ("simultaneous_factor", "noisy_rows", "rows_standard_error")
"""Facts of one density that every group has of its own, in the order of the groups."""

MOST_DENSITIES = 256
"""The bands of each group are simulated on their own."""


@dataclass(frozen=True)
class DensitiesByGroup(Release):
    """One density for each group; the last axes of the domain are those of ``density``.

    ``density``: its columns and form are those of each group's density.
    """

    density: Density | None = None

    finer = "a larger bandwidth, fewer groups or fewer columns"
    chart = "curves"
    statistics = Density.statistics

    def __post_init__(self) -> None:
        require_groups(self.groups)
        if self.parts > MOST_DENSITIES:
            raise ValueError(
                f"by: {self.parts} groups are too many for a density each; {MOST_DENSITIES} are the most"
            )
        if not isinstance(self.each, BinnedDensity | SpectralDensity):
            raise ValueError("by: only with the mechanisms binned-laplace and spectral-gaussian")
        super().__post_init__()

    @cached_property
    def each(self) -> Density:
        """The density of any one group, of this share and for these neighbours."""
        assert self.density is not None
        return replace(
            self.density,
            rows=self.rows,
            share=self.share,
            adjacency=self.adjacency,
            grouped=True,
        )

    @property
    def groups(self) -> tuple[Axis, ...]:
        """The columns of groups."""
        return self.domain.axes[: -len(self.each.domain.axes)]

    @property
    def parts(self) -> int:
        """The number of groups."""
        return math.prod(axis.size for axis in self.groups)

    @property
    def size(self) -> int:
        """Numbers of one group."""
        return self.each.mechanism.size

    @cached_property
    def mechanism(self) -> DiscreteLaplace | DiscreteGaussian:
        alone, numbers = self.each.mechanism, self.parts * self.size
        if isinstance(alone, DiscreteLaplace):
            return replace(alone, size=numbers)
        assert isinstance(alone, DiscreteGaussian)
        return replace(alone, size=numbers)

    @property
    def largest_statistic(self) -> int:
        return self.each.largest_statistic

    def statistic(self, tally: Tally) -> Exact:
        codes, by = tally.domain.unpack(tally.cells), len(self.groups)
        group = Domain(self.groups).pack(codes[:, :by])
        cells = self.each.domain.pack(codes[:, by:])
        values = [
            self.each.numbers(Tally(self.each.domain, cells[here], tally.counts[here]))
            for here in (group == i for i in range(self.parts))
        ]
        return Exact(np.concatenate(values))

    def of_group(self, noisy: Noisy, group: int) -> Noisy:
        """The noisy numbers of one group."""
        here = slice(group * self.size, (group + 1) * self.size)
        return Noisy(noisy.values[here], reproducible=noisy.reproducible)

    def publish(self, noisy: Noisy) -> Published:
        published = [self.each.publish(self.of_group(noisy, i)) for i in range(self.parts)]
        tables = [one.tables[0] for one in published]  # the coefficients of each would be many more
        rows = [len(table.parts[0].values) for table in tables]
        of_group = describe_cells(Domain(self.groups), np.repeat(np.arange(self.parts), rows))
        columns = [
            replace(column, values=np.concatenate([t.columns[column.name] for t in tables]))
            for column in tables[0].parts
        ]
        table = replace(tables[0], parts=[*of_group, *columns])
        own = {name: [one.facts[name] for one in published] for name in OF_EACH}
        return Published((table,), {**published[0].facts, **own})

    def published_names(self, axis: Axis) -> tuple[str, ...]:
        return cell_names(axis) if axis in self.groups else self.each.published_names(axis)

    @property
    def work(self) -> Work:
        one = self.each.work
        return replace(one, seconds=one.seconds * self.parts)

    @property
    def error_parts(self) -> dict[str, float]:
        """The typical noise in a group with an equal part of the records, and bounds of what is left
        out, relative to a uniform density."""
        parts = self.each.error_parts
        return parts | {"noise": parts["noise"] * self.parts}

    def expected_error(self) -> tuple[ErrorStatement, ...]:
        noise, *bounds = self.error_parts.items()
        most = ", ".join(f"{name} {value:.2g}" for name, value in bounds)
        return (
            ErrorStatement(
                WHOLE,
                sum(self.error_parts.values()),
                f"in a group of {self.rows / self.parts:.3g}, an equal part: noise {noise[1]:.2g}, in"
                f" inverse proportion to its records; at most {most}{self.each.of_scale}",
            ),
        )
