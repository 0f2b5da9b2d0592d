"""Classifiers and regressions on the page: predictions along each feature, with their intervals."""

from dataclasses import dataclass

import numpy as np

from dpcore.arrays import Floats, Integers
from dpcore.domain import Axis, Categories
from dpcore.releases.machines.features import ordered, scaled_positions
from dpcore.releases.machines.machine import KernelMachine
from dpcore.releases.table import TWO_SIDED
from schemas.columns import CategoricalColumn
from schemas.numbers import plain
from tasks.report.band import Curve, band
from tasks.report.bars import Bar, bars
from tasks.report.cells import category_text
from tasks.report.parts import DataTable, Drawn, Figure, Source
from tasks.report.svg import figure

MOST_FEATURES = 6
POINTS = 2000
MOST_VALUES = 200
MOST_ROWS = 25


@dataclass(frozen=True)
class Machine:
    """A classifier or regression that is drawn along its features."""

    source: Source
    release: KernelMachine

    @property
    def half(self) -> float:
        """Half of every 90% interval: the error is the same everywhere."""
        return TWO_SIDED * self.release.output_stddev

    def figures(self) -> list[Figure]:
        """One chart per feature, the others held in the middle of what the plan allows."""
        middles = [scaled_positions(axis)[axis.size // 2] for axis in self.release.feature_axes]
        found = []
        for i, axis in enumerate(self.release.feature_axes[:MOST_FEATURES]):
            last = axis.size - 1 - (axis.nullable and ordered(axis))
            codes = np.unique(np.linspace(0, last, MOST_VALUES).astype(int))
            parts = [np.broadcast_to(m, (len(codes), np.size(m))) for m in middles]
            parts[i] = scaled_positions(axis)[codes].reshape(len(codes), -1)
            found.append(self._along(axis, codes, self.at(np.hstack(parts))))
        return found

    def at(self, points: Floats) -> Floats:
        """The predictions at scaled points (k, coordinates), from the published table."""
        table = self.source.read(self.source.record.tables[0])
        matrix = np.column_stack([v for name, v in table.items() if name.startswith("w_")])
        phases = points @ matrix.T
        return self.release.outputs(np.cos(phases) @ table["cos"] + np.sin(phases) @ table["sin"])

    def _along(self, axis: Axis, codes: Integers, f: Floats) -> Figure:
        output, half = self.release.output, self.half
        output = output[0].upper() + output[1:]
        title = f"{output} along {axis.name}"
        across = self.release.boundary
        side = f"Positive above {across:g}; " if across is not None else ""
        says = f"{side}90% interval ±{half:.3g}; other features in the middle"
        if isinstance(axis, Categories) and not ordered(axis):
            column, categories = (
                self.source.plan.described_columns[axis.name],
                (*axis.categories, "null"),
            )
            names = [category_text(categories[code], column) for code in codes.tolist()]
            ends = zip(names, f, f - half, f + half, strict=True)
            rows = [Bar(name, *map(float, numbers)) for name, *numbers in ends]
            picture = bars(rows, title, says, self.release.output)
        else:
            x = _values(axis)[codes]
            order = np.argsort(x)
            x, f = x[order], f[order]
            names = [plain(float(f"{v:.6g}")) for v in x]
            curve = Curve(x, f, f - half, f + half)
            picture = band(curve, title, says, axis.name, across=across)
        shown = np.unique(np.linspace(0, len(f) - 1, MOST_ROWS).astype(int))
        numbers = [
            (names[i], *(figure(float(v)) for v in (f[i], f[i] - half, f[i] + half))) for i in shown
        ]
        header = (axis.name, output, "Lower end (90%)", "Upper end (90%)")
        return Figure(title, says, picture, DataTable(title, header, numbers))

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
            f" {boundary:g} lies inside the 90% interval: there the noise may have turned the decision."
        )


def draw_features(source: Source) -> Drawn:
    """The predictions along each feature."""
    assert isinstance(source.release, KernelMachine)
    machine = Machine(source, source.release)
    notes, rest = [machine.meaning()], len(source.release.feature_axes) - MOST_FEATURES
    if rest > 0:
        notes.append(f"{rest} more features are not drawn.")
    return Drawn(machine.figures(), notes)


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
