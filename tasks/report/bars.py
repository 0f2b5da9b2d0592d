"""Bars with their intervals: one row per cell, for counts."""

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from tasks.report.svg import WIDTH, around, horizontal_axis, label, picture, tag, text_width

MARGIN = 8


@dataclass(frozen=True)
class Bar:
    """A number with its interval; ``other`` is drawn beside it for comparison."""

    label: str
    value: float
    lower: float
    upper: float
    other: float | None = None


def bars(rows: Sequence[Bar], title: str, description: str, unit: str) -> Markup:
    """Horizontal bars with their intervals, if any; of many rows only some are labelled."""
    height = 20 if len(rows) <= 30 else max(5, 600 // len(rows))
    left = min(text_width(row.label for row in rows), 0.36 * WIDTH) + MARGIN
    ends = [e for r in rows for e in (r.value, r.lower, r.upper, r.other or 0.0)]
    scale = around(ends, left, WIDTH - 20)
    bottom = MARGIN + height * len(rows)
    every = -(-13 // height)
    parts = [horizontal_axis(scale, bottom, MARGIN, unit)]
    for i, row in enumerate(rows):
        middle = MARGIN + (i + 0.5) * height
        if i % every == 0:
            parts.append(label(row.label, left - 6, middle + 4, left - 6, text_anchor="end"))
        parts.append(
            _bar(
                scale(0.0),
                scale(row.value if row.other is None else row.other),
                middle,
                0.62 * height,
                "bar" if row.other is None else "bar other",
            )
        )
        if row.lower < row.upper:
            parts.append(_whisker(scale(row.lower), scale(row.upper), middle, min(height, 12) / 4))
        if row.other is not None:
            parts.append(tag("circle", class_="dot", cx=scale(row.value), cy=middle, r=2.6))
    parts.append(tag("line", class_="zero", x1=scale(0.0), x2=scale(0.0), y1=MARGIN, y2=bottom))
    return picture(title, description, bottom + 38, *parts)


def _bar(start: float, end: float, middle: float, thickness: float, class_: str) -> Markup:
    x, width = min(start, end), abs(end - start)
    y = middle - thickness / 2
    return tag("rect", class_=class_, x=x, y=y, width=width, height=thickness)


def _whisker(start: float, end: float, middle: float, half: float) -> Markup:
    ends = (f"M{x:.2f} {middle - half:.2f}v{2 * half:.2f}" for x in (start, end))
    path = f"M{start:.2f} {middle:.2f}H{end:.2f}" + "".join(ends)
    return tag("path", class_="whisker", d=path)
