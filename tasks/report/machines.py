"""Classifiers and regressions on the page: what they say along each feature, inside its interval."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpcore.domain import Axis, Categories
from dpcore.releases.classifier import Classifier
from dpcore.releases.features import ordered, scaled_positions, scaling
from dpcore.releases.regression import Regression
from schemas.columns import CategoricalColumn
from schemas.numbers import plain
from tasks.report.band import Curve, band
from tasks.report.bars import Bar, bars
from tasks.report.cells import NORMAL_90, category_text
from tasks.report.parts import DataTable, Drawn, Figure, Source
from tasks.report.svg import figure

Floats = NDArray[np.float64]

MOST_FEATURES = 6
POINTS = 2000
MOST_VALUES = 200
MOST_ROWS = 25


@dataclass(frozen=True)
class Machine:
    """What is drawn: ``value`` of f, off by ``half`` in one release of ten; ``across``: a limit."""

    source: Source
    axes: tuple[Axis, ...]
    title: str
    says: str
    unit: str
    half: float
    value: Callable[[Floats], Floats]
    across: float | None = None

    def figures(self) -> list[Figure]:
        """One chart per feature, the others held in the middle of what the plan allows."""
        middles = [scaled_positions(axis)[axis.size // 2] for axis in self.axes]
        found = []
        for i, axis in enumerate(self.axes[:MOST_FEATURES]):
            last = axis.size - 1 - (axis.nullable and ordered(axis))
            codes = np.unique(np.linspace(0, last, MOST_VALUES).astype(int))
            parts = [np.broadcast_to(m, (len(codes), np.size(m))) for m in middles]
            parts[i] = scaled_positions(axis)[codes].reshape(len(codes), -1)
            found.append(self._along(axis, codes, self.at(np.hstack(parts))))
        return found

    def at(self, points: Floats) -> Floats:
        """The published function at scaled points (k, coordinates)."""
        table = self.source.read(self.source.record.files[0].path)
        matrix = np.column_stack([v for name, v in table.items() if name.startswith("w_")])
        phases = points @ matrix.T
        return self.value(np.cos(phases) @ table["cos"] + np.sin(phases) @ table["sin"])

    def _along(self, axis: Axis, codes: NDArray[np.int64], f: Floats) -> Figure:
        title, half = f"{self.title} along {axis.name}", self.half
        says = f"{self.says}90% interval ±{half:.3g}; other features in the middle"
        if isinstance(axis, Categories) and not ordered(axis):
            column, categories = self.source.plan.columns[axis.name], (*axis.categories, "null")
            names = [category_text(categories[code], column) for code in codes.tolist()]
            ends = zip(names, f, f - half, f + half, strict=True)
            rows = [Bar(name, *map(float, numbers)) for name, *numbers in ends]
            picture = bars(rows, title, says, self.unit)
        else:
            x = _values(axis)[codes]
            order = np.argsort(x)
            x, f = x[order], f[order]
            names = [plain(float(f"{v:.6g}")) for v in x]
            curve = Curve(x, f, f - half, f + half)
            picture = band(curve, title, says, axis.name, across=self.across)
        shown = np.unique(np.linspace(0, len(f) - 1, MOST_ROWS).astype(int))
        numbers = [
            (names[i], *(figure(float(v)) for v in (f[i], f[i] - half, f[i] + half))) for i in shown
        ]
        header = (
            axis.name,
            self.unit[0].upper() + self.unit[1:],
            "Lower end (90%)",
            "Upper end (90%)",
        )
        return Figure(title, says, picture, DataTable(title, header, numbers))

    def left_out(self) -> list[str]:
        """A note on features that are not drawn."""
        rest = len(self.axes) - MOST_FEATURES
        return [f"{rest} more features are not drawn."] if rest > 0 else []


def draw_classifier(source: Source) -> Drawn:
    """The decision value along each feature."""
    release = source.release
    assert isinstance(release, Classifier)
    half = NORMAL_90 * release.decision_stddev
    machine = Machine(
        source,
        release.feature_axes,
        "Decision",
        "Positive above zero; ",
        "decision value",
        half,
        np.asarray,
        across=0.0,
    )
    wavering = float(np.mean(np.abs(machine.at(_spread(release.feature_axes))) < half))
    meaning = (
        f"Above zero the prediction is {positive_text(source)}."
        f" The noise is the same everywhere: a standard error of {release.decision_stddev:.3g}."
        f" At {wavering:.0%} of {POINTS:,} points spread over all that the plan allows, the 90%"
        " interval holds zero: there the noise may have turned the decision."
    )
    return Drawn(machine.figures(), [meaning, *machine.left_out()])


def draw_regression(source: Source) -> Drawn:
    """The predicted number along each feature."""
    release, target = source.release, source.release.domain.names[-1]
    assert isinstance(release, Regression)
    lower, width = scaling(release.domain.axes[-1])
    error = release.decision_stddev * width
    machine = Machine(
        source,
        release.feature_axes,
        f"Prediction of {target}",
        "",
        f"prediction of {target}",
        NORMAL_90 * error,
        lambda f: np.asarray(lower + width * (f + 0.5)),
    )
    meaning = (
        f"The noise is the same everywhere: a standard error of {figure(error)}. It is about the"
        " machine without noise, not about how well that predicts a record."
    )
    return Drawn(machine.figures(), [meaning, *machine.left_out()])


def positive_text(source: Source) -> str:
    """What a decision value above zero stands for."""
    facts = source.record.facts
    name, positive = str(facts["label"]), facts["positive"]
    column = source.plan.columns[name]
    if isinstance(column, CategoricalColumn):
        return f"{name} = {' or '.join(category_text(c, column) for c in positive)}"
    return f"{name} of {plain(positive[0][0])} or more"


def _values(axis: Axis) -> Floats:
    """The value that each code of a numeric axis stands for, null left out."""
    if isinstance(axis, Categories):
        return np.asarray(axis.categories, dtype=np.float64)
    codes = np.arange(axis.cells)
    lower, upper = axis.edge(codes), axis.edge(codes + 1)
    return lower if axis.integer else (lower + upper) / 2


def _spread(axes: tuple[Axis, ...]) -> Floats:
    """(POINTS, coordinates) points spread evenly over the plan's values: no record is looked at."""
    generator = np.random.default_rng(0)
    codes = [generator.integers(axis.size, size=POINTS) for axis in axes]
    return np.hstack(
        [scaled_positions(a)[c].reshape(POINTS, -1) for a, c in zip(axes, codes, strict=True)]
    )
