"""Charts of an evaluation: real and synthetic numbers, and the coefficients of a regression."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from markupsafe import Markup

from dpcore.arrays import Floats
from dpcore.estimates.least_squares import NORMAL
from dpcore.estimates.shapes import Shape
from tasks.charts.chart import Axis, Panel, chart
from tasks.charts.marks import Mark, area, dots, down, line, spans, texts
from tasks.evaluate.regressions import ComparedCoefficient, ComparedRegression

FARTHEST = 25.0
"""Coefficients are drawn up to this many standard errors from the real one."""

KEY = (("band", "real records"), ("whisker", "synthetic records"))


def number_chart(name: str, shape: Shape, title: str, says: str) -> Markup:
    """A histogram and distribution functions, real ones filled, synthetic ones as a line."""
    curves = shape.curves
    corners = np.repeat(curves.edges, 2)[1:-1]
    drawn = [
        (corners, *(np.repeat(part, 2) for part in curves.bars)),
        (curves.points, *curves.at_most),
    ]
    below = Axis(name, low=float(curves.edges[0]), high=float(curves.edges[-1]))
    bars, at_most = (_both(*each) for each in drawn)
    shares = [
        Axis(f"Share of records {of}", zero=True, write=_percent)
        for of in ("in each bar", "with at most this value")
    ]
    whole = replace(shares[1], low=0.0, high=1.0)
    panels = [
        [Panel(bars, replace(below, title="", ticks={}), shares[0], key=KEY, height=96)],
        [Panel(at_most, below, whole, height=84)],
    ]
    return chart(title, says, panels)


def _both(x: Floats, real: Floats, synthetic: Floats) -> list[Mark]:
    return [area(x, 0 * real, real), line(x, synthetic, "whisker")]


def _percent(share: float) -> str:
    return f"{100 * share:.3g}%"


def coefficient_chart(regression: ComparedRegression, title: str, says: str) -> Markup:
    """Each synthetic coefficient with its interval, on the scale of the real one and its error."""
    rows = regression.coefficients
    place, half = np.array([_apart(one) for one in rows]).reshape(-1, 2).T
    low, high = (np.clip(place + end, -FARTHEST, FARTHEST) for end in (-half, half))
    y, none = np.arange(len(rows)) + 0.5, np.isnan(place)
    words = ["not in the synthetic records"] * int(none.sum())
    marks = [
        area([-NORMAL, NORMAL], 0.0, float(len(rows))),
        down(0.0),
        spans(y, low, high),
        dots(np.clip(place, -FARTHEST, FARTHEST), y, radius=3.4),
        texts(0 * place[none] - NORMAL, y[none], words, "tick", "start"),
    ]
    x = Axis(
        "Standard errors from the real coefficient",
        low=float(min([-3.0, *low[~none]])),
        high=float(max([3.0, *high[~none]])),
    )
    names = Axis(names=[one.term for one in rows])
    key = [("band", "real: 95% interval"), ("whisker", "synthetic: 95% interval")]
    return chart(title, says, [[Panel(marks, x, names, key=key)]])


def _apart(one: ComparedCoefficient) -> tuple[float, float]:
    """The synthetic coefficient and half its interval, in standard errors from the real one."""
    unit = one.real_error or 1.0
    return (one.synthetic - one.real) / unit, NORMAL * one.synthetic_error / unit
