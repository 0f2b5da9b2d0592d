"""Classifier by noisy gradients: curves of each column, and waves over several (``descent``).

    f(x) = intercept + sum over the features of their contributions
                     + sum over the waves of cos * cos(phase) + sin * sin(phase),   positive where f > 0

    phase of a wave = sum over the coordinates of frequency * coordinate

A coordinate is the place of a number minus 1/2 (0 for null), 1 for the record's category and for a null
number, and 0 otherwise; the tables of contributions list the place of each cell.

Each column of numbers is counted first, so that its features are finer where records are many, unless
noise makes such counts useless (``counts_worth``).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcore.arrays import Floats, Integers
from dpcore.domain.axes import Axis
from dpcore.domain.domain import Domain
from dpcore.domain.tally import Tally
from dpcore.line.statistic import Exact, Noisy
from dpcore.mechanisms import DiscreteGaussian
from dpcore.mechanisms.gaussian_rounds import GaussianRounds
from dpcore.releases.base import ErrorStatement, Release, named_points
from dpcore.releases.counts.cells import describe_cells
from dpcore.releases.machines.classifier import decided, positive_side, require_answers
from dpcore.releases.machines.curves import cells_at
from dpcore.releases.machines.descent import MOST, ROUNDS, WAVES, Descent, Learnt
from dpcore.releases.machines.design import Design, norms
from dpcore.releases.machines.features import ordered, require_names_apart, wave_columns
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
from dpcore.releases.tables.names import dotted_name
from dpcore.releases.work import Work, publishing

BLURRED = 0.25
"""Counts are useful if the error of half a column's counts is below this fraction of the records."""

DESCENDED = 1.2e-9
"""CPU seconds for each number of each distinct row, in each round."""

KNOWN = (
    "The error is an upper bound, to first order: it adds up the noise of all gradients as if the loss"
    " were flat. It does not include the bias from steps that stop early, which shrinks coefficients."
)


