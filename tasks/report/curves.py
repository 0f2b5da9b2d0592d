"""Curves of groups on the page: a line with its bands for each group, all on one scale."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcore.releases.densities.banded import BAND
from dpcore.releases.densities.parts import DensityOfParts
from dpcore.releases.numbers.mean_curve import TIME, MeanCurve
from dpcore.releases.table import ENDS, UNKNOWN
from schemas.releases.mean_curve import MeanCurveSection
from schemas.survey.columns import CategoricalColumn
from tasks.charts.band import LEGIBLE, CurveWithBand, band
from tasks.charts.chart import Axis, Panel
from tasks.charts.svg import figure, supported
from tasks.report.cells import quoted, row_labels
from tasks.report.density import BANDS, along, hidden_rows, notes_on
from tasks.report.parts import DataTable, Drawn, Figure, Source

MOST_CURVES = 12
"""A picture shows at most this many groups; the table has all groups."""

Rows = Mapping[str, NDArray[Any]]
"""The columns of some rows of a table."""


def draw_curves(source: Source) -> Drawn:
    """Charts of the grid of one column for each group. Grids of two columns have no picture."""
    release: DensityOfParts = source.charted
    table = source.read(source.record.tables[0])
    columns, (name, *others) = source.plan.described_columns, release.each.domain.names
    if others:
        return Drawn()
    by = release.by.names
    groups = _by_group(table, row_labels(table, by, columns))
    known = _known(groups)
    of_groups = " and ".join(quoted(each, columns) for each in by)
    title = f"Density of {quoted(name, columns)} by {of_groups}"
    if not known:
        return Drawn(notes=[f"{title}: no value for any group, {UNKNOWN}."])
    shown = _first(known)
    highest = max(float(rows["upper_90"].max()) for rows in shown.values())
    y = Axis("Share of the group's records per unit", low=0.0, high=highest)
    says = (
        "Lines: noisy estimates, all on one scale. Shaded bands: 90% intervals for the exact kernel"
        f" estimates at each point{notes_on(release.smooth)}{_left_out(groups, known)}"
    )

    def curve(rows: Rows) -> CurveWithBand:
        return CurveWithBand(rows[name], rows["estimate"], rows["lower_90"], rows["upper_90"])

    panels = _panels(shown, curve, along(name, columns), y, 90)
    error = {label: figure(float(rows["standard_error"].mean())) for label, rows in known.items()}
    numbers = DataTable(
        f"{title}: typical standard errors",
        ("Group", "Noisy number of records", "Standard error of the density, on average"),
        [
            [label, figure(size), error.get(label, f"no value: {UNKNOWN}")]
            for label, size in zip(groups, source.record.facts["noisy_rows"], strict=True)
        ],
    )
    return Drawn([Figure(title, says, panels, numbers)])


def draw_mean_curves(source: Source) -> Drawn:
    """The published points of each mean curve, joined by straight lines."""
    release: MeanCurve = source.charted
    section = source.plan.section(source.record.name)
    assert isinstance(section, MeanCurveSection)
    columns, by = source.plan.described_columns, release.by.names
    table, file = source.read(source.record.tables[0]), source.record.tables[0]
    first = columns[release.grids[0].name]
    assert not isinstance(first, CategoricalColumn)
    of_groups = f" by {' and '.join(quoted(name, columns) for name in by)}" if by else ""
    title = f"Mean curve of {section.curve.replace('-', ' ')}{of_groups}"
    labels = row_labels(table, by, columns) if by else [""] * len(table[TIME])
    groups = _by_group(table, labels)
    known = _known(groups)
    if not known:
        return Drawn(notes=[f"{title}: no value, {UNKNOWN}."])
    shown = _first(known)
    lower, upper = (np.concatenate([rows[end] for rows in shown.values()]) for end in BAND)
    low, high = float(lower.min()), float(upper.max())
    x = Axis("Time", low=release.times[0], high=release.times[-1])
    y = Axis(first.unit, low=low, high=high)

    def curve(rows: Rows) -> CurveWithBand:
        return CurveWithBand(rows[TIME], rows["estimate"], *(rows[end] for end in (*ENDS, *BAND)))

    panels = _panels(shown, curve, x, y, 110 if by else 180)
    half = figure(float(f"{np.nanmean(table[BAND[1]] - table[BAND[0]]) / 2:.3g}"))
    says = (
        "Line: noisy mean of the records' curves. Shaded band: 90% interval at each time. The paler"
        f" band contains the whole curve{' of a group' * bool(by)} with 90% probability,"
        f" ±{half}{' ' * bool(first.unit)}{first.unit} on average"
    )
    if float(np.nanmean(upper - lower)) < LEGIBLE * (high - low):
        says += ", too little to be seen here"
    says += _left_out(groups, known)
    rows = []
    for i in np.flatnonzero(~hidden_rows(table)):
        values = [float(table[name][i]) for name in ("estimate", *ENDS, *BAND)]
        texts = supported(values, float(table["standard_error"][i]))
        rows.append([*[labels[i]] * bool(by), figure(float(table[TIME][i])), *texts])
    header = (*["Group"] * bool(by), "Time", "Estimate", *BANDS.values())
    numbers = DataTable(f"{title}, in numbers", header, rows, file.place)
    return Drawn([Figure(title, says, panels, numbers)])


def _by_group(table: Rows, labels: Sequence[str]) -> dict[str, Rows]:
    """The rows of each group; ``labels``: the group of each row."""
    of_each = {label: np.array([other == label for other in labels]) for label in labels}
    return {
        label: {name: values[here] for name, values in table.items()}
        for label, here in of_each.items()
    }


def _known(groups: Mapping[str, Rows]) -> dict[str, Rows]:
    """The groups that have a value."""
    return {label: rows for label, rows in groups.items() if not hidden_rows(rows).all()}


def _first(known: Mapping[str, Rows]) -> dict[str, Rows]:
    return dict(islice(known.items(), MOST_CURVES))


def _left_out(groups: Mapping[str, Rows], known: Mapping[str, Rows]) -> str:
    """Sentences on the groups that the picture leaves out, each after a full stop; "" if none are."""
    more = f". The first {MOST_CURVES} of {len(known)} groups" * (len(known) > MOST_CURVES)
    unknown = len(groups) - len(known)
    return f"{more}. {unknown} groups have no value: {UNKNOWN}" if unknown else more


def _panels(
    shown: Mapping[str, Rows],
    curve: Callable[[Rows], CurveWithBand],
    x: Axis,
    y: Axis,
    height: float,
) -> list[Panel]:
    """One panel for each group; only the first has the key."""
    panels = [
        replace(band(curve(rows), x, y), heading=label, height=height)
        for label, rows in shown.items()
    ]
    return [panels[0], *(replace(panel, key=()) for panel in panels[1:])]
