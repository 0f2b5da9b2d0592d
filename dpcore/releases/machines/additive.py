"""Additive classifier: a sum of one smooth curve for each feature, from noisy sums.

    f(x) = intercept + sum over the features j of f_j(x_j),   positive where f > 0

is fitted by least squares to labels of +1 and -1, from the noisy sums of products of public features
(``dpcore.releases.machines.curves``).  Everything after them is post-processing: the fit, how much it
shrinks, and its errors (``dpcore.releases.machines.ridge``).

    counts of each column of numbers  --noise-->  places of its values in [0, 1]
    products of features of places    --noise-->  curves

Both are priced as one draw, of whose precision the first has ``part``.  It is left out (part 0), and
places are even ones, where its noise would hide them (``part_for_places``).

**A private number of records** is measured too, as the product of the intercept with itself.  It divides
the sums and their noise alike, so theta does not depend on it: neither does the ridge in units of sums.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcore.arrays import Floats
from dpcore.budget import Budget
from dpcore.domain import Axis, Domain, Tally
from dpcore.mechanisms import DiscreteGaussian, StagedGaussian
from dpcore.mechanisms.adaptive_margins import two_rounds
from dpcore.releases.base import ErrorStatement, Release, named_points
from dpcore.releases.counts.cells import describe_cells
from dpcore.releases.machines.classifier import positive_side
from dpcore.releases.machines.curves import (
    SCALE,
    FeatureSums,
    cells_at,
    even_places,
    spread_places,
)
from dpcore.releases.machines.features import ordered
from dpcore.releases.machines.ridge import Fit, fitted, ridge
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
from dpcore.releases.tables.margins import Margins, dotted_name
from dpcore.releases.work import Work
from dpcore.statistic import Exact, Noisy

FOR_PLACES = Fraction(1, 20)
"""Of the precision (of rho) for the counts of columns, where they are worth it.  In tables of
``python -m benchmarks.classifiers`` 1/10 and 1/50 are as good."""

BLURRED = 0.25
"""Counts are worth it where half of those of a column err by less than this part of the records."""


@dataclass(frozen=True)
class AdditiveClassifier(Release):
    """``signs``: +1 or -1 for each code of the label, the last axis; ``part``: of the precision, for the
    counts by which values get places; 0 for even places; ``weight``: how many times a record of the
    positive side counts, where one of the negative side counts once; None: both sides weigh the same."""

    finer = "fewer features"
    chart = "contributions"

    signs: tuple[int, ...] = ()
    part: Fraction = FOR_PLACES
    weight: float | None = 1.0

    statistics = ("contribution", "standard_error", *ENDS)

    def __post_init__(self) -> None:
        label = self.domain.axes[-1]
        if label.nullable:
            raise ValueError(
                f"label.column: {label.name} has nulls, which are neither positive nor negative;"
                " choose a column without nulls"
            )
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

    def after(self, choice: Noisy | None) -> FeatureSums:
        """The second step at the places that the counts show; without them at even ones."""
        places = dict(zip(self.domain.names, self._even.places, strict=False))
        if choice is not None:
            tables = self.choice.measured(choice)
            for axis, table in zip(self._numbers, tables, strict=True):
                places[axis.name] = spread_places(axis, table.table)
        return replace(self._even, share=self.rest, places=tuple(places.values()))

    @cached_property
    def _even(self) -> FeatureSums:
        """The sums at even places, for the whole share."""
        places = tuple(even_places(axis) for axis in self.feature_axes)
        facts = (self.name, self.domain, self.rows, self.share, self.signs, places)
        return FeatureSums(*facts, adjacency=self.adjacency)

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

    def settled(self, noisy: Noisy) -> tuple[FeatureSums, Noisy]:
        """The sums that were measured, at their places, and their draw."""
        if not self.part:
            return self._even, noisy
        counts = self.choice.mechanism.size
        sums = self.after(Noisy(noisy.values[:counts]))
        return sums, replace(noisy, values=noisy.values[counts:])

    def fit(self, noisy: Noisy) -> tuple[FeatureSums, Fit]:
        """The sums at their places, and what is fitted to them."""
        sums, drawn = self.settled(noisy)
        stddevs = sums.stddevs(sums.records(drawn))
        return sums, fitted(*sums.opened(drawn), sums.measured, stddevs, self.weight)

    def evaluate(self, noisy: Noisy, points: Mapping[str, NDArray[Any]]) -> dict[str, Floats]:
        """``decision`` at points, with its interval, and ``sign_error`` as of a kernel machine."""
        from scipy.special import ndtr

        sums, fit = self.fit(noisy)
        given = named_points(points, tuple(axis.name for axis in self.feature_axes))
        parts = [
            table[cells_at(axis, values)]
            for axis, table, values in zip(self.feature_axes, sums.tables, given, strict=True)
        ]
        rows = np.column_stack([np.full(len(given[0]), SCALE), *parts]) / SCALE
        decision, error = rows @ fit.theta, fit.errors(rows)
        turned = np.asarray(ndtr(-np.abs(decision) / error))
        return {"decision": decision, **normal_interval(decision, error), "sign_error": turned}

    def publish(self, noisy: Noisy) -> Published:
        sums, fit = self.fit(noisy)
        tables = []
        for domain, coordinates, start in zip(self.domains, sums.tables, sums.starts, strict=False):
            part = slice(start, start + coordinates.shape[1])
            rows = np.zeros((len(coordinates), len(fit.theta)))
            rows[:, part] = coordinates / SCALE - fit.centres[part]
            value, error = rows @ fit.theta, fit.errors(rows)
            ends = normal_interval(value, error)
            columns = [
                *describe_cells(domain),
                TableColumn("contribution", value, "What the cell adds to the decision value"),
                error_column(error, "contribution", ", to first order"),
                *interval_columns(ends[ENDS[0]], ends[ENDS[1]], "contribution"),
            ]
            known = "To first order in the noise of the sums; shrinkage is not part of it."
            uncertainty = Uncertainty("contribution", "standard_error", ENDS, "normal", known)
            tables.append(Table("classifiers", self.table_name(domain), columns, (uncertainty,)))
        intercept = float(fit.centres @ fit.theta)
        facts: dict[str, object] = {
            "decision": "f(x) = intercept + sum of the contributions of the cells of x; positive where"
            " f > 0",
            "label": self.domain.names[-1],
            "positive": positive_side(self.domain.axes[-1], self.signs),
            "weight_of_positive": "balanced" if self.weight is None else self.weight,
            "intercept": intercept,
            "intercept_standard_error": float(fit.errors(fit.centres[None, :])[0]),
            "places": "by square roots of noisy counts" if self.part else "even",
            "ridge": ridge(fit.stddevs[0], len(fit.theta)),
            "decision_errors": "Intervals hold the decision value that the same ridge would give without"
            " noise in the sums, in about 90% of releases. The ridge, which grows with the noise,"
            " shrinks contributions towards 0; intervals do not include this.",
        }
        return Published(tuple(tables), facts)

    def expected_error(self) -> tuple[ErrorStatement, ...]:
        """For even features that have nothing to do with each other and little with the label."""
        sums = self.after(None)
        product, label = sums.stddevs(self.rows)
        penalty = ridge(product, sums.starts[-1])
        spread = np.concatenate([(table / SCALE).var(axis=0) for table in sums.tables])
        error = float(label * np.sqrt(1 + np.sum(spread / (spread + penalty) ** 2)))
        note = "on average, for independent features that are spread evenly"
        lost = float(penalty / (spread.max() + penalty))
        return (
            ErrorStatement("standard error of a decision value", error, note),
            ErrorStatement("part of the steadiest contribution that the ridge takes", lost, note),
        )


def part_for_places(release: AdditiveClassifier) -> Fraction:
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
