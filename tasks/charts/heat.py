"""A table of two variables in shades; cells that may be empty are hatched."""

from collections.abc import Callable

import numpy as np

from dpcore.arrays import Booleans, Floats
from tasks.charts.chart import LINE, WIDEST, WIDTH, Axis, Panel
from tasks.charts.marks import Mark, bars, texts, tiles
from tasks.charts.svg import Scale, figure, text_width

SHADES = 8


def of_numbers(title: str, values: Floats, write: Callable[[float], str]) -> Axis:
    """The axis of a map whose cells are at these numbers: round labels, each at the nearest cell."""
    low, high = float(values.min()), float(values.max())
    ticks = Scale(low, high, 0.0, 1.0).ticks() if low < high else [low]
    places = {int(np.argmin(np.abs(values - tick))) + 0.5: write(tick) for tick in ticks}
    return Axis(title, low=0.0, high=float(len(values)), ticks=places)


def heat_map(
    values: Floats,
    rows: Axis,
    columns: Axis,
    doubtful: Booleans | None = None,
) -> list[Panel]:
    """A table (rows, columns) in shades, on a square-root scale so that small numbers show; cells with
    enough room also show their numbers.

    ``doubtful``: (rows, columns), the cells to hatch.  The first row is at the top if rows have names,
    and at the bottom if they are numbers.
    """
    largest = float(values.max())
    shape = values.shape
    shades = np.sqrt(np.clip(values / max(largest, 1e-300), 0, 1)) * SHADES
    shades = shades.astype(int).clip(0, SHADES - 1)
    marks: list[Mark] = [tiles(shades == k, f"shade{k}") for k in range(SHADES)]
    if doubtful is not None:
        marks.append(tiles(doubtful, "hatched"))
    names = min(text_width(rows.names or ()), WIDEST * WIDTH)
    place = (WIDTH - names - 22) / shape[1]
    step = min(26.0, max(place, 22.0 if shape[0] <= 13 else 3.4))
    written = [figure(round(value)) for value in values.ravel().tolist()]
    if step >= LINE and text_width(written) <= place - 2:
        i, j = np.indices(values.shape).reshape(2, -1) + 0.5
        classes = ["low" if shade < SHADES // 2 else "high" for shade in shades.ravel()]
        marks.append(texts(j, i, written, classes))
    shown = Panel(marks, columns, rows, step=step, height=step * shape[0])
    return [shown, _shades(largest)]


def _shades(largest: float) -> Panel:
    """The key: all shades, and the numbers where some of them begin."""
    ticks = {
        float(k): figure(float(f"{largest * (k / SHADES) ** 2:.2g}"))
        for k in range(0, SHADES + 1, 2)
    }
    start = np.arange(SHADES, dtype=float)
    marks = [bars(np.full(SHADES, 0.5), start + 1, start, [f"shade{k}" for k in range(SHADES)])]
    return Panel(marks, Axis(low=0.0, high=float(SHADES), ticks=ticks), Axis(names=[""]), step=14)
