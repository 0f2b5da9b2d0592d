"""The interface of every release, with and without data.

A release is a frozen dataclass of public values.  Without data it says which tally it needs
(``domain``), what noise its share of the budget buys (``mechanism``, with its sensitivity and privacy
event) and how wrong its result will be (``expected_error``).  With data it does two things, one on each
side of the privacy line:

    tally --statistic--> Exact --[ perturb ]--> Noisy --publish--> tables

It also states, for plans, bundles and reports, which columns it publishes and which chart draws them.
Methods that only some kinds have are in ``abilities``.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from dpcore.accounting.budget import Budget
from dpcore.arrays import Floats
from dpcore.domain.adjacency import REPLACE_ONE, Adjacency
from dpcore.domain.axes import Axis, Grid
from dpcore.domain.domain import Domain
from dpcore.domain.tally import Tally
from dpcore.line.mechanism import Event, Mechanism, WorstTable, affordable
from dpcore.line.statistic import Exact, Noisy
from dpcore.releases.counts.cells import cell_names
from dpcore.releases.table import Published
from dpcore.releases.work import Work, publishing

Chart = Literal[
    "cells",
    "regions",
    "curve",
    "curves",
    "mean-curves",
    "features",
    "predictions",
    "number",
    "values",
    "levels",
    "cumulative",
    "series",
    "estimates",
    "coefficients",
    "criteria",
]
"""How the tables of a release are drawn:

    cells        counts of cells: bars with intervals, or a heat map
    regions      the totals of the larger regions: bars with intervals
    curve        a function of one column inside its band, or a map of two columns
    curves       a function of one or two columns for each group
    mean-curves  means at several times inside their band, for each group
    features     a prediction along each feature
    predictions  a decision value along each feature
    number       one bar with its interval
    values       values that many records share: bars with intervals, the longest first
    levels       quantiles: a bar for each, as long as its level
    cumulative   drawn records: the share of them up to each cell
    series       quantities of a period: bars with intervals for each
    estimates    a list of estimates of different units, with intervals
    coefficients    coefficients of a model, with intervals
    criteria     requirements on synthetic records, with intervals, and whether they are met
