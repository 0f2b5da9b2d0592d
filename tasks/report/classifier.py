"""Classifiers on the page: the decision function along each feature, inside its band."""

import numpy as np
from numpy.typing import NDArray

from dpcore.domain import Axis, Categories
from dpcore.releases.classifier import Classifier
from dpcore.releases.features import ordered, scaled_positions
from schemas.columns import CategoricalColumn
from tasks.report.band import Curve, band
from tasks.report.bars import Bar, bars
from tasks.report.cells import NORMAL_90, category_text, plain
from tasks.report.parts import DataTable, Drawn, Figure, Source
from tasks.report.svg import figure

Floats = NDArray[np.float64]

MOST_FEATURES = 6
POINTS = 2000
MOST_VALUES = 200
MOST_POINTS = 25


def draw_classifier(source: Source) -> Drawn:
    """One chart per feature, the others held in the middle of what the plan allows."""
    release = source.release
    assert isinstance(release, Classifier)
    half = NORMAL_90 * release.decision_stddev
    axes = release.feature_axes
    middles = [scaled_positions(axis)[axis.size // 2] for axis in axes]
    figures = []
    for i, axis in enumerate(axes[:MOST_FEATURES]):
        last = axis.size - 1 - (axis.nullable and ordered(axis))
        codes = np.unique(np.linspace(0, last, MOST_VALUES).astype(int))
        parts = [np.broadcast_to(m, (len(codes), np.size(m))) for m in middles]
        parts[i] = scaled_positions(axis)[codes].reshape(len(codes), -1)
        figures.append(_along(source, axis, codes, _decide(source, np.hstack(parts)), half))
    wavering = float(np.mean(np.abs(_decide(source, _spread(axes))) < half))
    meaning = (
        f"Above zero the prediction is {positive_text(source)}."
        f" The noise is the same everywhere: a standard error of {release.decision_stddev:.3g}."
        f" At {wavering:.0%} of {POINTS:,} points spread over all that the plan allows, the 90%"
        " interval holds zero: there the noise may have turned the decision."
    )
    left_out = f"{len(axes) - MOST_FEATURES} more features are not drawn."
    return Drawn(figures, [meaning] + ([left_out] if len(axes) > MOST_FEATURES else []))


def _along(source: Source, axis: Axis, codes: NDArray[np.int64], f: Floats, half: float) -> Figure:
    title = f"Decision along {axis.name}"
    says = f"Positive above zero; 90% interval ±{half:.3g}; other features in the middle"
    column = source.plan.columns[axis.name]
    if isinstance(axis, Categories) and not ordered(axis):
        categories = (*axis.categories, "null")
        rows = [
            Bar(
                category_text(categories[c], column),
                float(v),
                float(v - half),
                float(v + half),
            )
            for c, v in zip(codes.tolist(), f, strict=True)
        ]
        labels = [row.label for row in rows]
        table = _numbers(title, axis.name, labels, f, half)
        return Figure(title, says, bars(rows, title, says, "decision value"), table)
    x = _values(axis)[codes]
    order = np.argsort(x)
    x, f = x[order], f[order]
    curve = Curve(x, f, f - half, f + half)
    picture = band(curve, title, says, axis.name, across=0.0)
    return Figure(title, says, picture, _numbers(title, axis.name, [plain(v) for v in x], f, half))


def _numbers(title: str, name: str, labels: list[str], f: Floats, half: float) -> DataTable:
    shown = np.unique(np.linspace(0, len(f) - 1, MOST_POINTS).astype(int))
    rows = [
        (labels[i], *(figure(float(v)) for v in (f[i], f[i] - half, f[i] + half))) for i in shown
    ]
    return DataTable(title, (name, "Decision value", "Lower end (90%)", "Upper end (90%)"), rows)


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


def _decide(source: Source, points: Floats) -> Floats:
    """The published decision function at scaled points (k, coordinates)."""
    table = source.read(source.record.files[0].path)
    matrix = np.column_stack([values for name, values in table.items() if name.startswith("w_")])
    phases = points @ matrix.T
    return np.asarray(np.cos(phases) @ table["cos"] + np.sin(phases) @ table["sin"])


def _spread(axes: tuple[Axis, ...]) -> Floats:
    """(POINTS, coordinates) points spread evenly over the plan's values: no record is looked at."""
    generator = np.random.default_rng(0)
    codes = [generator.integers(axis.size, size=POINTS) for axis in axes]
    return np.hstack(
        [scaled_positions(a)[c].reshape(POINTS, -1) for a, c in zip(axes, codes, strict=True)]
    )
