"""Mean curves on the page: a line with its bands for each group, on one scale."""

from dataclasses import replace

import numpy as np

from dpcore.releases.densities.banded import BAND
from dpcore.releases.numbers.mean_curve import TIME, MeanCurve
from dpcore.releases.table import ENDS, UNKNOWN
from schemas.releases.mean_curve import MeanCurveSection
from schemas.survey.columns import CategoricalColumn
from tasks.charts.band import LEGIBLE, CurveWithBand, band
from tasks.charts.chart import Axis, chart
from tasks.charts.svg import figure, supported
from tasks.report.cells import quoted, read_labels
from tasks.report.density import BANDS, MOST_CURVES
from tasks.report.parts import DataTable, Drawn, Figure, Source


def draw_mean_curves(source: Source) -> Drawn:
    """The published points of each curve, joined by straight lines."""
    release, section = source.release, source.plan.section(source.record.name)
    assert isinstance(release, MeanCurve)
    assert isinstance(section, MeanCurveSection)
    columns, by = source.plan.described_columns, release.by.names
    table, file = source.read(source.record.tables[0]), source.record.tables[0]
    first = columns[release.grids[0].name]
    assert not isinstance(first, CategoricalColumn)
    of_groups = f" by {' and '.join(quoted(name, columns) for name in by)}" if by else ""
    title = f"Mean curve of {section.curve.replace('-', ' ')}{of_groups}"
    labels = [""] * len(table[TIME])
    if by:
        words = [read_labels(table, name, columns) for name in by]
        labels = [", ".join(each) for each in zip(*words, strict=True)]
    of_each = {label: np.array([other == label for other in labels]) for label in labels}
    hidden = np.isnan(table["estimate"])
    known = [label for label, here in of_each.items() if not hidden[here].all()]
    if not known:
        return Drawn(notes=[f"{title}: no value, {UNKNOWN}."])
    shown = known[:MOST_CURVES]
    ends = [table[end][np.isin(labels, shown)] for end in BAND]
    x = Axis("Time", low=release.times[0], high=release.times[-1])
    low, high = float(ends[0].min()), float(ends[1].max())
    y = Axis(first.unit, low=low, high=high)
    panels = []
    for label in shown:
        here = {name: values[of_each[label]] for name, values in table.items()}
        curve = CurveWithBand(here[TIME], here["estimate"], *(here[end] for end in (*ENDS, *BAND)))
        panels.append(replace(band(curve, x, y), heading=label, height=110 if by else 180))
    panels = [panels[0], *(replace(panel, key=()) for panel in panels[1:])]
    half = figure(float(f"{np.nanmean(table[BAND[1]] - table[BAND[0]]) / 2:.3g}"))
    says = (
        "Line: noisy mean of the records' curves. Shaded band: 90% interval at each time. The paler"
        f" band contains the whole curve{' of a group' * bool(by)} with 90% probability,"
        f" ±{half}{' ' * bool(first.unit)}{first.unit} on average"
    )
    if float(np.nanmean(ends[1] - ends[0])) < LEGIBLE * (high - low):
        says += ", too little to be seen here"
    if len(known) > len(shown):
        says += f". The first {MOST_CURVES} of {len(known)} groups"
    if len(known) < len(of_each):
        says += f". {len(of_each) - len(known)} groups have no value: {UNKNOWN}"
    rows = []
    for i in np.flatnonzero(~hidden):
        values = [float(table[name][i]) for name in ("estimate", *ENDS, *BAND)]
        texts = supported(values, float(table["standard_error"][i]))
        rows.append([*[labels[i]] * bool(by), figure(float(table[TIME][i])), *texts])
    header = (*["Group"] * bool(by), "Time", "Estimate", *BANDS.values())
    numbers = DataTable(f"{title}, in numbers", header, rows, file.place)
    picture = chart(title, says, panels)
    return Drawn([Figure(title, says, picture, numbers)])
