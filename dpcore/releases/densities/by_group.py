"""A density of the records of each group, where every group has cells of its own (METHODS c, g).

The statistic is that of one density, for each group, one after the other.  The number of records of a
group is private under every relation, so that each density is divided by its own noisy mass
(``answered``), and a record that goes from one group to another is in the numbers of both (``parts``).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcore.arrays import Floats, Integers
from dpcore.domain.axes import Axis
from dpcore.domain.domain import Domain
from dpcore.domain.tally import Tally
from dpcore.line.statistic import Exact, Noisy
from dpcore.post.tables.simplex import round_to_total
from dpcore.releases.abilities import Samplable
from dpcore.releases.base import ErrorStatement, post_processing_generator
from dpcore.releases.counts.cells import cell_names, describe_cells
from dpcore.releases.densities.banded import WHOLE
from dpcore.releases.densities.parts import DensityParts
from dpcore.releases.numbers.by_group import require_groups
from dpcore.releases.table import Published
from dpcore.releases.work import Work

OF_EACH = ("simultaneous_factor", "noisy_rows", "rows_standard_error")
"""Facts of one density that every group has of its own, in the order of the groups."""

MOST_DENSITIES = 256
"""The bands of each group are simulated on their own."""


@dataclass(frozen=True)
class DensitiesByGroup(DensityParts, Samplable):
    """One density for each group; the last axes of the domain are those of ``density``."""

    chart = "curves"

    def __post_init__(self) -> None:
        require_groups(self.groups)
        if self.parts > MOST_DENSITIES:
            raise ValueError(
                f"by: {self.parts} groups are too many for a density each; {MOST_DENSITIES} are the most"
            )
        super().__post_init__()

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

    @property
    def numbers(self) -> int:
        return self.parts * self.size

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
            replace(column, values=_together([t.columns[column.name] for t in tables]))
            for column in tables[0].parts
        ]
        table = replace(tables[0], parts=[*of_group, *columns])
        own = {name: [one.facts[name] for one in published] for name in OF_EACH}
        return Published((table,), {**published[0].facts, **own})

    def _likely_counts(self, noisy: Noisy) -> Floats:
        """(parts,) records of each group, not negative, that add up to the rows."""
        each = [self.each.coefficients(self.of_group(noisy, i)) for i in range(self.parts)]
        masses = np.array([self.each.mass(coefficients) for coefficients in each])
        return np.asarray(masses * (self.rows / masses.sum()))

    def supported_margin(self, noisy: Noisy, names: tuple[str, ...]) -> tuple[Floats, float] | None:
        gone = tuple(i for i, axis in enumerate(self.each.domain.axes) if axis.name not in names)
        counts = np.stack(
            [
                count * self.each.probabilities(self.of_group(noisy, i)).sum(axis=gone)
                for i, count in enumerate(self._likely_counts(noisy))
            ]
        )
        shape = [axis.size for axis in self.groups]
        left_out = tuple(i for i, axis in enumerate(self.groups) if axis.name not in names)
        counts = counts.reshape(*shape, *counts.shape[1:]).sum(axis=left_out)
        others = zip(self.domain.select(names).shape, counts.shape, strict=True)
        return np.pad(counts, [(0, size - own) for size, own in others]).ravel(), math.nan

    def sample(self, noisy: Noisy, rows: int) -> tuple[Domain, Integers]:
        """Records with a value, of each group as many as its noisy number says."""
        numbers = round_to_total(self._likely_counts(noisy) * (rows / self.rows), rows)
        drawn = [
            self.each.sample(self.of_group(noisy, i), number)[1]
            for i, number in enumerate(numbers.tolist())
        ]
        groups = Domain(self.groups).unpack(np.repeat(np.arange(self.parts), numbers))
        codes = np.concatenate([groups, np.concatenate(drawn)], axis=1)
        axes = (*self.groups, *self.each.answered.axes)
        return Domain(axes), post_processing_generator(noisy).permutation(codes)

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


def _together(parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Columns of all groups below each other, with what is masked."""
    mask = np.concatenate([np.ma.getmaskarray(each) for each in parts])
    values = np.concatenate([np.ma.getdata(each) for each in parts])
    return np.ma.masked_array(values, mask) if mask.any() else values
