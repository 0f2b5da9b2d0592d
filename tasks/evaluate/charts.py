"""Charts of an evaluation: real beside synthetic numbers, and the coefficients of a regression."""

from __future__ import annotations

from collections.abc import Iterable

from markupsafe import Markup

from dpcore.arrays import Floats
from tasks.evaluate.regressions import NORMAL, Coefficient, Regression
from tasks.evaluate.shapes import Shape
from tasks.report.svg import (
    WIDTH,
    Scale,
    around,
    horizontal_axis,
    label,
    line_path,
    picture,
    tag,
    text_width,
)

TOP, BARS, BETWEEN, CURVES = 16, 96, 34, 84
"""Heights of the parts of a chart of numbers."""

LEFT, RIGHT, ROW = 44, 12, 22
FARTHEST = 25.0
"""Coefficients are drawn up to this many standard errors from the real one."""


def number_chart(name: str, shape: Shape, title: str, says: str) -> Markup:
    """A histogram and distribution functions, real ones filled, synthetic ones as a line."""
    curves = shape.curves
    x = Scale(float(curves.edges[0]), float(curves.edges[-1]), LEFT, WIDTH - RIGHT)
    bottom = TOP + BARS
    y = Scale(0.0, max(float(part.max()) for part in curves.bars) or 1.0, bottom, TOP)
    lowest = bottom + BETWEEN + CURVES
    share = Scale(0.0, 1.0, lowest, bottom + BETWEEN)
    bars, at_most = (
        [_steps(curves.edges, part, x, y) for part in curves.bars],
        [_line(curves.points, part, x, share) for part in curves.at_most],
    )
    ends = f"L{x.end:.1f} {{0:.1f}}L{x.start:.1f} {{0:.1f}}Z"
    return picture(
        title,
        says,
        lowest + 38,
        label("Share of records in each bar", 4, 10, WIDTH, class_="axis"),
        _shares(y, 3),
        tag("path", class_="band", d=bars[0] + ends.format(bottom)),
        tag("path", class_="whisker", d=bars[1]),
        tag("line", class_="zero", x1=LEFT, x2=WIDTH - RIGHT, y1=bottom, y2=bottom),
        label(
            "Share of records with at most this value",
            4,
            bottom + BETWEEN - 10,
            WIDTH,
            class_="axis",
        ),
        _shares(share, 2),
        horizontal_axis(x, lowest, bottom + BETWEEN, name),
        tag("path", class_="band", d=at_most[0] + ends.format(lowest)),
        tag("path", class_="whisker", d=at_most[1]),
    )


def _shares(scale: Scale, most: int) -> Markup:
    """Ticks of shares, in percent, and their lines."""
    parts = []
    for value in scale.ticks(most):
        y = scale(value)
        parts.append(tag("line", class_="grid", x1=LEFT, x2=WIDTH - RIGHT, y1=y, y2=y))
        text = f"{100 * value:.3g}%"
        parts.append(label(text, LEFT - 5, y + 4, class_="tick", text_anchor="end"))
    return Markup().join(parts)


def _steps(edges: Floats, heights: Floats, x: Scale, y: Scale) -> str:
    corners = []
    for low, high, height in zip(edges, edges[1:], heights, strict=False):
        corners += [(x(float(low)), y(float(height))), (x(float(high)), y(float(height)))]
    return line_path(corners)


def _line(points: Floats, shares: Floats, x: Scale, y: Scale) -> str:
    return line_path([(x(float(a)), y(float(b))) for a, b in zip(points, shares, strict=True)])


def coefficient_chart(regression: Regression, title: str, says: str) -> Markup:
    """Each synthetic coefficient with its interval, on the scale of the real one and its error."""
    rows = regression.coefficients
    left = min(text_width(one.term for one in rows), 0.42 * WIDTH) + 12
    scale = around([-3.0, 3.0, *_ends(rows)], left, WIDTH - RIGHT, zero=False)
    bottom = TOP + ROW * len(rows)
    low, high = scale(-NORMAL), scale(NORMAL)
    parts = [
        tag("rect", class_="band", x=low, y=TOP, width=high - low, height=bottom - TOP),
        horizontal_axis(scale, bottom, TOP, "Standard errors from the real coefficient"),
        tag("line", class_="zero", x1=scale(0.0), x2=scale(0.0), y1=TOP, y2=bottom),
    ]
    for i, one in enumerate(rows):
        middle = TOP + (i + 0.5) * ROW
        parts.append(label(one.term, left - 6, middle + 4, left - 8, text_anchor="end"))
        place, half = _apart(one)
        if place == place:
            ends = scale(place - half), scale(place + half)
            path = f"M{ends[0]:.1f} {middle:.1f}H{ends[1]:.1f}"
            parts.append(tag("path", class_="whisker", d=path))
            parts.append(tag("circle", class_="dot", cx=scale(place), cy=middle, r=3.4))
        else:
            parts.append(label("not in the synthetic records", scale.start + 6, middle + 4))
    return picture(title, says, bottom + 38, *parts)


def _apart(one: Coefficient) -> tuple[float, float]:
    """The synthetic coefficient and half its interval, in standard errors from the real one."""
    unit = one.real_error or 1.0
    return (one.synthetic - one.real) / unit, NORMAL * one.synthetic_error / unit


def _ends(rows: Iterable[Coefficient]) -> list[float]:
    ends = [end for place, half in map(_apart, rows) for end in (place - half, place + half)]
    return [min(max(end, -FARTHEST), FARTHEST) for end in ends if end == end]
