"""Charts of an evaluation: real and synthetic numbers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dpcore.arrays import Floats
from dpcore.estimates.shapes import Shape
from tasks.charts.chart import Axis, Panel
from tasks.charts.marks import Mark, area, line

KEY = (("band", "real records"), ("whisker", "synthetic records"))


def number_chart(name: str, shape: Shape) -> list[Panel]:
    """A histogram and distribution functions: real records filled, synthetic records as a line."""
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
    return [
        Panel(bars, replace(below, title="", ticks={}), shares[0], key=KEY, height=96),
        Panel(at_most, below, whole, height=84),
    ]


def _both(x: Floats, real: Floats, synthetic: Floats) -> list[Mark]:
    return [area(x, 0 * real, real), line(x, synthetic, "whisker")]


def _percent(share: float) -> str:
    return f"{100 * share:.3g}%"
