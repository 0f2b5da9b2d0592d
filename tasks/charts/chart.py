"""Charts as declarations: marks in the units of the data, between two axes, in one panel or several.

    chart("Income", "What the marks mean", [Panel([area(x, low, high), line(x, middle)], Axis("Years"))])

A panel computes its scales, ticks, margins and the room for its labels.  Marks have classes of the style
sheet ``chart.css``, which has colours for light, dark and print. Panels are about as wide as a phone, so
that text is never scaled down.  No charting library is used, because it would bring a browser's script
engine into the publishing process.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from markupsafe import Markup

from dpcore.arrays import Floats
from tasks.charts.marks import Mark
from tasks.charts.svg import Scale, figure, label, tag, text_width

WIDTH, HEIGHT = 380, 180
LINE, LONGEST, WIDEST = 13, 150, 0.36
"""Room for a line of text, a rotated label, and labels at the side (as a fraction of the width)."""

WIDER = {"axis": 12 / 11, "heading": 1.2}
"""The width of letters in these labels, relative to other labels."""

LINES, DOTS = ("line", "whisker", "limit", "zero", "stem"), ("dot", "point")
"""Classes that the key shows as a line, and as a dot; all others are shown as filled areas."""


@dataclass(frozen=True)
class Axis:
    """One axis of a panel: numbers, or ``names`` of positions; the i-th spans i to i + 1.

    ``low``, ``high``: the ends, by default the ends of the marks; ``zero``: whether zero is shown too;
    ``ticks``: texts by position, by default round numbers as ``write`` formats them.
    """

    title: str = ""
    names: Sequence[str] | None = None
    zero: bool = False
    low: float | None = None
    high: float | None = None
    ticks: Mapping[float, str] | None = None
    write: Callable[[float], str] = figure

    def scale(self, values: Floats, start: float, end: float) -> Scale:
        known = [*values[np.isfinite(values)].tolist(), *([0.0] if self.zero else [])] or [0.0]
        low = min(known) if self.low is None else self.low
        high = max(known) if self.high is None else self.high
        if self.names is not None:
            low, high = 0.0, float(len(self.names))
        return Scale(low, high if high > low else low + 1.0, start, end)

    def labels(self, scale: Scale, most: int = 5) -> list[tuple[float, str]]:
        """The positions with a label, and the labels."""
        if self.names is not None:
            return [(i + 0.5, name) for i, name in enumerate(self.names)]
        if self.ticks is not None:
            return [*self.ticks.items()]
        return [(value, self.write(value)) for value in scale.ticks(max(most, 2))]


@dataclass(frozen=True)
class Panel:
    """Marks between two axes; names on y are listed from the top, ``step`` units apart.

    ``height``: of the plot if y is numeric; ``key``: classes of marks, with their meaning.
    """

    marks: Sequence[Mark]
    x: Axis = field(default=Axis())
    y: Axis = field(default=Axis())
    heading: str = ""
    key: Sequence[tuple[str, str]] = ()
    height: float = HEIGHT
    step: float | None = None

    def values(self, side: str) -> Floats:
        """The values that the marks must show along "xs" or "ys"."""
        found = (np.ravel(values) for mark in self.marks for values in getattr(mark, side))
        return np.concatenate([*found, []]).astype(np.float64)

    def draw(self, width: float, left: float = 0.0) -> tuple[Markup, float, float]:
        """The panel, its height, and the position where its plot begins: at least ``left``."""
        key, top = _key(self.key, 4.0, width)
        heading = _words(self.heading, 0, top + 8, width, "heading")
        top += 15 * len(heading)
        title = _words(self.y.title, 0, top + 10, width, "axis")
        top += 14 * len(title) + 8 * bool(title)
        names = self.y.names
        step, above = self.step or max(5, min(20, 600 // max(len(names or ()), 1))), False
        if names is not None and not self.step and len(names) <= 30:
            above = text_width(names) > WIDEST * width
            step, top = (34, top + 4) if above else (20, top)
        bottom = top + (self.height if names is None else step * len(names))
        y = self.y.scale(self.values("ys"), *((bottom, top) if names is None else (top, bottom)))
        marked = self.y.labels(y, int((bottom - top) / 30))
        widest = min(text_width(text for _, text in marked), WIDEST * width)
        left = max(left, 1.0 if above else widest + 7)
        x = self.x.scale(self.values("xs"), left, width - 14)
        beside = _above(marked, y, width) if above else _beside(marked, y, x, names is None)
        below, bottom = _below(self.x, x, top, bottom, width)
        marks = (mark.draw(x, y) for mark in self.marks)
        # Grid lines first: names are written over them, and marks over names.
        return Markup().join([*key, *heading, *title, *below, *beside, *marks]), bottom, left


def chart(title: str, says: str, panels: Sequence[Panel]) -> Markup:
    """One picture of panels below each other, with aligned plots; ``says``: its description."""
    y, parts, left = 0.0, [], 0.0
    # Drawn once for the room that labels need, then again with plots that begin at one position.
    if len(panels) > 1:
        left = max(panel.draw(WIDTH)[2] for panel in panels)
    for panel in panels:
        body, height, _ = panel.draw(WIDTH, left)
        parts.append(tag("g", body, transform=f"translate(0 {y:g})") if y else body)
        y += height + 6
    spoken = {"viewBox": f"0 0 {WIDTH:g} {y:.0f}", "role": "img", "aria_label": f"{title}. {says}"}
    return tag("svg", tag("title", title), tag("desc", says), *parts, **spoken)


def alike(panels: Sequence[Panel]) -> list[Panel]:
    """Panels with one scale of y."""
    scales = [panel.y.scale(panel.values("ys"), 0.0, 1.0) for panel in panels]
    low, high = (min((s.low for s in scales), default=0), max((s.high for s in scales), default=1))
    return [replace(panel, y=replace(panel.y, low=low, high=high)) for panel in panels]


def _words(
    text: str, x: float, y: float, room: float, class_: str, anchor: str = "start"
) -> list[Markup]:
    room /= WIDER.get(class_, 1.0)
    lines = _two_lines(text, room) if text else []
    spot = {"class_": class_, "text_anchor": anchor}
    return [label(part, x, y + 14 * i, room, **spot) for i, part in enumerate(lines)]


def _two_lines(text: str, room: float) -> list[str]:
    """A label, split into two lines if it needs more room and consists of several words."""
    if text_width([text]) <= room:
        return [text]
    words, first = text.split(), ""
    while words and text_width([f"{first} {words[0]}"]) <= room:
        first = f"{first} {words.pop(0)}".strip()
    return [first, " ".join(words)] if first and words else [text]


def _key(key: Sequence[tuple[str, str]], top: float, width: float) -> tuple[list[Markup], float]:
    """The key to the marks, in one line or several, and the position where it ends."""
    parts, x = [], 0.0
    for class_, words in key:
        if x and x + 24 + text_width([words]) > width:
            x, top = 0.0, top + 16
        middle = top + 7
        if class_ in DOTS:
            parts.append(tag("circle", class_=class_, cx=x + 8, cy=middle, r=3.4))
        elif class_ in LINES:
            parts.append(tag("path", class_=class_, d=f"M{x:.1f} {middle:.1f}h18"))
        else:
            parts.append(tag("rect", class_=class_, x=x + 0.5, y=middle - 5, width=17, height=10))
        parts.append(label(words, x + 23, middle + 4, width - x - 23, class_="tick"))
        x += 33 + text_width([words])
    return parts, top + 20 * bool(key)


def _above(marked: Iterable[tuple[float, str]], y: Scale, width: float) -> Iterator[Markup]:
    """Yield long names, each above its bar."""
    at = ((text, y(value) - y.unit / 2 + 6) for value, text in marked)
    return (label(text, 5, height, width - 5, class_="name") for text, height in at)


def _beside(
    marked: Iterable[tuple[float, str]], y: Scale, x: Scale, numbers: bool
) -> Iterator[Markup]:
    """Yield the labels left of the plot that have room; numbers get grid lines."""
    last = -math.inf
    for value, text in marked:
        at, room = y(value), x.start - 6
        if numbers:
            yield tag("line", class_="grid", x1=x.start, x2=x.end, y1=at, y2=at)
        if abs(at - last) >= LINE:
            lines = _two_lines(text, room) if not numbers and y.unit >= 2 * LINE else [text]
            for i, part in enumerate(lines):
                height = at + 4 + (i - (len(lines) - 1) / 2) * LINE
                spot = {"class_": "tick" if numbers else "name", "text_anchor": "end"}
                yield label(part, room, height, room, **spot)
            last = at


def _below(
    axis: Axis, x: Scale, top: float, bottom: float, width: float
) -> tuple[list[Markup], float]:
    """The labels below the plot that have room, the title of the axis, and the position of their end."""
    widest = text_width(text for _, text in axis.labels(x)) + 14
    marked, parts = axis.labels(x, min(6, int((x.end - x.start) / widest))), []
    turned = axis.names is not None and widest - 14 > x.unit - 3
    last, lowest = -math.inf, bottom + (18 if marked else 4)
    for value, text in marked:
        at, half = x(value), text_width([text]) / 2
        if axis.names is None:
            parts.append(tag("line", class_="grid", x1=at, x2=at, y1=top, y2=bottom))
        if not text or at - last < (LINE if turned else half + 2):
            continue
        if turned:
            turn = f"rotate(-45 {at + 4:.1f} {bottom + 9:.1f})"
            spot = {"text_anchor": "end", "transform": turn}
            parts.append(label(text, at + 4, bottom + 9, min(LONGEST, 1.4 * at), **spot))
            lowest, last = max(lowest, bottom + 14 + 0.71 * min(2 * half, LONGEST)), at
        else:
            middle = max(min(at, width - half), half)
            parts.append(label(text, middle, bottom + 14, class_="tick", text_anchor="middle"))
            last = middle + half
    half = min(text_width([axis.title]) * WIDER["axis"], width) / 2
    middle = max(min((x.start + x.end) / 2, width - half), half)
    title = _words(axis.title, middle, lowest + 12, width, "axis", "middle")
    return parts + title, lowest + 14 * len(title) + 2