"""

LARGEST_STATISTIC = 2**61
"""Exact numbers stay below this, half of the limit of the privacy line."""


@dataclass(frozen=True)
class ErrorStatement:
    """The expected error of a published quantity, from public values only."""

    quantity: str
    value: float
    note: str = ""


@dataclass(frozen=True)
class Release(ABC):
    """Public facts of one release; a subclass for each kind and mechanism.

    Args:
        name: identifies the published tables and, together with the release's id, the draw.
        domain: the columns of the tally that the release needs, with their cells.
        rows: the public number of records, or a public guess if neighbours differ in it; the
            guess is a scale for noise and errors, and never used as a count.
        share: the budget that its mechanism may not exceed.
        adjacency: which tables are neighbours.

    Raises:
        ValueError: if the values contradict each other, the kind is not proved for the
            adjacency, or the exact numbers of some table would not fit in 64 bits.  The message
            begins with the key of the plan that is wrong.

    Examples:
        >>> from dpcore.domain.axes import Categories
        >>> from dpcore.releases.counts.histogram import Histogram
        >>> sexes = Domain((Categories("sex", ("F", "M")),))
        >>> release = Histogram("people", sexes, 1000, Budget.of("0.5"))
        >>> release.expected_error()[0].quantity, round(release.expected_error()[0].value, 1)
        ('standard error of a count', 5.6)
        >>> table, = release.publish(Noisy(np.array([493, 511]))).tables
        >>> table.columns["count"].tolist()
        [491, 509]
    """

    name: str
    domain: Domain
    rows: int
    share: Budget
    adjacency: Adjacency = field(default=REPLACE_ONE, kw_only=True)

    chart: ClassVar[Chart | None] = None
    """How a report draws the tables; None if it does not."""

    statistics: ClassVar[tuple[str, ...]] = ()
    """Published columns that are not the survey's; empty if no survey column can have such a name."""

    finer: ClassVar[str] = "coarser bins, fewer cells or another mechanism"
    """Ways to reduce the error, other than more budget."""

    too_large: ClassVar[tuple[str, str]] = (
        "rows",
        "state fewer, or choose a kind that counts records",
    )
    """What to change if exact numbers would be too large: the key of the plan, and how."""

    def __post_init__(self) -> None:
        if self.largest_statistic >= LARGEST_STATISTIC:
            key, remedy = self.too_large
            raise ValueError(
                f"{key}: exact numbers may reach {float(self.largest_statistic):.3g} in a table of"
                f" {self.most_rows:,} {'steps of weight' if self.adjacency.weighted else 'records'},"
                f" and must stay below 2^61 ({LARGEST_STATISTIC:.3g}); {remedy}"
            )

    @property
    @abstractmethod
    def mechanism(self) -> Mechanism:
        """The mechanism that the share affords.

        Raises:
            ValueError: if the share affords none.
        """

    def require_publishable(self) -> None:
        """Raise ``ValueError`` if public values show that the release cannot be drawn or published.

        A mechanism checks when it is constructed that its noise can be drawn.
        """
        if not affordable(self.event, self.share):
            raise ValueError(
                f"this mechanism has no certified noise for {self.share}; request more, or choose"
                " another mechanism"
            )
        for error in self.expected_error():
            if not 0 <= error.value < math.inf:
                raise ValueError(
                    f"the {error.quantity} is too large or too small to print; request another alpha"
                )

    @property
    def event(self) -> Event:
        """The privacy event that the ledger records."""
        return replace(self.mechanism.event, adjacency=self.adjacency)

    @property
    def most_rows(self) -> int:
        """The most records that count; records beyond that are cut (``dpcore.domain.adjacency``)."""
        return self.adjacency.most_rows(self.rows)

    @property
    @abstractmethod
    def largest_statistic(self) -> int:
        """A bound, from public values only, on the size of all exact and intermediate numbers over
        tables of at most ``most_rows`` records."""

    @abstractmethod
    def statistic(self, tally: Tally) -> Exact:
        """The exact statistic: private."""

    def worst_tables(self) -> Iterator[WorstTable]:
        """Tables on which an audit expects the largest loss; other tables are tried for every kind."""
        return self.mechanism.worst_counts(self.rows)

    @abstractmethod
    def publish(self, noisy: Noisy) -> Published:
        """Tables for the bundle and facts for its manifest, from the noisy statistic alone."""

    @property
    def work(self) -> Work:
        """The time and memory for drawing and publishing, without reading the survey."""
        return publishing(self.mechanism.size)

    @property
    def domains(self) -> tuple[Domain, ...]:
        """The domains of the published tables that have columns of the survey."""
        return (self.domain,)

    def table_name(self, domain: Domain) -> str:
        """The name of the published table over one of ``domains``."""
        return self.name

    def published_names(self, axis: Axis) -> tuple[str, ...]:
        """The columns of the tables that describe an axis."""
        return cell_names(axis)

    @abstractmethod
    def expected_error(self) -> tuple[ErrorStatement, ...]:
        """The expected errors of the published numbers, known before any data is opened."""


def named_points(points: Mapping[str, NDArray[Any]], names: tuple[str, ...]) -> list[NDArray[Any]]:
    """The arrays of exactly these columns, in order and of the same length; masks are kept.

    Raises ``ValueError`` if other columns are given, or if the lengths differ.
    """
    if set(points) != set(names):
        raise ValueError(f"points: give values of {list(names)}, not of {list(points)}")
    arrays = [np.atleast_1d(np.asanyarray(points[name])) for name in names]
    if len({array.shape for array in arrays}) != 1 or arrays[0].ndim != 1:
        raise ValueError("points: all columns must have the same length")
    return arrays


def unit_points(points: Mapping[str, NDArray[Any]], axes: Sequence[Grid]) -> Floats:
    """Points (k, axes) in units of each axis's range, or ``ValueError`` if a point lies outside."""
    scaled = []
    given = named_points(points, tuple(axis.name for axis in axes))
    for axis, values in zip(axes, given, strict=True):
        lower, upper = axis.bounds
        if not np.all(np.ma.filled((values >= lower) & (values <= upper), False)):
            raise outside(axis, lower, upper)
        scaled.append(axis.to_unit(np.ma.getdata(values)))
    return np.column_stack(scaled)


def outside(axis: Axis, lower: float, upper: float) -> ValueError:
    """The error for points beyond the ends of an axis; it names the bounds in the plan.

    An axis of whole numbers extends half a unit beyond its bounds.
    """
    half = 0.5 if isinstance(axis, Grid) and axis.integer else 0.0
    return ValueError(f"points: {axis.name} must lie in [{lower + half:.15g}, {upper - half:.15g}]")


def post_processing_generator(noisy: Noisy) -> np.random.Generator:
    """A reproducible generator for post-processing: it gives no privacy.

    It is seeded by the noisy statistic, so that the same draw always publishes the same bundle.
    """
    return np.random.default_rng(int(noisy.digest(), 16))
