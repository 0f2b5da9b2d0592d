"""Densities on the page: a line in its band, or a map beside the map of its standard error."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcore.releases.base import Release
from dpcore.releases.densities.answered import OfAnswered
from dpcore.releases.densities.tuned import TunedFunction
from tasks.report.band import Curve, band
from tasks.report.heat import Side, heat_map
from tasks.report.parts import DataTable, Drawn, Figure, Source
from tasks.report.svg import figure

MOST_POINTS = 25
"""Points of a curve that its table lists."""

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
        return Drawn(_one_column(table, names[0], _divided(source.release)))
    if len(names) > 2:
        return Drawn()
    return Drawn(_two_columns(table, names, "density" if "density" in table else "estimate"))


def _divided(release: Release) -> str:
    smooth = release.smooth if isinstance(release, TunedFunction) else release
    assert isinstance(smooth, OfAnswered)
    if not smooth.counts_mass:
        return ""
    return f". All are divided by the noisy number of {smooth.of_rows}, and include its error"


def _one_column(table: Mapping[str, NDArray[Any]], name: str, divided: str) -> list[Figure]:
    half = figure(float(f"{(table['upper_90'] - table['lower_90']).mean() / 2:.3g}"))
    title = f"Density of {name}"
    bands = [band for band in BANDS if band in table]
    at_once = "; the lines around it hold all of it at once with that probability"
    says = (
        "The line is the noisy estimate; the shaded band holds the exact kernel estimate with 90%"
        f" probability at each point, ±{half} on average{at_once}"
        f"{divided}"
    )
    curve = Curve(table[name], table["estimate"], *(table[end] for end in bands))
    shown = np.unique(np.linspace(0, len(table[name]) - 1, MOST_POINTS).astype(int))
    numbers = DataTable(
        f"{title}, at some points",
        (name, "Estimate", *(BANDS[end] for end in bands)),
        [[figure(float(table[c][i])) for c in (name, "estimate", *bands)] for i in shown],
    )
    return [Figure(title, says, band(curve, title, says, name), numbers)]


def _two_columns(
    table: Mapping[str, NDArray[Any]], names: Sequence[str], shown: str
) -> list[Figure]:
    """Maps of the column ``shown`` and of the error of the estimate, with their scale."""
    one, other = names
    x, y = (np.unique(table[name]) for name in (one, other))
    sides = Side.of_numbers(other, y[::-1]), Side.of_numbers(one, x)

    def drawn(column: str, title: str, says: str) -> Figure:
        values = table[column].reshape(len(x), len(y)).T[::-1]
        return Figure(title, says, heat_map(values, *sides, title, says))

    return [
        drawn(
            shown,
            f"Density of {one} and {other}",
            "Noisy estimate, shades as below the map",
        ),
        drawn(
            "standard_error",
            "Its standard error",
            "From privacy noise, on its own scale: compare the numbers below the two maps",
        ),
    ]
