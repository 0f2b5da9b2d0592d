"""Densities on the page: a line with its band, or a map and the map of its standard error."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcore.domain.axes import Grid
from dpcore.releases.densities.answered import AnsweredRelease
from dpcore.releases.table import UNKNOWN
from schemas.survey.columns import CategoricalColumn
from tasks.charts.band import CurveWithBand, band, enlarged
from tasks.charts.chart import Axis
from tasks.charts.heat import heat_map, of_numbers
from tasks.charts.marks import down
from tasks.charts.svg import figure
from tasks.report.cells import Columns, figure_of, measured, quoted
from tasks.report.parts import DataTable, Drawn, Figure, Source, setting_drawn

MOST_POINTS = 25
"""The table of a curve lists this many points."""

SAME = 0.05
"""Errors are drawn only if they differ by at least this share of the largest error."""

BANDS = {
    "lower_90": "Lower end, at the point",
    "upper_90": "Upper end, at the point",
    "lower_simultaneous_90": "Lower end, all at once",
    "upper_simultaneous_90": "Upper end, all at once",
}


def draw_curve(source: Source) -> Drawn:
    """Charts of the published grid of one or two columns. A grid of three columns has no picture."""
    names = source.release.domain.names
    table = source.read(source.record.tables[0])
    if hidden_rows(table).all():
        title = (
            f"Density of {' and '.join(quoted(n, source.plan.described_columns) for n in names)}"
        )
        return Drawn(notes=[f"{title}: no value, {UNKNOWN}."])
    if len(names) == 1:
        columns, notes = source.plan.described_columns, notes_on(source.charted.smooth)
        drawn = _one_column(table, names[0], columns, notes)
        return Drawn(drawn, setting_drawn(source), tables=_at_points(source, names[0], columns))
    if len(names) > 2:
        return Drawn()
    shown = "density" if "density" in table else "estimate"
    maps = _two_columns(table, names, source.plan.described_columns, shown)
    return Drawn(maps, setting_drawn(source))


def _at_points(source: Source, name: str, columns: Columns) -> list[DataTable]:
    """Tables of the records at values that are counted separately."""
    axis = source.release.domain.axes[-1]
    if not (isinstance(axis, Grid) and axis.points and source.charted.counts_points):
        return []
    file = source.record.tables[-1]
    table = source.read(file)
    header = (name, "Records", "Lower end", "Upper end")
    shown = [table[column] for column in (name, "estimate", "lower_90", "upper_90")]
    write = (figure_of(columns[name]), figure, figure, figure)
    rows = [
        [as_text(float(value)) for as_text, value in zip(write, row, strict=True)]
        for row in zip(*shown, strict=True)
    ]
    of = quoted(name, columns)
    title = f"Records at single values of {of} that the curve leaves out, with 90% intervals"
    return [DataTable(title, header, rows, file.place)]


def hidden_rows(table: Mapping[str, NDArray[Any]]) -> NDArray[Any]:
    """A mask of the rows without a value, in a table as read from its file."""
    return np.asarray(np.isnan(table["estimate"]))


def notes_on(smooth: AnsweredRelease) -> str:
    """Notes on the divisor of all values, and on the scale if values were transformed."""
    divided = (
        f". Values are divided by the noisy number of {smooth.of_rows}; errors include its noise"
    )
    scale = f". Estimated{smooth.of_scale.removeprefix(',')}, and shown on the column's own scale"
    return divided * smooth.counts_mass + scale * bool(smooth.transforms)


def _one_column(
    table: Mapping[str, NDArray[Any]], name: str, columns: Columns, notes: str
) -> list[Figure]:
    half = figure(float(f"{(table['upper_90'] - table['lower_90']).mean() / 2:.3g}"))
    title = f"Density of {quoted(name, columns)}"
    bands = [band for band in BANDS if band in table]
    at_once = "; the paler band contains the whole exact curve with 90% probability"
    says = (
        "Line: noisy estimate. Shaded band: 90% interval for the exact kernel estimate at each point,"
        f" ±{half} on average{at_once}"
        f"{notes}"
    )
    curve = CurveWithBand(table[name], table["estimate"], *(table[end] for end in bands))
    write = dict.fromkeys(("estimate", *bands), figure) | {name: figure_of(columns[name])}
    shown = np.unique(np.linspace(0, len(table[name]) - 1, MOST_POINTS).astype(int))
    numbers = DataTable(
        f"{title}, at some points",
        (name, "Estimate", *(BANDS[end] for end in bands)),
        [[write[c](float(table[c][i])) for c in (name, "estimate", *bands)] for i in shown],
    )
    column = columns[name]
    assert not isinstance(column, CategoricalColumn)
    x = along(name, columns)
    y = Axis("Share of records per unit of the scale below", zero=True)
    panels = [panel for panel in (band(curve, x, y), enlarged(curve, x, y)) if panel]
    if column.point_masses:
        stems = [down(float(point), "stem") for point in column.point_masses]
        panels = [replace(panel, marks=[*stems, *panel.marks]) for panel in panels]
        shared = ("stem", "a value of many records, counted separately")
        panels[0] = replace(panels[0], key=[*panels[0].key, shared])
    return [Figure(title, says, panels, numbers)]


def along(name: str, columns: Columns) -> Axis:
    """The axis of a column of numbers, between its bounds."""
    column = columns[name]
    assert not isinstance(column, CategoricalColumn)
    low, high = (float(end) for end in column.bounds)
    return Axis(measured(name, columns), low=low, high=high, write=figure_of(column))


def _two_columns(
    table: Mapping[str, NDArray[Any]], names: Sequence[str], columns: Columns, shown: str
) -> list[Figure]:
    """Maps of the column ``shown`` and of the error of the estimate, with their scale."""
    x, y = (np.unique(table[name]) for name in names)
    below, beside = (
        of_numbers(measured(name, columns), at, figure_of(columns[name]))
        for name, at in zip(names, (x, y), strict=True)
    )
    both = " and ".join(quoted(name, columns) for name in names)

    def drawn(column: str, title: str, says: str) -> Figure:
        values = table[column].reshape(len(x), len(y)).T
        return Figure(title, says, heat_map(values, beside, below))

    title, says = f"Density of {both}", "Noisy estimate; the scale of shades is below the map"
    error = table["standard_error"]
    if error.max() - error.min() <= SAME * error.max():
        return [drawn(shown, title, f"{says}; its standard error is {error.max():.2g} everywhere")]
    from_noise = "From privacy noise; compare the two scales by the numbers below"
    return [drawn(shown, title, says), drawn("standard_error", "Its standard error", from_noise)]
