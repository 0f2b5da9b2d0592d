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
    """A number with its interval; ``other`` is a second number to compare with it."""

    label: str
    value: float
    lower: float
    upper: float
    other: float | None = None


def bars(
    rows: Sequence[Bar],
    unit: str,
    key: Sequence[tuple[str, str]] = (),
    write: Callable[[float], str] = figure,
) -> list[Panel]:
    """Horizontal bars with their intervals, if any; if there are many rows, only some are labelled.

    A row without a value (NaN) has an interval and no bar.
    """
    places = np.arange(len(rows)) + 0.5
    length = np.array([row.value if row.other is None else row.other for row in rows])
    known = np.isfinite(length)
    value = [row.value if row.other is not None else np.nan for row in rows]
    marks = [
        drawn_bars(
            places[known],
            length[known],
            class_=[
                "bar" if rows[i].other is None else "other" for i in np.flatnonzero(known).tolist()
            ],
        ),
        spans(places, [row.lower for row in rows], [row.upper for row in rows]),
        dots(value, places),
        down(0.0),
    ]
    names = Axis(names=[row.label for row in rows])
    return [Panel(marks, Axis(unit, zero=True, write=write), names, key=key)]
