"""Classifiers and regressions on the page: predictions along each feature, with their intervals."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dpcore.arrays import Floats, Integers
from dpcore.domain.axes import Axis, Categories, middles
from dpcore.releases.machines.features import ordered, scaled_positions
from dpcore.releases.machines.gradients import GradientClassifier
from dpcore.releases.machines.machine import KernelMachine
from dpcore.releases.machines.tuned import TunedMachine
from dpcore.releases.table import TWO_SIDED
from schemas.numbers import plain
from schemas.survey.columns import CategoricalColumn
from tasks.charts.band import CurveWithBand, band
from tasks.charts.chart import Axis as Side
from tasks.charts.chart import Panel, alike
from tasks.charts.marks import across, dots, spans
from tasks.charts.svg import figure
from tasks.report.cells import Columns, called, category_text, figure_of, measured, quoted
from tasks.report.parts import DataTable, Drawn, Figure, Source, setting_drawn

MOST_FEATURES = 6
MOST_VALUES = 200
MOST_ROWS = 25
MOST_TICKS = 12


@dataclass(frozen=True, eq=False)
class Along:
    """Predictions along a feature, and its values in words; ``unordered``: for categories."""

    name: str
    values: Sequence[str]
    curve: CurveWithBand
    unordered: bool


def draw_features(source: Source) -> Drawn:
    """The predictions of a kernel machine along each feature."""
    machine: KernelMachine | TunedMachine = source.charted
    release, _ = machine.settled(source.noisy)
    table = source.read(source.record.tables[0])
    half, boundary = TWO_SIDED * release.output_stddev, release.boundary
    positions = [scaled_positions(axis) for axis in release.feature_axes]
    matrix = np.column_stack([v for name, v in table.items() if name.startswith("w_")])

    def at(codes: Integers) -> tuple[Floats, Floats]:
        parts = [place[c].reshape(len(c), -1) for place, c in zip(positions, codes.T, strict=True)]
        phases = np.hstack(parts) @ matrix.T
        f = release.outputs(np.cos(phases) @ table["cos"] + np.sin(phases) @ table["sin"])
        return f, np.full(len(f), half)

    middles = [axis.size // 2 for axis in release.feature_axes]
    lines = {} if boundary is None else {boundary: _above(boundary, source)}
    says = f"90% interval ±{half:.3g}; other features are fixed at their middle values"
    output = release.output[0].upper() + release.output[1:]
    figures = _figures(source, release.feature_axes, middles, at, output, lines, says)
    same = f"The noise is the same everywhere: a standard error of {figure(release.output_stddev)}."
    meaning = (
        f"{same} It describes the difference from the machine without noise, not the machine's"
        " prediction error."
        if boundary is None
        else f"Above {boundary:g} the prediction is {positive_text(source)}. {same}"
    )
    notes = [*setting_drawn(source), meaning, *_not_drawn(len(release.feature_axes))]
    return Drawn(figures, notes)


def draw_predictions(source: Source) -> Drawn:
    """The decision value along each feature of a classifier by noisy gradients."""
    release: GradientClassifier = source.charted
    middles = release.middles(source.noisy)

    def at(codes: Integers) -> tuple[Floats, Floats]:
        f, error = release.decide(source.noisy, codes)
        return f, TWO_SIDED * error

    held = _held(release, middles, source.plan.described_columns)
    says = f"Intervals of at least 90%; other features are fixed at their middle: {held}"
    lines = {0.0: _above(0.0, source)}
    figures = _figures(source, release.feature_axes, middles, at, "Decision value", lines, says)
    _, stated = release.expected_error()
    meaning = (
        f"Above 0 the prediction is {positive_text(source)}. Noise adds a standard error of at most"
        f" {figure(stated.value)}, to first order. The prediction error of the classifier without noise"
        " is not included."
    )
    return Drawn(figures, [meaning, *_not_drawn(len(release.feature_axes))])


def _held(release: GradientClassifier, cells: list[int], columns: Columns) -> str:
    """Words for the values of the drawn features at these cells."""
    words = []
    for axis, cell in list(zip(release.feature_axes, cells, strict=True))[:MOST_FEATURES]:
        value = _along(axis, np.array([cell]), columns, *np.zeros((3, 1))).values[0]
        words.append(f"{axis.name} at {value}")
    more = len(cells) - len(words)
    return ", ".join([*words, f"{more} more at their middle"] if more else words)


def _shown(axis: Axis) -> Integers:
    last = axis.size - 1 - (axis.nullable and ordered(axis))
    return np.unique(np.linspace(0, last, MOST_VALUES).astype(int))


def _not_drawn(features: int) -> list[str]:
    rest = features - MOST_FEATURES
    return [f"Features that are not drawn: {rest}."] if rest > 0 else []


def _along(axis: Axis, codes: Integers, columns: Columns, *ends: Floats) -> Along:
    """Predictions along an axis; ``ends``: the prediction and the ends of its interval at each code."""
    unordered = isinstance(axis, Categories) and not ordered(axis)
    if isinstance(axis, Categories) and unordered:
        categories, column = (*axis.categories, "null"), columns[axis.name]
        names = [category_text(categories[code], column) for code in codes.tolist()]
        x = np.arange(len(codes), dtype=np.float64) + 0.5
    else:
        x = np.ma.getdata(middles(axis))[codes].astype(np.float64)
        order = np.argsort(x)
        x, ends = x[order], tuple(end[order] for end in ends)
        names = [plain(float(f"{v:.6g}")) for v in x]
    return Along(axis.name, names, CurveWithBand(x, *ends), unordered)


def _figures(
    source: Source,
    axes: Sequence[Axis],
    middles: Sequence[int],
    at: Callable[[Integers], tuple[Floats, Floats]],
    output: str,
    lines: Mapping[float, str],
    says: str,
) -> list[Figure]:
    """Figures for each feature, on one scale, with the other features at their middles.

    ``at``: a function from cells (k, features) to predictions and half-widths of their intervals.
    """
    columns, found = source.plan.described_columns, []
    for i, axis in enumerate(axes[:MOST_FEATURES]):
        codes = _shown(axis)
        points = np.tile(middles, (len(codes), 1))
        points[:, i] = codes
        f, half = at(points)
        found.append(_along(axis, codes, columns, f, f - half, f + half))
    panels = alike([_panel(along, columns, output, lines) for along in found])
    return [_figure(*each, columns, output, says) for each in zip(found, panels, strict=True)]


def _panel(along: Along, columns: Columns, output: str, lines: Mapping[float, str]) -> Panel:
    curve, y = along.curve, Side(output)
    if not along.unordered:
        few = len(along.values) <= MOST_TICKS
        ticks = dict(zip(curve.x.tolist(), along.values, strict=True)) if few else None
        below = measured(along.name, columns)
        return band(curve, Side(below, ticks=ticks, write=figure_of(columns[along.name])), y, lines)
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
    return Figure(title, says, [panel], table)


def _above(boundary: float, source: Source) -> str:
    return f"above {boundary:g}: {positive_text(source)}"


def positive_text(source: Source) -> str:
    """Words for the meaning of a decision value above the boundary."""
    facts = source.record.facts
    name, positive = str(facts["label"]), facts["positive"]
    column = source.plan.described_columns[name]
    if isinstance(column, CategoricalColumn):
        return f"{name} = {' or '.join(category_text(c, column) for c in positive)}"
    return f"{name} of {plain(positive[0][0])} or more"
