"""Models on the page: each coefficient with its interval, and how much of it is sampling and noise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from dpcore.releases.table import SIGMAS_95
from schemas.bundle import AnalysisRecord
from tasks.report.parts import DataTable, Drawn, Figure, read_columns
from tasks.report.svg import (
    WIDTH,
    around,
    figure,
    horizontal_axis,
    label,
    picture,
    supported,
    tag,
    text_width,
)

HEIGHT, TOP = 26, 30
"""Of a row, and of the key above them."""

MODELS = {
    "gaussian": ("Linear regression", "coefficient"),
    "binomial": ("Logistic regression", "coefficient, in log odds"),
    "poisson": ("Poisson regression", "coefficient, in log of the mean"),
}

INTERCEPT, TITLE = "Intercept", "Coefficients and their 95% intervals"


def draw_analysis(record: AnalysisRecord, bundle: Path) -> Drawn:
    """One row for each coefficient but the intercept, which has a scale of its own."""
    found = read_columns(bundle, record.file)
    terms = found["term"].tolist()
    if not terms:
        return Drawn((), record.notes)
    shown = [i for i, term in enumerate(terms) if term != INTERCEPT] or [*range(len(terms))]
    says = (
        "Dots: estimates; wide bars: 95% intervals of sampling alone, as the survey itself would give;"
        " thin lines: 95% intervals that hold the noise too"
    )
    if len(shown) < len(terms):
        says += ". The intercept is in the table"
    drawn = _intervals(found, shown, TITLE, says, MODELS[record.family][1])
    return Drawn([Figure(TITLE, says, drawn, _numbers(record, found), needed=True)], record.notes)


def _numbers(record: AnalysisRecord, found: Mapping[str, NDArray[Any]]) -> DataTable:
    rows: list[tuple[str, ...]] = []
    for i, term in enumerate(found["term"]):
        names = ("estimate", "sampling_error", "privacy_error", "lower_95", "upper_95")
        estimate, sampling, noise, low, high = (float(found[name][i]) for name in names)
        if np.isfinite(low):
            middle, *ends = supported((estimate, low, high), max(sampling, noise, 1e-300))
            rows.append((str(term), middle, f"{sampling:.2g}", f"{noise:.2g}", " to ".join(ends)))
        else:
            reason = f"none: {found['reason'][i]}"
            rows.append((str(term), figure(estimate), "not known", "not known", reason))
    header = ("Term", "Estimate", "Error by sampling", "Error by noise", "95% interval")
    return DataTable(f"Coefficients of {record.formula}", header, rows, record.file.path)


def _intervals(
    found: Mapping[str, NDArray[Any]], rows: Sequence[int], title: str, says: str, unit: str
) -> Markup:
    """Intervals as in a plot of coefficients, around a line at zero."""
    left = min(text_width(str(found["term"][i]) for i in rows), 0.36 * WIDTH) + 8
    ends = [float(found[end][i]) for i in rows for end in ("lower_95", "upper_95")]
    scale = around(ends, left + 4, WIDTH - 20)
    bottom = TOP + HEIGHT * len(rows)
    zero = scale(0.0)
    parts = [
        *_key(),
        horizontal_axis(scale, bottom, TOP, unit),
        tag("line", class_="zero", x1=zero, x2=zero, y1=TOP, y2=bottom),
    ]
    for number, i in enumerate(rows):
        middle = TOP + (number + 0.5) * HEIGHT
        parts.append(
            label(str(found["term"][i]), left - 6, middle + 4, left - 6, text_anchor="end")
        )
        if not np.isfinite(found["lower_95"][i]):
            parts.append(label("no interval", left + 8, middle + 4, class_="tick"))
            continue
        estimate, half = (float(found[name][i]) for name in ("estimate", "sampling_error"))
        half *= SIGMAS_95
        outer = (scale(float(found[end][i])) for end in ("lower_95", "upper_95"))
        parts += _mark(
            (scale(estimate - half), scale(estimate + half)), outer, scale(estimate), middle
        )
    return picture(title, says, bottom + 38, *parts)


def _mark(inner: Sequence[float], outer: Any, at: float, middle: float) -> list[Markup]:
    """A wide bar, a thin line with ends and a dot."""
    (start, end), (low, high) = inner, outer
    caps = "".join(f"M{x:.2f} {middle - 5:.2f}v10" for x in (low, high))
    return [
        tag("rect", class_="bar", x=start, y=middle - 5, width=end - start, height=10),
        tag("path", class_="whisker", d=f"M{low:.2f} {middle:.2f}H{high:.2f}{caps}"),
        tag("circle", class_="dot", cx=at, cy=middle, r=3.4),
    ]


def _key() -> list[Markup]:
    """What the marks are, above the rows."""
    return [
        tag("circle", class_="dot", cx=8, cy=12, r=3.4),
        label("estimate", 16, 16, class_="tick"),
        tag("rect", class_="bar", x=94, y=7, width=24, height=10),
        label("sampling", 123, 16, class_="tick"),
        tag("path", class_="whisker", d="M202 12H230M202 7v10M230 7v10"),
        label("sampling and noise", 236, 16, class_="tick"),
    ]
