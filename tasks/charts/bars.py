"""Bars with their intervals: one row per cell, for counts."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from tasks.charts.chart import Axis, Panel
from tasks.charts.marks import bars as drawn_bars
from tasks.charts.marks import dots, down, spans
from tasks.charts.svg import figure


@dataclass(frozen=True)
class Bar:
    """A number with its interval."""

    label: str
    value: float
    lower: float
    upper: float


def bars(
    rows: Sequence[Bar],
    unit: str,
    write: Callable[[float], str] = figure,
    key: Sequence[tuple[str, str]] = (),
    others: Sequence[float] | None = None,
) -> list[Panel]:
    """Horizontal bars with their intervals, if any; if there are many rows, only some are labelled.

    A row without a value (NaN) has an interval and no bar. ``others``: numbers to compare with the
    rows; they get the bars, and the rows get dots.
    """
    places, values = np.arange(len(rows)) + 0.5, np.array([row.value for row in rows])
    length, class_ = (values, "bar") if others is None else (np.array(others), "other")
    known = np.isfinite(length)
    marks = [
        drawn_bars(places[known], length[known], class_=class_),
        spans(places, [row.lower for row in rows], [row.upper for row in rows]),
        *([] if others is None else [dots(values, places)]),
        down(0.0),
    ]
    names = Axis(names=[row.label for row in rows])
    return [Panel(marks, Axis(unit, zero=True, write=write), names, key=key)]
