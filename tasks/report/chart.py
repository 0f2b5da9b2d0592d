"""Charts as declarations: marks in the units of the data, between two axes, in one panel or several.

    chart("Income", "What the marks mean", [Panel([area(x, low, high), line(x, middle)], Axis("Years"))])

A panel finds its scales, ticks, margins and the room of its labels.  Marks have classes of the style
sheet ``chart.css``, so that a chart follows light, dark and print.  Panels are about as wide as a phone,
and stand side by side where there is room: text never gets smaller than it was drawn.  There is no
charting library behind this: the publishing process would carry a browser's script engine for it.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.resources import files

from markupsafe import Markup

from tasks.report.marks import Mark
from tasks.report.svg import Scale, around, figure, label, tag, text_width

WIDTH, HEIGHT = 380, 180
HEAVY = 1.2
"""How much wider a heading is than a label."""

LINE = 13
"""Room that a line of text takes."""

LONGEST = 92
"""Room for a label that is turned."""

LINES, DOTS = ("line", "outer", "whisker", "limit", "zero", "stem"), ("dot", "point", "now")
"""Classes that a key shows as a line, and as a dot; the others are filled."""


@dataclass(frozen=True)
class Axis:
    """One side of a panel: numbers, or ``names`` of places, of which the i-th reaches from i to i + 1.

    ``low``, ``high``: the ends, else those of the marks; ``zero``: which is shown too; ``ticks``: texts
    at places, else round numbers as ``write`` says them.
    """

    title: str = ""
    names: Sequence[str] | None = None
    zero: bool = False
    low: float | None = None
    high: float | None = None
    log: bool = False
    ticks: Mapping[float, str] | None = None
    write: Callable[[float], str] = figure

    def scale(self, values: Iterable[float], start: float, end: float) -> Scale:
        if self.names is not None:
            return Scale(0.0, len(self.names) or 1.0, start, end)
        found = around(values, start, end, self.zero)
        low, high = (
            end if given is None else given
            for given, end in ((self.low, found.low), (self.high, found.high))
        )
        return Scale(low, high if high > low else low + 1.0, start, end, self.log)

    def labels(self, scale: Scale, most: int = 5) -> list[tuple[float, str]]:
        """Places with a label, and the labels."""
        if self.names is not None:
            return [(i + 0.5, name) for i, name in enumerate(self.names)]
        if self.ticks is not None:
            return [*self.ticks.items()]
        return [(value, self.write(value)) for value in scale.ticks(max(most, 2))]

    def shown(self, values: Iterable[float]) -> "Axis":
        """The same, with the ends that these values need."""
        scale = self.scale(values, 0.0, 1.0)
        return replace(self, low=scale.low, high=scale.high)


@dataclass(frozen=True)
class Panel:
    """Marks between two axes; names on y go down from the top, each with ``step`` units of room.

    ``height``: of the plot where y has numbers; ``key``: classes, and what their marks are.
    """

    marks: Sequence[Mark]
    x: Axis = field(default=Axis())
    y: Axis = field(default=Axis())
    heading: str = ""
    key: Sequence[tuple[str, str]] = ()
    height: float = HEIGHT
    step: float | None = None

    def values(self, side: str) -> list[float]:
        return [v for mark in self.marks for v in (mark.xs if side == "x" else mark.ys)]

    def draw(self, width: float) -> tuple[Markup, float]:
        """The panel, and how high it is."""
        parts, top = [], 4.0
        if self.heading:
            for part in _two_lines(self.heading, width / HEAVY):
                parts.append(label(part, 0, top + 8, width / HEAVY, class_="heading"))
                top += 15
        if self.key:
            drawn, top = _key(self.key, top, width)
            parts.append(drawn)
        if self.y.title:
            for part in _two_lines(self.y.title, width * 11 / 12):
                parts.append(label(part, 0, top + 10, width * 11 / 12, class_="axis"))
                top += 14
            top += 8
        names = self.y.names
        above = names is not None and self.step is None and len(names) <= 30
        above = above and text_width(names or ()) > 0.36 * width
        top += 4 * above
        step = self.step or (34 if above else _step(len(names or ())))
        bottom = top + (self.height if names is None else step * len(names))
        ends = (bottom, top) if names is None else (top, bottom)
        y = self.y.scale(self.values("y"), *ends)
        marked = self.y.labels(y, int(abs(y.start - y.end) / 30))
        left = 1.0 if above else min(text_width(text for _, text in marked), 0.36 * width) + 7
        x = self.x.scale(self.values("x"), left, width - 12)
        sides = [_on_y(marked, y, x, width, above, names is None)]
        drawn, bottom = _on_x(self.x, x, top, bottom, width)
        for mark in self.marks:
            sides.append(mark.draw(x, y))
        return Markup().join([*parts, drawn, *sides]), bottom


def chart(title: str, says: str, rows: Sequence[Sequence[Panel]], width: float = WIDTH) -> Markup:
    """Rows of panels as one picture, with its title and description for those who do not see it."""
    columns, y, parts = max(map(len, rows)), 0.0, []
    for row in rows:
        each = width / (columns if len(row) > 1 or len(rows) == 1 else 1)
        drawn = [panel.draw(each - 12 * (each < width)) for panel in row]
        for i, (body, _) in enumerate(drawn):
            moved = {"transform": f"translate({i * each:g} {y:g})"} if i or y else {}
            parts.append(tag("g", body, **moved) if moved else body)
        y += max(height for _, height in drawn) + 6
    return tag(
        "svg",
        tag("title", title),
        tag("desc", says),
        *parts,
        viewBox=f"0 0 {width:g} {y:.0f}",
        role="img",
        aria_label=f"{title}. {says}",
    )


def side_by_side(pictures: Iterable[Markup]) -> Markup:
    """Small multiples, as many in a row as have room."""
    return Markup('<div class="multiples">{}</div>').format(Markup().join(pictures))


def document(title: str, says: str, rows: Sequence[Sequence[Panel]], width: float) -> str:
    """A chart as a file of its own, with the style that it needs."""
    style = files("tasks.report").joinpath("templates/chart.css").read_text(encoding="utf-8")
    own = "svg { background: var(--page); font-family: system-ui, sans-serif; }"
    drawn = str(chart(title, says, rows, width))
    drawn = drawn.replace("<svg ", f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" ', 1)
    return drawn.replace("</desc>", f"</desc><style>{style}{own}</style>", 1)


def alike(panels: Sequence[Panel]) -> list[Panel]:
    """Panels with one scale of y."""
    both = panels[0].y.shown(v for panel in panels for v in panel.values("y")) if panels else None
    return [
        replace(panel, y=replace(panel.y, low=both.low, high=both.high)) for panel in panels if both
    ]


def _step(count: int) -> float:
    return 20 if count <= 30 else max(5, 600 // count)


def _key(key: Sequence[tuple[str, str]], top: float, width: float) -> tuple[Markup, float]:
    """What marks are, in as many lines as they need."""
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
    return Markup().join(parts), top + 20


def _on_y(
    marked: Sequence[tuple[float, str]], y: Scale, x: Scale, width: float, above: bool, grid: bool
) -> Markup:
    """Labels left of the plot or, of bars with long names, above each; grid lines of numbers."""
    parts, last = [], -math.inf
    place = abs(y(1.0) - y(0.0))
    for value, text in marked:
        at = y(value)
        if grid:
            parts.append(tag("line", class_="grid", x1=x.start, x2=x.end, y1=at, y2=at))
        if above:
            parts.append(label(text, 5, at - place / 2 + 6, width - 5))
        elif abs(at - last) >= LINE:
            wrapped = not grid and place >= 2 * LINE
            lines = _two_lines(text, x.start - 7) if wrapped else [text]
            for i, part in enumerate(lines):
                shown = at + 4 + (i - (len(lines) - 1) / 2) * LINE
                whole = {"class_": "tick"} if grid else {}
                parts.append(
                    label(part, x.start - 6, shown, x.start - 6, text_anchor="end", **whole)
                )
            last = at
    return Markup().join(parts)


def _two_lines(text: str, room: float) -> list[str]:
    """A label that has not enough room in two lines, if its words allow it."""
    if text_width([text]) <= room:
        return [text]
    words, first = text.split(), ""
    while words and text_width([f"{first} {words[0]}"]) <= room:
        first = f"{first} {words.pop(0)}".strip()
    return [first, " ".join(words)] if first and words else [text]


def _on_x(axis: Axis, x: Scale, top: float, bottom: float, width: float) -> tuple[Markup, float]:
    """Labels and the title below the plot, and where they end."""
    room = x.end - x.start
    marked, parts = axis.labels(x), []
    if axis.names is None and axis.ticks is None:
        widest = text_width(text for _, text in marked) + 14
        marked = axis.labels(x, min(6, int(room / widest)))
    place = abs(x(1.0) - x(0.0))
    turned = axis.names is not None and text_width(axis.names) > place - 3
    last, lowest = -math.inf, bottom + (4 if not marked else 18)
    for value, text in marked:
        at, half = x(value), text_width([text]) / 2
        if axis.names is None and not axis.log:
            parts.append(tag("line", class_="grid", x1=at, x2=at, y1=top, y2=bottom))
        if not text or at - last < (LINE if turned else half + 2):
            continue
        if turned:
            spot = f"rotate(-45 {at + 4:.1f} {bottom + 9:.1f})"
            turn = {"text_anchor": "end", "transform": spot}
            parts.append(label(text, at + 4, bottom + 9, LONGEST, **turn))
            lowest = max(lowest, bottom + 14 + 0.71 * min(2 * half, LONGEST))
            last = at
        else:
            middle = max(min(at, width - half), half)
            parts.append(label(text, middle, bottom + 14, class_="tick", text_anchor="middle"))
            last = middle + half
    for part in _two_lines(axis.title, width * 11 / 12) if axis.title else ():
        half = min(text_width([part]) * 12 / 11, width) / 2  # an axis is written larger
        middle = max(min((x.start + x.end) / 2, width - half), half)
        lowest += 14
        room = width * 11 / 12
        parts.append(label(part, middle, lowest - 2, room, class_="axis", text_anchor="middle"))
    return Markup().join(parts), lowest + 2
