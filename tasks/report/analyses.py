"""Models on the page: each coefficient with two intervals, for sampling alone and with noise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcore.post.levels import SIGMAS_95
from dpcore.releases.models.model import MeasuredModel
from schemas.bundle.manifest import AnalysisRecord
from schemas.releases.formulas import CONSTANT
from tasks.charts.chart import Axis, Panel
from tasks.charts.marks import bars, dots, down, spans, texts
from tasks.charts.svg import supported
from tasks.report.cells import Columns
from tasks.report.parts import DataTable, Drawn, Figure, Source, read_columns
from tasks.report.terms import term_name

NUMBERS = (
    "Estimate",
    "Error from sampling",
    "Error from noise",
    "95% interval for this number alone",
)
"""Headings of estimates for the population."""

KEY = (
    ("dot", "estimate"),
    ("bar", "95% interval, sampling"),
    ("whisker", "95% interval, sampling and noise"),
)

MODELS = {
    "gaussian": ("Linear regression", "coefficient"),
    "binomial": ("Logistic regression", "coefficient, in log odds"),
    "poisson": ("Poisson regression", "coefficient, in log of the mean"),
}

TITLE = "Coefficients and their 95% intervals"


def draw_analysis(record: AnalysisRecord, bundle: Path, columns: Columns) -> Drawn:
    """A model fitted to noisy tables or moments."""
    asked = record.formula, record.family
    return _drawn(
        read_columns(bundle, record.file), *asked, record.file.path, record.notes, columns
    )


def draw_coefficients(source: Source) -> Drawn:
    """A model measured directly."""
    release: MeasuredModel = source.charted
    file = source.record.tables[0]
    notes = [each.statement for each in file.uncertainty]
    columns = source.plan.described_columns
    return _drawn(source.read(file), release.formula, release.family, file.path, notes, columns)


def _drawn(
    found: Mapping[str, NDArray[Any]],
    formula: str,
    family: str,
    path: str,
    notes: Sequence[str],
    columns: Columns,
) -> Drawn:
    """A chart with one row for each coefficient except the intercept, which has a different scale."""
    terms = found["term"].tolist()
    if not terms:
        return Drawn((), notes)
    shown = [i for i, term in enumerate(terms) if term != CONSTANT] or [*range(len(terms))]
    says = (
        "Estimates with two 95% intervals, each for one coefficient alone: from sampling error, and from"
        " sampling error and noise"
    )
    if len(shown) < len(terms):
        says += ". The intercept is in the table"
    names = [term_name(columns, terms, term) for term in terms]
    panel = _intervals(found, shown, [names[i] for i in shown], MODELS[family][1])
    rows = [(name, *estimate_row(found, i)) for i, name in enumerate(names)]
    numbers = DataTable(f"Coefficients of {formula}", ("Term", *NUMBERS), rows, path)
    return Drawn([Figure(TITLE, says, [panel], numbers)], notes)


def estimate_row(found: Mapping[str, NDArray[Any]], row: int) -> tuple[str, ...]:
    """The texts below ``NUMBERS`` for a row of a table of estimates."""
    names = ("estimate", "sampling_error", "privacy_error", "lower_95", "upper_95")
    estimate, sampling, noise, low, high = (float(found[name][row]) for name in names)
    if not np.isfinite(low):
        return *["no value"] * 3, f"none: {found['reason'][row]}"
    estimate = min(max(estimate, low), high)  # noise may move a share below zero
    middle, *ends = supported((estimate, low, high), max(sampling, noise, 1e-300))
    errors = [supported([each], each)[0] for each in (sampling, noise)]
    return middle, *errors, " to ".join(ends)


def _intervals(
    found: Mapping[str, NDArray[Any]],
    rows: Sequence[int],
    names: Sequence[str],
    unit: str,
) -> Panel:
    places = np.arange(len(rows)) + 0.5
    estimate, error, low, high = (
        found[name][list(rows)].astype(float)
        for name in ("estimate", "sampling_error", "lower_95", "upper_95")
    )
    known = np.isfinite(low)
    ends, at = (low[known], high[known]), places[known]
    half = SIGMAS_95 * error[known]
    middle, less, more = (np.clip(estimate[known] + side * half, *ends) for side in (0, -1, 1))
    marks = [
        down(0.0),
        bars(at, more, less),
        spans(at, *ends),
        dots(middle, at, radius=3.4),
        texts(
            np.zeros((~known).sum()),
            places[~known],
            ["no interval"] * int((~known).sum()),
            "tick",
            "start",
        ),
    ]
    return Panel(marks, Axis(unit, zero=True), Axis(names=names), key=KEY)
