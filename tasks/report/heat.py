"""A table of two variables in shades; cells that may well be empty are hatched."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from markupsafe import Markup

from dpcore.arrays import Booleans, Floats, Integers
from tasks.report.svg import WIDTH, Scale, figure, label, picture, tag, text_width

SHADES = 8
MARGIN = 8
TOP = 20
LINE = 13
"""Room that a line of text takes."""

GAP = 4
"""Least room between two numbers below the shades."""

LONGEST = 92
"""Room for a label that is turned."""


@dataclass(frozen=True)
class Side:
    """One side of a heat map: its name and the labels of its cells.

    ``ticks``: only a few cells have labels, and these have room.
    """

    name: str
    labels: Sequence[str]
    ticks: bool = False

    @classmethod
    def of_numbers(cls, name: str, values: Floats) -> "Side":
        """Round numbers, each at the cell that is nearest."""
        labels = [""] * len(values)
        low, high = float(values.min()), float(values.max())
        for tick in Scale(low, high, 0.0, 1.0).ticks() if low < high else [low]:
            labels[int(np.argmin(np.abs(values - tick)))] = figure(tick)
        return cls(name, labels, ticks=True)

    def shown(self, size: float) -> Iterator[tuple[int, str]]:
        """The labels that have room where a cell has this size."""
        every = 1 if self.ticks else max(1, math.ceil(LINE / size))
        return ((i, text) for i, text in enumerate(self.labels) if text and i % every == 0)


@dataclass(frozen=True)
class Cells:
    """Where the cells (rows, columns) of a heat map lie."""

    rows: int
    columns: int
    left: float
    width: float
    height: float

    @classmethod
    def within(cls, rows: Side, count: int, columns: int) -> "Cells":
        """Cells as wide as the picture allows and not too high."""
        left = min(text_width(rows.labels), 0.33 * WIDTH) + 22
        width = (WIDTH - left - MARGIN) / columns
        return cls(count, columns, left, width, min(26.0, max(width, 22.0 if count <= 13 else 3.4)))

    @property
    def bottom(self) -> float:
        return TOP + self.rows * self.height

    def x(self, column: float) -> float:
        return self.left + column * self.width

    def y(self, row: float) -> float:
        return TOP + row * self.height

    def path(self, mask: Booleans) -> str:
        """The true cells of a mask (rows, columns) as path data, neighbours in a row joined."""
        path = []
        for i, row in enumerate(mask):
            edges = np.flatnonzero(np.diff(np.r_[0, row.astype(np.int8), 0])).tolist()
            for a, b in zip(edges[::2], edges[1::2], strict=True):
                start, end = self.x(a), self.x(b)
                path.append(
                    f"M{start:.1f} {self.y(i):.1f}H{end:.1f}V{self.y(i + 1):.1f}H{start:.1f}z"
                )
        return "".join(path)


def heat_map(
    values: Floats,
    rows: Side,
    columns: Side,
    title: str,
    description: str,
    doubtful: Booleans | None = None,
) -> Markup:
    """Shades of a table (rows, columns), by the square root so that small numbers show.

    ``doubtful``: (rows, columns) cells that are hatched.  The first row is at the top.
    """
    cells = Cells.within(rows, *values.shape)
    largest = max(float(values.max()), 1e-300)
    shades = (np.sqrt(np.clip(values / largest, 0, 1)) * SHADES).astype(int).clip(0, SHADES - 1)
    parts = [
        tag("path", class_=f"shade{k}", shape_rendering="crispEdges", d=cells.path(shades == k))
        for k in range(SHADES)
    ]
    if doubtful is not None:
        parts.append(tag("path", class_="hatched", d=cells.path(doubtful)))
    everything = np.ones((1, 1), dtype=bool)
    whole = Cells(1, 1, cells.left, WIDTH - MARGIN - cells.left, cells.bottom - TOP)
    parts.append(tag("path", class_="frame", d=whole.path(everything)))
    written = [figure(round(value)) for value in values.ravel().tolist()]
    if cells.height >= LINE and text_width(written) <= cells.width - 2:
        parts += _numbers(written, shades, cells)
    names, y = _labels(rows, columns, cells)
    return picture(title, description, y + 34, *parts, *names, _legend(largest, y))


def _numbers(written: Sequence[str], shades: Integers, cells: Cells) -> list[Markup]:
    """The values, written in their cells."""
    places = product(range(cells.rows), range(cells.columns))
    return [
        label(
            text,
            cells.x(j + 0.5),
            cells.y(i + 0.5) + 4,
            text_anchor="middle",
            class_="low" if shades[i, j] < SHADES // 2 else "high",
        )
        for text, (i, j) in zip(written, places, strict=True)
    ]


def _labels(rows: Side, columns: Side, cells: Cells) -> tuple[list[Markup], float]:
    """The labels and names of both sides, and where the picture goes on below them."""
    room = cells.left - 10
    parts = [label(rows.name, 4, 12, WIDTH, class_="axis")]
    for i, text in rows.shown(cells.height):
        parts.append(label(text, cells.left - 6, cells.y(i + 0.5) + 4, room, text_anchor="end"))
    straight = columns.ticks or text_width(columns.labels) <= cells.width - 3
    for j, text in columns.shown(cells.width):
        if straight:
            x, y, turn = cells.x(j + 0.5), cells.bottom + 14, {"text_anchor": "middle"}
        else:
            x, y = cells.x(j + 0.5) + 4, cells.bottom + 9
            turn = {"text_anchor": "end", "transform": f"rotate(-45 {x:.1f} {y:.1f})"}
        parts.append(label(text, x, y, LONGEST, **turn))
    taken = 18 if straight else 14 + 0.71 * min(text_width(columns.labels), LONGEST)
    middle, y = (cells.left + WIDTH) / 2, cells.bottom + taken + 12
    parts.append(
        label(columns.name, middle, y, WIDTH - cells.left, class_="axis", text_anchor="middle")
    )
    return parts, y + 12


def _legend(largest: float, y: float) -> Markup:
    """The shades, and the numbers at which some of them begin, where they have room."""
    step = 36
    left = WIDTH - SHADES * step - MARGIN
    end = figure(float(f"{largest:.2g}"))
    room = left + SHADES * step - text_width([end]) - GAP
    parts, taken = [], 0.0
    for shade in range(SHADES):
        x = left + shade * step
        parts.append(tag("rect", class_=f"shade{shade}", x=x, y=y, width=step, height=8))
        if shade % 2 == 0:
            start = figure(float(f"{largest * (shade / SHADES) ** 2:.2g}"))
            half = text_width([start]) / 2
            if taken <= x - half and x + half <= room:
                parts.append(label(start, x, y + 21, class_="tick", text_anchor="middle"))
                taken = x + half + GAP
    parts.append(label(end, left + SHADES * step, y + 21, class_="tick", text_anchor="end"))
    return Markup().join(parts)