@dataclass(frozen=True)
class GradientClassifier(Release):
    """A classifier by noisy gradients; ``signs``: +1 or -1 for each code of the label, the last axis;
    ``counted``: whether columns of numbers are counted first; ``weight``: how many times a record of
    the positive side counts relative to the negative side, or None for equal total weights; ``rounds``
    and ``waves``: the numbers of gradients and of waves."""

    finer = "fewer features"
    chart = "predictions"
    statistics = ("place", "contribution", "standard_error", *ENDS)

    signs: tuple[int, ...] = ()
    counted: bool = True
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
    def _unpriced(self) -> Descent:
        facts = self.feature_axes, self.signs, self.rows, self.most_rows, self.adjacency
        return Descent(*facts, self.weight, self.rounds, self.waves, self.counted)

    @cached_property
    def _noise(self) -> DiscreteGaussian:
        sizes, squares = zip(*self._unpriced.laws, strict=True)
        return DiscreteGaussian.within(self.share, sum(sizes), sum(squares, Fraction(0)))

    @cached_property
    def descent(self) -> Descent:
        """The rounds, with the noise that the share affords."""
        return replace(self._unpriced, noise=self._noise.stddev)

    @cached_property
    def mechanism(self) -> GaussianRounds:
        law = self._noise.size, self._noise.l2_sensitivity_squared, self._noise.variance
        return GaussianRounds(*law, self.domain, self.descent.laws, self.descent)

    @property
    def largest_statistic(self) -> int:
        return self.most_rows * self._unpriced.largest

    def statistic(self, tally: Tally) -> Exact:
        return Exact(tally.counts, tally.cells)

    @property
    def work(self) -> Work:
        numbers = min(self.rows, self.domain.size, MOST) * self._unpriced.even.width
        drawn = Work(DESCENDED * numbers * self.rounds, 3 * numbers)
        return drawn + publishing(self._unpriced.even.width * (1 + self.rounds / 20))

    def learnt(self, noisy: Noisy) -> Learnt:
        """The result of the rounds of a draw."""
        return self.descent.learnt(self.mechanism.by_round(noisy.values[None, :]))

    def decide(self, noisy: Noisy, codes: Integers) -> tuple[Floats, Floats]:
        """The decision value f and an upper bound of its standard error, at cells (k, features).

        f is computed from the published tables, so waves are not rounded here, unlike in the gradients.
        """
        learnt = self.learnt(noisy)
        design = learnt.design
        rows, phases = design.rows(codes), design.phases(codes)
        curves, waves = np.split(learnt.coefficients, [design.width - 2 * self.waves])
        cosines, sines = np.split(waves * design.amplitude, 2)
        value = rows[:, : len(curves)] @ curves + np.cos(phases) @ cosines + np.sin(phases) @ sines
        return value, learnt.stddev * norms(rows)

    def evaluate(self, noisy: Noisy, points: Mapping[str, NDArray[Any]]) -> dict[str, Floats]:
        """``decision`` at points, with its interval and ``sign_error``, as for a kernel machine."""
        given = named_points(points, tuple(axis.name for axis in self.feature_axes))
        cells = [cells_at(axis, v) for axis, v in zip(self.feature_axes, given, strict=True)]
        return decided(*self.decide(noisy, np.column_stack(cells)))

    def publish(self, noisy: Noisy) -> Published:
        learnt, start, tables = self.learnt(noisy), 1, []
        theta, design = learnt.coefficients, learnt.design
        for domain, curve, where in zip(self.domains, design.curves, design.positions, strict=True):
            stop = start + curve.shape[1]
            value, error = curve @ theta[start:stop], learnt.stddev * norms(curve)
            start, ends = stop, normal_interval(value, error)
            place = where[:, 0] + 0.5 if ordered(domain.axes[0]) else np.full(len(where), np.nan)
            columns = [
                *describe_cells(domain),
                TableColumn("place", place, "The number rescaled to [0, 1]; 0.5 for null"),
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
            "phase": "sum over the coordinates of frequency * coordinate. A number has the coordinate"
            " place minus 0.5 (0 if null), and if it may be null, a second one: 1 if null, else 0."
            " Categories have a coordinate each, and so has null: 1 for the record's own, else 0",
            "label": self.domain.names[-1],
            "positive": positive_side(self.domain.axes[-1], self.signs),
            "weight_of_positive": "balanced" if self.weight is None else self.weight,
            "intercept": float(theta[0] * design.intercept),
            "intercept_standard_error": learnt.stddev * design.intercept,
            "places": "by square roots of noisy counts" if self.counted else "even",
            "rounds": self.rounds,
            "step": learnt.step,
            "decision_errors": "In at least about 90% of releases an interval contains the decision"
            " value of the same steps without noise. Steps stop early, and earlier with more noise."
            " This shrinks decision values towards 0; intervals do not include this effect.",
        }
        return Published(tuple(tables), facts)

    def _waves(self, design: Design, theta: Floats, stddev: float) -> Table:
        matrix, error = np.concatenate(design.frequencies), stddev * design.amplitude
        columns = wave_columns(self.feature_axes, matrix, theta, error, "phase", ", at most")
        known = tuple(
            Uncertainty(each, "standard_error", None, "normal", KNOWN) for each in ("cos", "sin")
        )
        return Table("classifiers", self.name, columns, known)

    def middles(self, noisy: Noisy) -> list[int]:
        """The cell with the middle place of each feature; for categories the middle cell."""
        places = self.learnt(noisy).design.places
        return [
            int(np.argmin(np.abs(np.asarray(place) - 0.5))) if place else axis.size // 2
            for axis, place in zip(self.feature_axes, places, strict=True)
        ]

    def expected_error(self) -> tuple[ErrorStatement, ...]:
        steps = np.full(self.rounds, self.descent.step)
        error = self.descent.stddev(steps) * math.sqrt(self.descent.even.norm_squared)
        return (
            ErrorStatement(
                "standard error of a decision value, relative to the largest that steps can reach",
                error / float(self.descent.averages @ steps),
                "at most, to first order; above 0.05 the records have little influence",
            ),
            ErrorStatement(
                "standard error of a decision value",
                error,
                "at most, to first order; the margin is at 1, and more noise makes steps shorter",
            ),
        )


def counts_worth(release: GradientClassifier) -> bool:
    """Whether counts of columns show where records are many, in spite of their noise.

    The sum of half of a column's counts has an error of sqrt(cells / 2) standard deviations of one
    count.
    """
    numbers = [axis.size for axis in release.feature_axes if ordered(axis)]
    if not numbers:
        return False
    descent = replace(release, counted=True).descent
    blurred = descent.noise / descent.times * math.sqrt(max(numbers) / 2)
    return blurred <= BLURRED * release.rows
