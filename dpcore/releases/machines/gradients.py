"""Classifier by noisy gradients: curves of each column, and waves over several (``descent``).

    f(x) = intercept + sum over the features of their contributions
                     + sum over the waves of cos * cos(phase) + sin * sin(phase),   positive where f > 0

    phase of a wave = sum over the coordinates of frequency * coordinate

A coordinate is the place of a number less 1/2 (0 for null), 1 for the record's own category and for a
null of a number, and 0 otherwise; the tables of contributions hold the place of each cell.

Each column is counted first, so that its features are finer where records are many:

    counts of each column of numbers  --noise-->  places of its values in [0, 1]
    gradients at places, over records --noise-->  a decision value

Both are priced as one draw, of whose precision the first has ``part``.  It is left out (part 0), and
places are even ones, where its noise would hide them (``part_for_places``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcore.accounting.budget import Budget
from dpcore.arrays import Floats, Integers
from dpcore.domain.axes import Axis
from dpcore.domain.domain import Domain
from dpcore.domain.tally import Tally
from dpcore.line.statistic import Exact, Noisy
from dpcore.mechanisms import DiscreteGaussian, StagedGaussian
from dpcore.mechanisms.gaussian_rounds import GaussianRounds
from dpcore.mechanisms.rounds import two_rounds
from dpcore.releases.base import ErrorStatement, Release, named_points
from dpcore.releases.counts.cells import describe_cells
from dpcore.releases.machines.classifier import positive_side, require_answers
from dpcore.releases.machines.curves import cells_at, even_places, spread_places
from dpcore.releases.machines.descent import ROUNDS, WAVES, Descent
from dpcore.releases.machines.design import Design, norms
from dpcore.releases.machines.features import coordinate_names, ordered, require_names_apart
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
from dpcore.releases.tables.margins import Margins
from dpcore.releases.tables.names import dotted_name
from dpcore.releases.work import Work

FOR_PLACES = Fraction(1, 20)
"""Of the precision (of rho) for the counts of columns, where they are worth it.  In tables of
``python -m benchmarks.classifiers`` 1/10 and 1/50 are as good."""

BLURRED = 0.25
"""Counts are worth it where half of those of a column err by less than this part of the records."""

KNOWN = (
    "At most, and to first order: the noise of all gradients where the loss is flat. Steps that stop"
    " early shrink coefficients; this is not part of it."
)


@dataclass(frozen=True)
class GradientClassifier(Release):
    """``signs``: +1 or -1 for each code of the label, the last axis; ``part``: of the precision, for the
    counts by which values get places; 0 for even places; ``weight``: how many times a record of the
    positive side counts, where one of the negative side counts once; None: both sides weigh the same;
    ``rounds`` gradients of all records, in the curves and ``waves`` waves."""

    finer = "fewer features"
    chart = "predictions"
    statistics = ("place", "contribution", "standard_error", *ENDS)

    signs: tuple[int, ...] = ()
    part: Fraction = FOR_PLACES
    weight: float | None = 1.0
    rounds: int = ROUNDS
    waves: int = WAVES

    def __post_init__(self) -> None:
        require_answers(self.domain.axes[-1])
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

    def after(self, choice: Noisy | None) -> Descent:
        """The second step at the places that the counts show; without them at even ones."""
        places = dict(zip(self.domain.names, self._even.places, strict=False))
        if choice is not None:
            tables = self.choice.measurement.measured(choice)
            for axis, table in zip(self._numbers, tables, strict=True):
                places[axis.name] = spread_places(axis, table.table)
        return replace(self._even, share=self.rest, places=tuple(places.values()))

    @cached_property
    def _even(self) -> Descent:
        """The second step at even places, for the whole share."""
        places = tuple(even_places(axis) for axis in self.feature_axes)
        facts = (self.name, self.domain, self.rows, self.share, self.signs, places)
        sizes = (self.weight, self.rounds, self.waves)
        return Descent(*facts, *sizes, adjacency=self.adjacency)

    @cached_property
    def mechanism(self) -> StagedGaussian | GaussianRounds:
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

    def settled(self, noisy: Noisy) -> tuple[Descent, Noisy]:
        """The second step as it was measured, at its places, and its draw."""
        if not self.part:
            return self._even, noisy
        counts = self.choice.mechanism.size
        measured = self.after(Noisy(noisy.values[:counts]))
        return measured, replace(noisy, values=noisy.values[counts:])

    def decide(self, noisy: Noisy, codes: Integers) -> tuple[Floats, Floats]:
        """f, and its standard error at most, at cells of the features (k, features).

        It is that of the published tables: waves are not rounded, as they are where gradients are
        summed.
        """
        descent, drawn = self.settled(noisy)
        design, learnt = descent.design, descent.learnt(drawn)
        rows, phases = design.rows(codes), design.phases(codes)
        curves, waves = np.split(learnt.coefficients, [design.width - 2 * self.waves])
        cosines, sines = np.split(waves * design.amplitude, 2)
        value = rows[:, : len(curves)] @ curves + np.cos(phases) @ cosines + np.sin(phases) @ sines
        return value, learnt.stddev * norms(rows)

    def evaluate(self, noisy: Noisy, points: Mapping[str, NDArray[Any]]) -> dict[str, Floats]:
        """``decision`` at points, with its interval, and ``sign_error`` as of a kernel machine."""
        from scipy.special import ndtr

        given = named_points(points, tuple(axis.name for axis in self.feature_axes))
        cells = [cells_at(axis, v) for axis, v in zip(self.feature_axes, given, strict=True)]
        decision, error = self.decide(noisy, np.column_stack(cells))
        turned = np.asarray(ndtr(-np.abs(decision) / error))
        return {"decision": decision, **normal_interval(decision, error), "sign_error": turned}

    def publish(self, noisy: Noisy) -> Published:
        descent, drawn = self.settled(noisy)
        design = descent.design
        learnt, start, tables = descent.learnt(drawn), 1, []
        theta = learnt.coefficients
        for domain, curve, where in zip(self.domains, design.curves, design.positions, strict=True):
            stop = start + curve.shape[1]
            value, error = curve @ theta[start:stop], learnt.stddev * norms(curve)
            start, ends = stop, normal_interval(value, error)
            place = where[:, 0] + 0.5 if ordered(domain.axes[0]) else np.full(len(where), np.nan)
            columns = [
                *describe_cells(domain),
                TableColumn("place", place, "The place of a number in [0, 1]; 0.5 for null"),
                TableColumn("contribution", value, "What the cell adds to the decision value"),
                error_column(error, "contribution", ", at most"),
                *interval_columns(ends[ENDS[0]], ends[ENDS[1]], "contribution"),
            ]
            uncertainty = Uncertainty("contribution", "standard_error", ENDS, "normal", KNOWN)
            tables.append(Table("classifiers", self.table_name(domain), columns, (uncertainty,)))
        tables.append(self._waves(design, theta[start:] * design.amplitude, learnt.stddev))
        facts: dict[str, object] = {
            "decision": "f(x) = intercept + sum of the contributions of the cells of x + sum over waves"
            " of cos * cos(phase) + sin * sin(phase); positive where f > 0",
            "phase": "sum over the coordinates of frequency * coordinate; a coordinate is the place of a"
            " number less 0.5 (0 for null), 1 for the record's own category and for a null, and 0"
            " otherwise",
            "label": self.domain.names[-1],
            "positive": positive_side(self.domain.axes[-1], self.signs),
            "weight_of_positive": "balanced" if self.weight is None else self.weight,
            "intercept": float(theta[0] * design.intercept),
            "intercept_standard_error": learnt.stddev * design.intercept,
            "places": "by square roots of noisy counts" if self.part else "even",
            "rounds": self.rounds,
            "step": learnt.step,
            "decision_errors": "Intervals hold the decision value that the same steps would give without"
            " noise, in at least about 90% of releases. Steps end early, the earlier the more noise"
            " there is, which shrinks decision values towards 0; intervals do not include this.",
        }
        return Published(tuple(tables), facts)

    def _waves(self, design: Design, theta: Floats, stddev: float) -> Table:
        names = [name for axis in self.feature_axes for name in coordinate_names(axis)]
        matrix = np.concatenate(design.frequencies)
        columns = [
            TableColumn(f"w_{name}", row, f"Frequency along the coordinate {name}")
            for name, row in zip(names, matrix, strict=True)
        ]
        error = np.full(self.waves, stddev * design.amplitude)
        columns += [
            TableColumn("cos", theta[: self.waves], "Noisy coefficient of cos(phase)"),
            TableColumn("sin", theta[self.waves :], "Noisy coefficient of sin(phase)"),
            TableColumn(
                "standard_error", error, "Standard deviation of the noise in each, at most"
            ),
        ]
        known = tuple(
            Uncertainty(each, "standard_error", None, "normal", KNOWN) for each in ("cos", "sin")
        )
        return Table("classifiers", self.name, columns, known)

    def middles(self, noisy: Noisy) -> list[int]:
        """The cell of each feature in the middle of places; of categories the one in the middle."""
        places = self.settled(noisy)[0].places
        return [
            int(np.argmin(np.abs(np.asarray(place) - 0.5))) if place else axis.size // 2
            for axis, place in zip(self.feature_axes, places, strict=True)
        ]

    def expected_error(self) -> tuple[ErrorStatement, ...]:
        return self.after(None).expected_error()


def part_for_places(release: GradientClassifier) -> Fraction:
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
