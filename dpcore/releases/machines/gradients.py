"""Classifier by noisy gradients: curves of each column, and waves over several (``descent``).

    f(x) = intercept + sum over the features of their contributions
                     + sum over the waves of cos * cos(phase) + sin * sin(phase),   positive where f > 0

    phase of a wave = sum over the coordinates of frequency * coordinate

A coordinate is the place of a number less 1/2 (0 for null), 1 for the record's own category and for a
null of a number, and 0 otherwise; the tables of contributions hold the place of each cell.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcore.arrays import Floats, Integers
from dpcore.line.statistic import Noisy
from dpcore.releases.base import ErrorStatement, named_points
from dpcore.releases.counts.cells import describe_cells
from dpcore.releases.machines.classifier import positive_side
from dpcore.releases.machines.curves import Places, cells_at
from dpcore.releases.machines.descent import ROUNDS, WAVES, Descent
from dpcore.releases.machines.design import Design, norms
from dpcore.releases.machines.features import coordinate_names, ordered
from dpcore.releases.machines.placed import PlacedClassifier
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

KNOWN = (
    "At most, and to first order: the noise of all gradients where the loss is flat. Steps that stop"
    " early shrink coefficients; this is not part of it."
)


@dataclass(frozen=True)
class GradientClassifier(PlacedClassifier[Descent]):
    """``rounds`` gradients of all records, in the curves and ``waves`` waves."""

    chart = "predictions"
    statistics = ("place", "contribution", "standard_error", *ENDS)

    rounds: int = ROUNDS
    waves: int = WAVES

    def at_places(self, places: Places) -> Descent:
        facts = (self.name, self.domain, self.rows, self.share, self.signs, places)
        sizes = (self.weight, self.rounds, self.waves)
        return Descent(*facts, *sizes, adjacency=self.adjacency)

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
