"""Draws a function of one variable with its intervals, for densities, predictions and series."""

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from dpcore.arrays import Floats
from tasks.charts.chart import Axis, Panel
from tasks.charts.marks import across, area, line

LEGIBLE = 0.04
"""A band narrower than this fraction of the panel cannot be seen."""

POINTWISE, AT_ONCE = "90% interval at each point", "90% band for all at once"


class CurveWithBand(NamedTuple):
    """A function at ascending numbers x (k,), with pointwise intervals and a simultaneous band."""

    x: Floats
    middle: Floats
    lower: Floats
    upper: Floats
    lowest: Floats | None = None
    highest: Floats | None = None


def band(curve: CurveWithBand, x: Axis, y: Axis, lines: Mapping[float, str] | None = None) -> Panel:
    """A panel with a line inside its bands; ``lines``: heights of horizontal lines, with their words."""
    marks = [area(curve.x, curve.lower, curve.upper), line(curve.x, curve.middle)]
    key = [("line", "estimate"), ("band", POINTWISE)]
    if curve.lowest is not None and curve.highest is not None:
        marks.insert(0, area(curve.x, curve.lowest, curve.highest, "wide"))
        key.append(("wide", AT_ONCE))
    marks += [across(height, words) for height, words in (lines or {}).items()]
    return Panel(marks, x, y, key=key)


def enlarged(curve: CurveWithBand, x: Axis, y: Axis) -> Panel | None:
    """A panel that enlarges the low part of a curve, if a peak hides the band there."""
    outer = curve.upper if curve.highest is None else curve.highest
    width = float(np.median(curve.upper - curve.lower))
    top = max(float(np.quantile(outer, 0.75)), 6 * width)
    if width >= LEGIBLE * float(outer.max()) or not 0 < top < float(outer.max()) / 3:
        return None
    low = curve.lower <= top
    lowest = float(np.min(curve.lower if curve.lowest is None else curve.lowest))
    cut = CurveWithBand(
        curve.x,
        np.where(curve.middle <= top, curve.middle, np.nan),
        *(np.where(low, np.minimum(end, top), np.nan) for end in curve[2:] if end is not None),
    )
    panel = band(cut, x, replace(y, low=min(lowest, 0.0), high=top))
    return replace(panel, key=(), height=110, heading="The same, enlarged where it is low")
