"""Marks of charts: lines, areas, bars, dots and words at points in the units of the data.

A mark states the values that its scales must show, and is painted at the positions that the scales
return. Classes of the style sheet ``chart.css`` colour it.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, repeat

import numpy as np
from markupsafe import Markup
from numpy.typing import ArrayLike

from dpcore.arrays import Booleans
from tasks.charts.svg import Scale, label, line_path, tag

THICK = 0.62
"""Height of a bar, as a fraction of its row."""

Points = Sequence[tuple[float, ...]]
Classes = str | Sequence[str]
Paint = Callable[[Points, Scale, Scale], Iterator[Markup]]


@dataclass(frozen=True)
class Mark:
    """Values along x and y (arrays (k,), or one number for all), and a function that paints them.

    ``paint`` gets the positions of each point's xs, then of its ys; NaN if a value is unknown.
    """

    paint: Paint
    xs: Sequence[ArrayLike] = ()
    ys: Sequence[ArrayLike] = ()

    def draw(self, x: Scale, y: Scale) -> Markup:
        scales = [*(x for _ in self.xs), *(y for _ in self.ys)]
        values = np.broadcast_arrays(*(np.atleast_1d(each) for each in (*self.xs, *self.ys)))
        places = [
            [scale(v) for v in each.tolist()] for scale, each in zip(scales, values, strict=True)
        ]
        return Markup().join(self.paint(list(zip(*places, strict=True)), x, y))


def line(x: ArrayLike, y: ArrayLike, class_: str = "line") -> Mark:
    """A line that breaks where y is NaN; a point between two gaps is a dot."""

    def paint(points: Points, *_: Scale) -> Iterator[Markup]:
        for part in _without_gaps(points):
            if len(part) > 1:
                yield tag("path", class_=class_, d=line_path([(a, b) for a, b in part]))
            else:
                yield tag("circle", class_="point", cx=part[0][0], cy=part[0][1], r=1.8)

    return Mark(paint, [x], [y])


def area(x: ArrayLike, low: ArrayLike, high: ArrayLike, class_: str = "band") -> Mark:
    """The area between two functions of x; there is a gap where one is NaN."""

    def paint(points: Points, *_: Scale) -> Iterator[Markup]:
        for part in _without_gaps(points):
            around = [*((a, top) for a, _, top in part), *((a, low) for a, low, _ in part[::-1])]
            yield tag("path", class_=class_, d=line_path(around) + "Z")

    return Mark(paint, [x], [low, high])


def bars(
    y: ArrayLike,
    end: ArrayLike,
    start: ArrayLike = 0.0,
    class_: Classes = "bar",
) -> Mark:
    """Horizontal bars at y, from start to end."""

    def paint(points: Points, _: Scale, to_y: Scale) -> Iterator[Markup]:
        size = THICK * min(to_y.unit, 20)
        for (one, other, at), own in zip(points, _each(class_), strict=False):
            # A bar of length zero is still seen.
            box = {"x": min(one, other), "y": at - size / 2, "width": max(abs(other - one), 1.0)}
            yield tag("rect", class_=own, **box, height=size)

    return Mark(paint, [start, end], [y])


def spans(at: ArrayLike, low: ArrayLike, high: ArrayLike, upright: bool = False) -> Mark:
    """Error bars from low to high, horizontal or ``upright``; none where both are equal."""

    def paint(points: Points, x: Scale, y: Scale) -> Iterator[Markup]:
        cap = min((x if upright else y).unit, 14) / 4
        for point in points:
            start, end, middle = (*point[1:], point[0]) if upright else point
            moves = [((start, middle), (end, middle))]
            moves += [((place, middle - cap), (place, middle + cap)) for place in (start, end)]
            if start != end:
                path = "".join(
                    line_path([p[::-1] if upright else p for p in move]) for move in moves
                )
                yield tag("path", class_="whisker", d=path)

    return Mark(paint, [at], [low, high]) if upright else Mark(paint, [low, high], [at])


def dots(x: ArrayLike, y: ArrayLike, radius: float = 2.8) -> Mark:
    """A dot at each point that is not NaN."""

    def paint(points: Points, *_: Scale) -> Iterator[Markup]:
        for a, b in points:
            if a == a and b == b:
                yield tag("circle", class_="dot", cx=a, cy=b, r=radius)

    return Mark(paint, [x], [y])


def across(at: float, words: str) -> Mark:
    """A horizontal line through the panel, with its name on it."""

    def paint(points: Points, x: Scale, y: Scale) -> Iterator[Markup]:
        ((height,),) = points
        yield tag("line", class_="zero", x1=x.start, x2=x.end, y1=height, y2=height)
        # Above the line, unless the name would leave the panel.
        below = height + 13 if height < min(y.start, y.end) + 16 else height - 5
        room, spot = x.end - x.start, {"class_": "tick", "text_anchor": "end"}
        yield label(words, x.end - 2, below, room, **spot)

    return Mark(paint, [], [at])


def down(at: float, class_: str = "zero") -> Mark:
    """A vertical line through the panel."""

    def paint(points: Points, _: Scale, y: Scale) -> Iterator[Markup]:
        ((place,),) = points
        yield tag("line", class_=class_, x1=place, x2=place, y1=y.start, y2=y.end)

    return Mark(paint, [at])


def texts(
    x: ArrayLike,
    y: ArrayLike,
    words: Sequence[str],
    class_: Classes = "word",
    anchor: str = "middle",
) -> Mark:
    """Words at points; words to the right of a point keep some distance from it."""

    def paint(points: Points, *_: Scale) -> Iterator[Markup]:
        clear = 6 if anchor == "start" else 0
        for (a, b), text, own in zip(points, words, _each(class_), strict=False):
            yield label(text, a + clear, b + 4, class_=own, text_anchor=anchor)

    return Mark(paint, [x], [y])


def tiles(mask: Booleans, class_: str) -> Mark:
    """The true cells of a mask (rows, columns), joined within rows; cell (i, j) begins at (i, j)."""

    def paint(_: object, x: Scale, y: Scale) -> Iterator[Markup]:
        path = ""
        for i, row in enumerate(mask):
            edges = np.flatnonzero(np.diff(np.r_[0, row.astype(np.int8), 0])).tolist()
            for left, right in zip(edges[::2], edges[1::2], strict=True):
                start = f"{x(left):.1f}"
                path += f"M{start} {y(i):.1f}H{x(right):.1f}V{y(i + 1):.1f}H{start}z"
        yield tag("path", class_=class_, shape_rendering="crispEdges", d=path)

    return Mark(paint)


def _each(class_: Classes) -> Iterable[str]:
    return repeat(class_) if isinstance(class_, str) else class_


def _without_gaps(points: Points) -> Iterator[list[tuple[float, ...]]]:
    for known, part in groupby(points, key=lambda point: all(v == v for v in point)):
        if known:
            yield list(part)
