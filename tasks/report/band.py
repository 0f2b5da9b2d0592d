"""A function of one variable inside its pointwise interval, for densities and decision functions."""

from typing import NamedTuple

from markupsafe import Markup

from dpcore.arrays import Floats
from tasks.report.svg import (
    WIDTH,
    around,
    figure,
    horizontal_axis,
    line_path,
    picture,
    tag,
    text_width,
    vertical_axis,
)

MARGIN = 8


class Curve(NamedTuple):
    """A function at numbers x (k,) in ascending order, its interval at each, and for all at once."""

    x: Floats
    middle: Floats
    lower: Floats
    upper: Floats
    lowest: Floats | None = None
    highest: Floats | None = None


def band(
    curve: Curve, title: str, description: str, unit: str, across: float | None = None
) -> Markup:
    """A line inside its bands; ``across`` draws a line that it may cross."""
    x, middle, lower, upper, *outer = curve
    around_it = [end for end in outer if end is not None]
    bottom = 210
    vertical = around(
        [v for end in (middle, lower, upper, *around_it) for v in end], bottom, MARGIN
    )
    left = text_width(figure(v) for v in vertical.ticks()) + MARGIN
    scale = around(x, left, WIDTH - 16, zero=False)
    there = [(scale(a), vertical(b)) for a, b in zip(x, upper, strict=True)]
    back = [(scale(a), vertical(b)) for a, b in zip(x[::-1], lower[::-1], strict=True)]
    line = [(scale(a), vertical(b)) for a, b in zip(x, middle, strict=True)]
    parts = [
        vertical_axis(vertical, left, WIDTH - 16),
        horizontal_axis(scale, bottom, MARGIN, unit),
        tag("path", class_="band", d=line_path([*there, *back]) + "Z"),
        *(
            tag("path", class_="outer", d=line_path([(scale(a), vertical(b)) for a, b in pairs]))
            for pairs in (zip(x, end, strict=True) for end in around_it)
        ),
        tag("path", class_="line", d=line_path(line)),
    ]
    if across is not None:
        y = vertical(across)
        parts.append(tag("line", class_="zero", x1=left, x2=WIDTH - 16, y1=y, y2=y))
    return picture(title, description, bottom + 38, *parts)
