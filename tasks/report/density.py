"""Densities on the page: a line in its band, or a map beside the map of its standard error."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcore.releases.base import Release
from dpcore.releases.densities.answered import OfAnswered
from dpcore.releases.densities.tuned import TunedFunction
from schemas.columns import CategoricalColumn
from tasks.report.band import Curve, band, enlarged
from tasks.report.cells import Columns, measured, quoted
from tasks.report.chart import Axis, chart
from tasks.report.heat import heat_map, of_numbers
from tasks.report.marks import down
from tasks.report.parts import DataTable, Drawn, Figure, Source
from tasks.report.svg import figure

MOST_POINTS = 25
"""Points of a curve that its table lists."""

SAME = 0.05
"""Errors that differ by less than this share of the largest are not drawn."""

BANDS = {
    "lower_90": "Lower end, at the point",
    "upper_90": "Upper end, at the point",
    "lower_simultaneous_90": "Lower end, all at once",
    "upper_simultaneous_90": "Upper end, all at once",
}


def draw_curve(source: Source) -> Drawn:
    """The published grid of one or two columns; of three there is no picture."""
    names = source.release.domain.names
    table = source.read(source.record.tables[0])
    if len(names) == 1:
        columns, notes = source.plan.described_columns, _notes(source.release)
        return Drawn(_one_column(table, names[0], columns, notes))
    if len(names) > 2:
        return Drawn()
    shown = "density" if "density" in table else "estimate"
    return Drawn(_two_columns(table, names, source.plan.described_columns, shown))


def _notes(release: Release) -> str:
    """By what all is divided, and on which scale it was estimated, if on another."""
    smooth = release.smooth if isinstance(release, TunedFunction) else release
    assert isinstance(smooth, OfAnswered)
    divided = f". All are divided by the noisy number of {smooth.of_rows}, and include its error"
    scale = f". Estimated{smooth.of_scale.removeprefix(',')}, and shown on that of the column"
    return divided * smooth.counts_mass + scale * bool(smooth.transforms)


def _one_column(
    table: Mapping[str, NDArray[Any]], name: str, columns: Columns, notes: str
) -> list[Figure]:
    half = figure(float(f"{(table['upper_90'] - table['lower_90']).mean() / 2:.3g}"))
    title = f"Density of {quoted(name, columns)}"
    bands = [band for band in BANDS if band in table]
    at_once = "; the paler band holds all of it at once with that probability"
    says = (
        "The line is the noisy estimate; the shaded band holds the exact kernel estimate with 90%"
        f" probability at each point, ±{half} on average{at_once}"
        f"{notes}"
    )
    curve = Curve(table[name], table["estimate"], *(table[end] for end in bands))
    shown = np.unique(np.linspace(0, len(table[name]) - 1, MOST_POINTS).astype(int))
    numbers = DataTable(
        f"{title}, at some points",
        (name, "Estimate", *(BANDS[end] for end in bands)),
        [[figure(float(table[c][i])) for c in (name, "estimate", *bands)] for i in shown],
    )
    column = columns[name]
    assert not isinstance(column, CategoricalColumn)
    low, high = (float(end) for end in column.bounds)
    x = Axis(measured(name, columns), low=low, high=high)
    y = Axis("Share of records per unit of the scale below", zero=True)
    panels = [panel for panel in (band(curve, x, y), enlarged(curve, x, y)) if panel]
    if column.point_masses:
        stems = [down(float(point), "stem") for point in column.point_masses]
        panels = [replace(panel, marks=[*stems, *panel.marks]) for panel in panels]
        shared = ("stem", "a value that many records share")
        panels[0] = replace(panels[0], key=[*panels[0].key, shared])
    picture = chart(title, says, [[panel] for panel in panels])
    return [Figure(title, says, picture, numbers)]


def _two_columns(
    table: Mapping[str, NDArray[Any]], names: Sequence[str], columns: Columns, shown: str
) -> list[Figure]:
    """Maps of the column ``shown`` and of the error of the estimate, with their scale."""
    x, y = (np.unique(table[name]) for name in names)
    below, beside = (
        of_numbers(measured(name, columns), at) for name, at in zip(names, (x, y), strict=True)
    )
    both = " and ".join(quoted(name, columns) for name in names)

    def drawn(column: str, title: str, says: str) -> Figure:
        values = table[column].reshape(len(x), len(y)).T
        return Figure(title, says, heat_map(values, beside, below, title, says))

    title, says = f"Density of {both}", "Noisy estimate, shades as below the map"
    error = table["standard_error"]
    if error.max() - error.min() <= SAME * error.max():
        return [drawn(shown, title, f"{says}; its standard error is {error.max():.2g} everywhere")]
    from_noise = "From privacy noise, on its own scale: compare the numbers below the two maps"
    return [drawn(shown, title, says), drawn("standard_error", "Its standard error", from_noise)]
