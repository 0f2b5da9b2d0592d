"""Draws expected error against alpha, or rho, one curve for each release of a plan, as one SVG.

All of it is public: each point is the release's first error statement at another one, while the
other releases keep theirs.
"""

from fractions import Fraction
from typing import NamedTuple

import numpy as np

from schemas.plan import Plan
from tasks.charts.chart import Axis, Panel, document
from tasks.charts.marks import dots, line, texts
from tasks.charts.svg import figure
from tasks.explain.target import at_loss

FACTORS = [Fraction(f).limit_denominator(1000) for f in np.exp2(np.linspace(-3, 3, 13))]
"""From an eighth of the plan's own to eight times as much."""


class ErrorAtBudget(NamedTuple):
    """An expected error at an alpha or rho."""

    loss: float
    error: float


def trade_off_picture(plan: Plan) -> str:
    """The curves of all releases, in two columns."""
    panels = [_panel(plan, name) for name in plan.built]
    title = f"Expected error against {plan.requested.coordinates[0]}, for each release"
    says = "Each line falls from little to much privacy loss; the dot is what the plan asks for"
    return document(title, says, panels)


def curve(plan: Plan, release: str) -> list[ErrorAtBudget]:
    """The first error statement of a release from an eighth of its alpha or rho to eight times it."""
    points = []
    for factor in FACTORS:
        loss = plan.built[release].share.loss * factor
        try:
            error = at_loss(plan, release, loss).expected_error()[0].value
        except ValueError:  # the share is too small for any noise
            continue
        points.append(ErrorAtBudget(float(loss), error))
    return points


def _panel(plan: Plan, name: str) -> Panel:
    """Both axes are logarithmic; a dot marks the plan's own point."""
    built, coordinate = plan.built[name], plan.requested.coordinates[0]
    statement = built.expected_error()[0]
    here = ErrorAtBudget(float(built.share.loss), statement.value)
    points = [p for p in curve(plan, name) if p.error > 0]
    if here not in points:
        return Panel(
            [], y=Axis("no error is expected, so there is no curve"), heading=name, height=20
        )
    x, y = zip(*points, strict=True)
    marks = [
        line(x, y),
        dots([here.loss], [here.error], "now", 4),
        texts(
            [here.loss],
            [here.error],
            [f"{figure(here.error)} at {figure(here.loss)}"],
            anchor="start",
        ),
    ]
    words = f"{coordinate} of the release; both axes are logarithmic"
    return Panel(marks, Axis(words, log=True), Axis(statement.quantity, log=True), heading=name)
