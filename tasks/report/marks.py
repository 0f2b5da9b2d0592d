"""Marks of charts: lines, areas, bars, dots and words at points in the units of the data.

A mark knows what its scales must show; classes of the style sheet ``chart.css`` colour it.
"""

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import NamedTuple

import numpy as np
from markupsafe import Markup
from numpy.typing import ArrayLike

from dpcore.arrays import Booleans
from tasks.report.svg import Scale, label, line_path, tag


class Mark(NamedTuple):
    """What scales must show, x and y, and how it is drawn between them."""

    xs: Sequence[float]
    ys: Sequence[float]
    draw: Callable[[Scale, Scale], Markup]


def line(x: ArrayLike, y: ArrayLike, class_: str = "line") -> Mark:
    """A line that breaks where y is NaN; a point between two gaps is a dot."""
    xs, ys = _floats(x), _floats(y)

    def draw(to_x: Scale, to_y: Scale) -> Markup:
        parts = []
        for known, part in groupby(
            zip(xs, ys, strict=True), key=lambda point: point[1] == point[1]
        ):
            places = [(to_x(a), to_y(b)) for a, b in part] if known else []
            if len(places) > 1:
                parts.append(tag("path", class_=class_, d=line_path(places)))
            elif places:
                ((a, b),) = places
                parts.append(tag("circle", class_="point", cx=a, cy=b, r=1.8))
        return Markup().join(parts)

    return Mark(xs, ys, draw)


def area(x: ArrayLike, low: ArrayLike, high: ArrayLike, class_: str = "band") -> Mark:
    """What lies between two functions of x; there is a gap where one is NaN."""
    xs, lows, highs = _floats(x), _floats(low), _floats(high)

    def draw(to_x: Scale, to_y: Scale) -> Markup:
        path = ""
        for known, part in groupby(zip(xs, lows, highs, strict=True), key=lambda p: p[1] == p[1]):
            if known:
                points = list(part)
                there = [(to_x(a), to_y(high)) for a, _, high in points]
                back = [(to_x(a), to_y(low)) for a, low, _ in points[::-1]]
                path += line_path([*there, *back]) + "Z"
        return tag("path", class_=class_, d=path)

    return Mark([*xs, *xs], [*lows, *highs], draw)


def bars(
    y: ArrayLike, end: ArrayLike, start: ArrayLike = 0.0, class_: str = "bar", thick: float = 0.62
) -> Mark:
    """Horizontal bars at y, from start to end; ``thick``: of the room of a place."""
    ys, ends = _floats(y), _floats(end)
    starts = np.broadcast_to(np.asarray(start, dtype=float), len(ys)).tolist()

    def draw(to_x: Scale, to_y: Scale) -> Markup:
        parts, size = [], min(thick * abs(to_y(1.0) - to_y(0.0)), 20 * thick)
        for middle, *both in zip(ys, starts, ends, strict=True):
            left, right = sorted(map(to_x, both))
            y, width = to_y(middle) - size / 2, max(right - left, 1.0)
            parts.append(tag("rect", class_=class_, x=left, y=y, width=width, height=size))
        return Markup().join(parts)

    return Mark([*starts, *ends], ys, draw)


def spans(
    at: ArrayLike, low: ArrayLike, high: ArrayLike, class_: str = "whisker", upright: bool = False
) -> Mark:
    """Lines with ends from low to high, at heights or, upright, at places; none where both are equal."""
    places, lows, highs = _floats(at), _floats(low), _floats(high)

    def draw(x: Scale, y: Scale) -> Markup:
        parts, (along, beside) = [], (y, x) if upright else (x, y)
        half = min(abs(beside(1.0) - beside(0.0)), 14) / 4
        for place, *both in zip(places, lows, highs, strict=True):
            if both[0] < both[1]:
                (start, end), middle = map(along, both), beside(place)
                moves = [((start, middle), (end, middle))]
                moves += [((e, middle - half), (e, middle + half)) for e in (start, end)]
                if upright:
                    moves = [((b, a), (d, c)) for (a, b), (c, d) in moves]
                path = "".join(map(line_path, moves))
                parts.append(tag("path", class_=class_, d=path))
        return Markup().join(parts)

    ends = [*lows, *highs]
    return Mark(places, ends, draw) if upright else Mark(ends, places, draw)


def dots(x: ArrayLike, y: ArrayLike, class_: str = "dot", radius: float = 2.8) -> Mark:
    """A dot at each point."""
    xs, ys = _floats(x), _floats(y)

    def draw(to_x: Scale, to_y: Scale) -> Markup:
        return Markup().join(
            tag("circle", class_=class_, cx=to_x(a), cy=to_y(b), r=radius)
            for a, b in zip(xs, ys, strict=True)
            if a == a and b == b
        )

    return Mark(xs, ys, draw)


def across(at: float, words: str = "", class_: str = "zero") -> Mark:
    """A horizontal line through the panel, with its name on it."""

    def draw(x: Scale, y: Scale) -> Markup:
        height = y(at)
        drawn = tag("line", class_=class_, x1=x.start, x2=x.end, y1=height, y2=height)
        below = height + 13 if height < min(y.start, y.end) + 16 else height - 5
        spot = {"class_": "tick", "text_anchor": "end"}
        said = label(words, x.end - 2, below, x.end - x.start, **spot) if words else ""
        return drawn + said

    return Mark([], [at], draw)


def down(at: float, class_: str = "zero") -> Mark:
    """A vertical line through the panel."""

    def draw(x: Scale, y: Scale) -> Markup:
        return tag("line", class_=class_, x1=x(at), x2=x(at), y1=y.start, y2=y.end)

    return Mark([at], [], draw)


def rectangle(x: tuple[float, float], y: tuple[float, float], class_: str) -> Mark:
    """What lies between two places and two heights."""
    return area(x, (y[0], y[0]), (y[1], y[1]), class_)


def texts(
    x: ArrayLike, y: ArrayLike, words: Sequence[str], class_: str = "word", anchor: str = "middle"
) -> Mark:
    """Words at points; those that begin at a point stand clear of it."""
    xs, ys = _floats(x), _floats(y)

    def draw(to_x: Scale, to_y: Scale) -> Markup:
        clear = 6 if anchor == "start" else 0
        return Markup().join(
            label(text, to_x(a) + clear, to_y(b) + 4, class_=class_, text_anchor=anchor)
            for a, b, text in zip(xs, ys, words, strict=True)
        )

    return Mark([], [], draw)


def tiles(mask: Booleans, class_: str) -> Mark:
    """The true cells of a mask (rows, columns), neighbours in a row joined; cell (i, j) begins there."""

    def draw(x: Scale, y: Scale) -> Markup:
        path = ""
        for i, row in enumerate(mask):
            edges = np.flatnonzero(np.diff(np.r_[0, row.astype(np.int8), 0])).tolist()
            for start, end in zip(edges[::2], edges[1::2], strict=True):
                left = f"{x(start):.1f}"
                path += f"M{left} {y(i):.1f}H{x(end):.1f}V{y(i + 1):.1f}H{left}z"
        return tag("path", class_=class_, shape_rendering="crispEdges", d=path)

    return Mark([], [], draw)


def _floats(values: ArrayLike) -> list[float]:
    found: list[float] = np.asarray(values, dtype=float).tolist()
    return found
