"""Additive classifier: a sum of one smooth curve for each feature, from noisy sums.

    f(x) = intercept + sum over the features j of f_j(x_j),   positive where f > 0

is fitted by least squares to labels of +1 and -1, from the noisy sums of products of public features
(``dpcore.releases.machines.curves``).  Everything after them is post-processing: the fit, how much it
shrinks, and its errors (``dpcore.releases.machines.ridge``).

**A private number of records** is measured too, as the product of the intercept with itself.  It divides
the sums and their noise equally, so theta does not depend on it; nor does the ridge in units of sums.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcore.arrays import Floats
from dpcore.line.statistic import Noisy
from dpcore.releases.base import ErrorStatement, named_points
from dpcore.releases.counts.cells import describe_cells
from dpcore.releases.machines.classifier import positive_side
from dpcore.releases.machines.curves import (
    SCALE,
    FeatureSums,
    Places,
    cells_at,
)
from dpcore.releases.machines.placed import PlacedClassifier
from dpcore.releases.machines.ridge import RidgeFit, fitted, ridge
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


@dataclass(frozen=True)
class AdditiveClassifier(PlacedClassifier[FeatureSums]):
    """The counts of columns, then sums of products, from which curves follow by least squares."""

    chart = "contributions"
    statistics = ("contribution", "standard_error", *ENDS)

    def at_places(self, places: Places) -> FeatureSums:
        facts = (self.name, self.domain, self.rows, self.share, self.signs, places)
        return FeatureSums(*facts, adjacency=self.adjacency)

    def fit(self, noisy: Noisy) -> tuple[FeatureSums, RidgeFit]:
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
        note = (
            "at least: for independent features that are spread evenly and say little of the label;"
            " twice as much or more where they are uneven or say much"
        )
        lost = float(penalty / (spread.max() + penalty))
        return (
            ErrorStatement("standard error of a decision value", error, note),
            ErrorStatement("part of the steadiest contribution that the ridge takes", lost, note),
        )
