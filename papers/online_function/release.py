"""A noisy density at points that a plan lists, asked one after the other (``online``).

All answers are one draw with one price, that of the whole function.  Points that round to the same
position have the same answer.  The draw is the vector of whitened coordinates; each is rounded for each
record, so the statistic is a sum of whole numbers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcore.arrays import Floats
from dpcore.domain.axes import Axis, Grid
from dpcore.domain.tally import Tally
from dpcore.line.statistic import Exact, Noisy
from dpcore.mechanisms import DiscreteGaussian
from dpcore.releases.base import ErrorStatement, Release, unit_points
from dpcore.releases.densities.kernels import KernelName
from dpcore.releases.densities.whitening import JITTER
from dpcore.releases.table import (
    ENDS,
    Published,
    Table,
    TableColumn,
    Uncertainty,
    error_column,
    interval_columns,
    normal_interval,
)
from papers.online_function.online import BITS, OnlineFunction
from papers.online_function.order import Place


@dataclass(frozen=True)
class AskedFunction(Release):
    """``points``: in units of the columns, in the order in which they are asked."""

    finer = "a larger bandwidth"
    statistics = ("estimate", "standard_error", *ENDS)

    kernel: KernelName
    bandwidths: tuple[float, ...]
    points: tuple[tuple[float, ...], ...]

    def __post_init__(self) -> None:
        self.adjacency.require_public_rows("gaussian-process")
        if not self.points:
            raise ValueError("points: state at least one")
        if any(len(point) != len(self.domain.axes) for point in self.points):
            raise ValueError("points: each has one number for each column")
        super().__post_init__()
        _ = self.places, self.online

    @property
    def grids(self) -> tuple[Grid, ...]:
        """The grids of the columns."""
        return tuple(axis for axis in self.domain.axes if isinstance(axis, Grid))

    @cached_property
    def places(self) -> tuple[Place, ...]:
        """The position of each point."""
        columns = np.array(self.points, dtype=np.float64).T
        given: Mapping[str, NDArray[Any]] = dict(zip(self.domain.names, columns, strict=True))
        scaled = unit_points(given, self.grids)
        return tuple(OnlineFunction.place(tuple(point)) for point in scaled.tolist())

    @cached_property
    def online(self) -> OnlineFunction:
        """The function, and the number of answers that the price covers."""
        facts = self.domain, self.rows, self.share, self.kernel, self.bandwidths
        return OnlineFunction(*facts, len(set(self.places)))

    @cached_property
    def mechanism(self) -> DiscreteGaussian:
        return replace(self.online.mechanism, size=self.online.most_answers)

    @property
    def largest_statistic(self) -> int:
        # A bump has length 1, so no whitened coordinate is larger; rounding adds less than another half.
        return self.most_rows * 3 << (BITS - 1)

    def statistic(self, tally: Tally) -> Exact:
        order, sums = self.online.order(), []
        for place in dict.fromkeys(self.places):
            whole = np.rint(np.ldexp(order.residual(place), BITS)).astype(np.int64)
            sums.append(int(whole[tally.cells] @ tally.counts))
            order.value(place, 0.0)
        return Exact(np.array(sums))

    def answers(self, noisy: Noisy) -> Floats:
        """The density at each point, relative to a uniform one, (points,)."""
        order, found = self.online.order(), {}
        for place, steps in zip(dict.fromkeys(self.places), noisy.values.tolist(), strict=True):
            order.residual(place)
            found[place] = order.value(place, steps * self.online.unit)
        return np.array([found[place] for place in self.places])

    @property
    def _stddev(self) -> float:
        """The standard deviation of the noise in every answer, relative to a uniform density."""
        return self.online.stddev * math.sqrt(1 + JITTER)

    def published_names(self, axis: Axis) -> tuple[str, ...]:
        return (axis.name,)

    def publish(self, noisy: Noisy) -> Published:
        unit = 1 / math.prod(axis.span for axis in self.grids)
        estimate, error = self.answers(noisy) * unit, np.full(len(self.points), self._stddev * unit)
        lower, upper = (normal_interval(estimate, error)[end] for end in ENDS)
        columns = [
            TableColumn(name, np.array(values), f"Value of {name} at the point", name)
            for name, values in zip(self.domain.names, zip(*self.points, strict=True), strict=True)
        ]
        about = "Kernel density at the point, plus noise of mean zero"
        columns += [
            TableColumn("estimate", estimate, about),
            error_column(error, "estimate"),
            *interval_columns(lower, upper, "the kernel density at the point"),
        ]
        statement = (
            "The noise is normal, with the same standard deviation at each point, and correlated"
            " between near points. Values are rounded to the columns' own grids. Sampling error and"
            " smoothing"
            " bias are not included."
        )
        uncertainty = Uncertainty("estimate", "standard_error", ENDS, "normal", statement)
        widths = zip(self.grids, self.bandwidths, strict=True)
        facts = {
            "kernel": self.kernel,
            "bandwidths": {axis.name: h * axis.span for axis, h in widths},
            "answers": self.online.most_answers,
        }
        return Published((Table("densities", self.name, columns, (uncertainty,)),), facts)

    def expected_error(self) -> tuple[ErrorStatement, ...]:
        what = "standard error of the density at a point, relative to a uniform one"
        return (ErrorStatement(what, self._stddev, "whatever the points and their number"),)
