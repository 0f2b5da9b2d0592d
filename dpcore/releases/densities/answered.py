"""The records of a density or function: those with a value in every column, outside point masses.

The other records are left out.  The number of records that count is then private under every relation:
it is one of the released numbers, by which the released function is divided.  A record that is replaced
by one that is left out counts in only one of the tables.  So between neighbours with public rows a sum
moves by at most the larger of

    moved      the difference of the terms of two records
    present    the term of one record, which has the number of records among its coordinates

(``Adjacency.sensitivity`` includes both already if the number of records is private).  After nulls are
dropped, at most m of a neighbour's m steps are left, each of one of these two forms.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcore.arrays import Floats
from dpcore.domain.axes import Axis, Grid
from dpcore.domain.domain import Domain
from dpcore.domain.tally import Tally
from dpcore.domain.transforms import TransformName
from dpcore.errors import PrivacyLineError
from dpcore.mechanisms import DiscreteGaussian
from dpcore.releases.base import Release, named_points


@dataclass(frozen=True)
class AnsweredRelease(Release):
    """A release of the records that have a value in each of its columns, which are grids.

    ``grouped``: whether the release is of one of several groups of records, each with its own numbers
    (``parts``); ``law``: Gaussian noise for at least the sensitivity of the numbers, used instead of the
    noise that the share affords if a drawn bandwidth must not change the noise (``tuned``).
    """

    grouped: bool = field(default=False, kw_only=True)
    law: DiscreteGaussian | None = field(default=None, kw_only=True)

    counts_points = False

    def gaussian(self, size: int, squared: Fraction) -> DiscreteGaussian:
        """The noise for ``size`` numbers whose squared sensitivity is ``squared``."""
        if self.law is None:
            return DiscreteGaussian.within(self.share, size, squared)
        if squared > self.law.l2_sensitivity_squared:
            raise PrivacyLineError(f"{self.name}: its noise is for a smaller sensitivity")
        return replace(self.law, size=size)

    def published_names(self, axis: Axis) -> tuple[str, ...]:
        return (axis.name,)

    @cached_property
    def axes(self) -> tuple[Grid, ...]:
        """The columns without nulls and point masses."""
        grids = (axis for axis in self.domain.axes if isinstance(axis, Grid))
        return tuple(replace(axis, nullable=False, points=()) for axis in grids)

    @cached_property
    def answered(self) -> Domain:
        """The domain of records with a value in every column."""
        return Domain(self.axes)

    @property
    def nullable(self) -> bool:
        """Whether some records may be left out."""
        return any(
            axis.size > own.size for axis, own in zip(self.domain.axes, self.axes, strict=True)
        )

    @property
    def smooth(self) -> AnsweredRelease:
        """The release that describes the published function: of one group, at the smallest bandwidth."""
        return self

    @property
    def counts_mass(self) -> bool:
        """Whether the number of records that count is private, so that it is also released."""
        return self.grouped or self.nullable or not self.adjacency.public_rows

    @property
    def of_rows(self) -> str:
        """The phrase for the records that count."""
        with_value = any(axis.nullable for axis in self.domain.axes)
        apart = any(isinstance(axis, Grid) and axis.points for axis in self.domain.axes)
        of = "the group's records" if self.grouped and not apart else "records"
        return f"{of}{' with a value' * with_value}{' outside point masses' * apart}"

    @property
    def of_mass(self) -> str:
        """The suffix of an error statement if the number of records is private."""
        if not self.counts_mass:
            return ""
        note = f"; after division by the noisy number of {self.of_rows}, with its noise"
        return note + "; larger in proportion if records have no value" * self.nullable

    @property
    def transforms(self) -> dict[str, TransformName]:
        """The transforms of the columns that have one."""
        return {axis.name: axis.transform for axis in self.axes if axis.transform != "none"}

    @property
    def of_scale(self) -> str:
        """The suffix of a statement about scaled columns if they are transformed first."""
        scales = [f"{transform}({name})" for name, transform in self.transforms.items()]
        return f", on the scale of {' and '.join(scales)}" if scales else ""

    def scales(self, bandwidths: Sequence[float]) -> dict[str, Any]:
        """Facts for the manifest: bandwidths in units of the (transformed) columns, and bounds."""
        widths = zip(self.axes, bandwidths, strict=True)
        return {
            "bandwidths": {axis.name: h * axis.span for axis, h in widths},
            "bounds": {axis.name: list(axis.bounds) for axis in self.axes},
            **({"transforms": self.transforms} if self.transforms else {}),
        }

    def unit_density(self, points: Sequence[Floats]) -> Floats:
        """The density at points (k,) of each column, per unit of the columns, of the distribution that
        is uniform on the scale of the transforms."""
        slopes = (axis.slope(at) for axis, at in zip(self.axes, points, strict=True))
        return np.asarray(math.prod(slopes))

    def unit_density_at(self, points: Mapping[str, NDArray[Any]]) -> Floats:
        """``unit_density`` at the points of a query, or ``ValueError`` if it is infinite there."""
        given = named_points(points, self.domain.names)
        unit = self.unit_density([np.ma.getdata(values) for values in given])
        if not np.all(np.isfinite(unit)):
            raise ValueError(
                f"points: with sqrt, {' and '.join(self.transforms)} has no density at 0; use points"
                " above 0"
            )
        return unit

    def between_records(self, moved: float, present: float) -> float:
        """The squared norm of the difference of two records' terms, if a record may have no value or
        both may be in different groups."""
        if self.grouped:
            return max(moved, 2 * present)
        return max(moved, present) if self.nullable else moved

    @property
    def touched(self) -> int:
        """The largest number of groups whose numbers differ between neighbours; 1 without groups."""
        return 2 * self.adjacency.most if self.grouped else 1

    def with_values(self, tally: Tally) -> Tally:
        """The tally over ``answered`` of the records that have a cell there: private."""
        if not self.nullable:
            return tally
        codes = tally.domain.unpack(tally.cells)
        known = (codes < self.answered.shape).all(axis=1)
        return Tally(self.answered, self.answered.pack(codes[known]), tally.counts[known])
