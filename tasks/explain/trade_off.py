"""Draws expected error against alpha, or rho, one curve for each release of a plan, as one SVG.

All of it is public: each point is the release's first error statement at another one, while the
other releases keep theirs.
"""

import math
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from markupsafe import Markup

from schemas.plan import Plan
from tasks.explain.target import at_loss
from tasks.report.svg import WIDTH, Scale, figure, label, line_path, tag

STYLE = """
svg { font: 12px sans-serif; background: #fff } text { fill: #30383f }
.name { font-weight: bold } .grid { stroke: #d5dbe0 } .line { fill: none; stroke: #1f3b57;
stroke-width: 2 } .now { fill: #c2571a }
"""
FACTORS = [Fraction(f).limit_denominator(1000) for f in np.exp2(np.linspace(-3, 3, 13))]
"""From an eighth of the plan's own to eight times as much."""
PANEL, TOP, BOTTOM, LEFT, RIGHT = 260, 52, 205, 84, WIDTH - 30


class Point(NamedTuple):
    """An expected error at an alpha or rho."""

    loss: float
    error: float


def trade_off_picture(plan: Plan) -> str:
    """The curves of all releases, in two columns."""
    panels = [
        tag("g", *_panel(plan, name), transform=f"translate({i % 2 * WIDTH} {i // 2 * PANEL})")
        for i, name in enumerate(plan.built)
    ]
    height = (len(panels) + 1) // 2 * PANEL
    svg = tag(
        "svg",
        tag("title", f"Expected error against {plan.requested.coordinates[0]}, for each release"),
        tag("style", Markup(STYLE)),
        *panels,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {2 * WIDTH} {height}",
        width=2 * WIDTH,
        role="img",
    )
    return str(svg)


def curve(plan: Plan, release: str) -> list[Point]:
    """The first error statement of a release from an eighth of its alpha or rho to eight times it."""
    points = []
    for factor in FACTORS:
        loss = plan.built[release].share.loss * factor
        try:
            error = at_loss(plan, release, loss).expected_error()[0].value
        except ValueError:  # the share is too small for any noise
            continue
        points.append(Point(float(loss), error))
    return points


def _panel(plan: Plan, name: str) -> list[Markup]:
    """Both axes are logarithmic; lines mark the plan's own one and the ends of the curve."""
    built = plan.built[name]
    statement = built.expected_error()[0]
    here = Point(float(built.share.loss), statement.value)
    points = [p for p in curve(plan, name) if p.error > 0]
    drawn = [
        label(name, 12, 16, WIDTH - 24, class_="name"),
        label(statement.quantity, 12, 33, WIDTH - 24),
    ]
    if here not in points:
        return [*drawn, label("no error is expected, so there is no curve", 12, 80)]
    x = _log_scale([p.loss for p in points], LEFT, RIGHT)
    y = _log_scale([p.error for p in points], BOTTOM, TOP)
    places = [(x(math.log(p.loss)), y(math.log(p.error))) for p in points]
    for place in (0, points.index(here), -1):
        (across, down), point = places[place], points[place]
        drawn += [
            tag("line", class_="grid", x1=across, x2=across, y1=float(TOP), y2=float(BOTTOM)),
            tag("line", class_="grid", x1=float(LEFT), x2=float(RIGHT), y1=down, y2=down),
            label(figure(point.loss), across, BOTTOM + 16, text_anchor="middle"),
            label(figure(point.error), LEFT - 6, down + 4, text_anchor="end"),
        ]
    across, down = places[points.index(here)]
    return [
        *drawn,
        tag("path", class_="line", d=line_path(places)),
        tag("circle", class_="now", r=4, cx=across, cy=down),
        label(
            f"{plan.requested.coordinates[0]} of the release; both axes are logarithmic",
            (LEFT + RIGHT) / 2,
            BOTTOM + 33,
            text_anchor="middle",
        ),
    ]


def _log_scale(values: list[float], start: float, end: float) -> Scale:
    low, high = math.log(min(values)), math.log(max(values))
    return Scale(low, high if high > low else low + 1, start, end)
