"""Classifiers and regressions on the page: predictions along each feature, with their intervals."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dpcore.arrays import Floats, Integers
from dpcore.domain.axes import Axis, Categories
from dpcore.releases.abilities import Evaluable
from dpcore.releases.machines.features import ordered, scaled_positions
from dpcore.releases.machines.gradients import GradientClassifier
from dpcore.releases.machines.machine import KernelMachine
from dpcore.releases.table import TWO_SIDED
from schemas.numbers import plain
from schemas.survey.columns import CategoricalColumn
from tasks.charts.band import Curve, band
from tasks.charts.chart import Axis as Side
from tasks.charts.chart import Panel, alike, chart
from tasks.charts.marks import across, dots, spans
from tasks.charts.svg import figure
from tasks.report.cells import Columns, called, category_text, measured, quoted
from tasks.report.parts import DataTable, Drawn, Figure, Source, read_columns

MOST_FEATURES = 6
POINTS = 2000
MOST_VALUES = 200
MOST_ROWS = 25
MOST_TICKS = 12


@dataclass(frozen=True, eq=False)
class Along:
    """Predictions along a feature, and its values in words; ``unordered``: of categories."""

    name: str
    values: Sequence[str]
    curve: Curve
    unordered: bool = False


@dataclass(frozen=True)
class Machine:
    """A classifier or regression that is drawn along its features."""

    source: Source
    release: KernelMachine

    @property
    def half(self) -> float:
        """Half of every 90% interval: the error is the same everywhere."""
        return TWO_SIDED * self.release.output_stddev

    @property
    def columns(self) -> Columns:
        return self.source.plan.described_columns

    def figures(self) -> list[Figure]:
        """One chart per feature on one scale, the others held in the middle of what the plan allows."""
        middles = [scaled_positions(axis)[axis.size // 2] for axis in self.release.feature_axes]
        found = []
        for i, axis in enumerate(self.release.feature_axes[:MOST_FEATURES]):
            codes = _shown(axis)
            parts = [np.broadcast_to(m, (len(codes), np.size(m))) for m in middles]
            parts[i] = scaled_positions(axis)[codes].reshape(len(codes), -1)
            f = self.at(np.hstack(parts))
            found.append(_along(axis, codes, self.columns, f, f - self.half, f + self.half))
        boundary = self.release.boundary
        lines = {} if boundary is None else {boundary: _above(boundary, self.source)}
        says = (
            f"90% interval ±{self.half:.3g}; other features are held in the middle of their values"
        )
        return _figures(found, self.columns, _capital(self.release.output), lines, says)

    def at(self, points: Floats) -> Floats:
        """The predictions at scaled points (k, coordinates), from the published table."""
        table = self.source.read(self.source.record.tables[0])
        matrix = np.column_stack([v for name, v in table.items() if name.startswith("w_")])
        phases = points @ matrix.T
        return self.release.outputs(np.cos(phases) @ table["cos"] + np.sin(phases) @ table["sin"])

    def meaning(self) -> str:
        """What the predictions and their errors mean."""
        boundary, error = self.release.boundary, figure(self.release.output_stddev)
        same = f"The noise is the same everywhere: a standard error of {error}."
        if boundary is None:
            return (
                f"{same} It describes the difference from the machine without noise, not how well that"
                " machine predicts a record."
            )
        near = np.abs(self.at(_spread(self.release.feature_axes)) - boundary) < self.half
        return (
            f"Above {boundary:g} the prediction is {positive_text(self.source)}. {same} At"
            f" {float(np.mean(near)):.0%} of {POINTS:,} points spread over all that the plan allows,"
            f" {boundary:g} lies inside the 90% interval: there the noise may have changed the decision."
        )


def _accuracy(source: Source) -> Iterator[str]:
    """How often a classifier is right of synthetic records with the label and all features."""
    release, facts = source.release, source.record.facts
    assert isinstance(release, Evaluable)
    features = [axis.name for axis in release.domain.axes[:-1]]
    for record in source.synthesis:
        if not {*features, facts["label"]} <= set(record.file.columns):
            continue
        table = read_columns(source.bundle, record.file)
        points = {name: table[name] for name in features}
        decided = release.evaluate(source.noisy, points)["decision"] > 0
        values, positive = table[str(facts["label"])], facts["positive"]
        column = source.plan.described_columns[str(facts["label"])]
        named = isinstance(column, CategoricalColumn)
        true = np.isin(values, positive) if named else values >= positive[0][0]
        right, most = float(np.mean(decided == true)), max(np.mean(true), 1 - np.mean(true))
        yield (
            f"Of the {len(true):,} synthetic records of {record.name} it decides {right:.0%}"
            f" correctly; always giving the more frequent answer is right for {most:.0%}. Synthetic"
            " records show only what the releases behind them measured."
        )


def draw_predictions(source: Source) -> Drawn:
    """The decision value along each feature of a classifier by noisy gradients."""
    release, columns = source.release, source.plan.described_columns
    assert isinstance(release, GradientClassifier)
    found, middles = [], release.middles(source.noisy)
    for i, axis in enumerate(release.feature_axes[:MOST_FEATURES]):
        codes = _shown(axis)
        points = np.tile(middles, (len(codes), 1))
        points[:, i] = codes
        f, error = release.decide(source.noisy, points)
        ends = (f - TWO_SIDED * error, f + TWO_SIDED * error)
        found.append(_along(axis, codes, columns, f, *ends))
    held = _held(release, middles, columns)
    says = f"Intervals of at least 90%; other features are held at their middle: {held}"
    figures = _figures(found, columns, "Decision value", {0.0: _above(0.0, source)}, says)
    _, stated = release.expected_error()
    notes = [
        f"Above 0 the prediction is {positive_text(source)}. Noise adds a standard error of at most"
        f" {figure(stated.value)}, to first order; this does not include how well the classifier without"
        " noise predicts a record."
    ]
    more = _not_drawn(len(release.feature_axes))
    return Drawn(figures, [*notes, *_accuracy(source), *more])


def _held(release: GradientClassifier, cells: list[int], columns: Columns) -> str:
    """The values of cells in words, of the features that are drawn."""
    words = []
    for axis, cell in list(zip(release.feature_axes, cells, strict=True))[:MOST_FEATURES]:
        value = _along(axis, np.array([cell]), columns, *np.zeros((3, 1))).values[0]
        words.append(f"{axis.name} at {value}")
    more = len(cells) - len(words)
    return ", ".join([*words, f"{more} more in their middle"] if more else words)


def draw_features(source: Source) -> Drawn:
    """The predictions along each feature."""
    assert isinstance(source.release, KernelMachine)
    machine = Machine(source, source.release)
    right = [] if source.release.boundary is None else _accuracy(source)
    more = _not_drawn(len(source.release.feature_axes))
    return Drawn(machine.figures(), [machine.meaning(), *right, *more])


def _shown(axis: Axis) -> Integers:
    """The cells of an axis that are drawn."""
    last = axis.size - 1 - (axis.nullable and ordered(axis))
    return np.unique(np.linspace(0, last, MOST_VALUES).astype(int))


def _not_drawn(features: int) -> list[str]:
    rest = features - MOST_FEATURES
    return [f"Features that are not drawn: {rest}."] if rest > 0 else []


def _along(axis: Axis, codes: Integers, columns: Columns, *ends: Floats) -> Along:
    """``ends``: middle, lower and upper end at each of the axis's codes."""
    unordered = isinstance(axis, Categories) and not ordered(axis)
    if isinstance(axis, Categories) and unordered:
        categories, column = (*axis.categories, "null"), columns[axis.name]
        names = [category_text(categories[code], column) for code in codes.tolist()]
        x = np.arange(len(codes), dtype=np.float64) + 0.5
    else:
        x = _values(axis)[codes]
        order = np.argsort(x)
        x, ends = x[order], tuple(end[order] for end in ends)
        names = [plain(float(f"{v:.6g}")) for v in x]
    return Along(axis.name, names, Curve(x, *ends), unordered)


def _figures(
    found: Sequence[Along], columns: Columns, output: str, lines: Mapping[float, str], says: str
) -> list[Figure]:
    """A figure for each feature, on one scale."""
    panels = alike([_panel(along, columns, output, lines) for along in found])
    return [_figure(*each, columns, output, says) for each in zip(found, panels, strict=True)]


def _panel(along: Along, columns: Columns, output: str, lines: Mapping[float, str]) -> Panel:
    curve, y = along.curve, Side(output)
    if not along.unordered:
        few = len(along.values) <= MOST_TICKS
        ticks = dict(zip(curve.x.tolist(), along.values, strict=True)) if few else None
        return band(curve, Side(measured(along.name, columns), ticks=ticks), y, lines)
    names = Side(called(along.name, columns), along.values)
    marks = [
        spans(curve.x, curve.lower, curve.upper, upright=True),
        dots(curve.x, curve.middle),
    ]
    marks += [across(height, words) for height, words in lines.items()]
    return Panel(marks, names, y, key=[("dot", "estimate"), ("whisker", "90% interval")])


def _figure(along: Along, panel: Panel, columns: Columns, output: str, says: str) -> Figure:
    name = called(along.name, columns)
    title = f"{output} by {quoted(along.name, columns)}"
    shown = np.unique(np.linspace(0, len(along.values) - 1, MOST_ROWS).astype(int))
    numbers = [
        (along.values[i], *(figure(float(each[i])) for each in along.curve[1:4])) for i in shown
    ]
    header = (name, output, "Lower end (90%)", "Upper end (90%)")
    some = f" ({len(shown)} of {len(along.values)} values)" * (len(shown) < len(along.values))
    table = DataTable(f"{title}{some}", header, numbers)
    return Figure(title, says, chart(title, says, [panel]), table)


def _above(boundary: float, source: Source) -> str:
    return f"above {boundary:g}: {positive_text(source)}"


def _capital(words: str) -> str:
    return words[0].upper() + words[1:]


def positive_text(source: Source) -> str:
    """What a decision value above the boundary means."""
    facts = source.record.facts
    name, positive = str(facts["label"]), facts["positive"]
    column = source.plan.described_columns[name]
    if isinstance(column, CategoricalColumn):
        return f"{name} = {' or '.join(category_text(c, column) for c in positive)}"
    return f"{name} of {plain(positive[0][0])} or more"


def _values(axis: Axis) -> Floats:
    """The value of each code of a numeric axis, without null."""
    if isinstance(axis, Categories):
        return np.asarray(axis.categories, dtype=np.float64)
    codes = np.arange(axis.cells)
    lower, upper = axis.edge(codes), axis.edge(codes + 1)
    return lower if axis.integer else (lower + upper) / 2


def _spread(axes: tuple[Axis, ...]) -> Floats:
    """(POINTS, coordinates) points spread evenly over the plan's values; no record is used."""
    generator = np.random.default_rng(0)
    codes = [generator.integers(axis.size, size=POINTS) for axis in axes]
    return np.hstack(
        [scaled_positions(a)[c].reshape(POINTS, -1) for a, c in zip(axes, codes, strict=True)]
    )
