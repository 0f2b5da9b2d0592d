"""Draws an audit as one SVG: claims with lower bounds, and every loss function.

All of it is public: its draws come from made-up tables.
"""

from collections.abc import Mapping

import numpy as np

from dpcore.audit import AuditResult
from tasks.charts.chart import Axis, Panel, document
from tasks.charts.marks import across, bars, dots, line, texts

KEY = (("other", "alpha claimed"), ("bar", "alpha shown at least"), ("failed", "more than claimed"))


def audit_picture(results: Mapping[str, AuditResult]) -> str:
    """Bars of all audits, and below them the loss function of each, as one SVG document.

    ``results``: audits by the name to display.
    """
    panels = [_loss_function(name, result) for name, result in results.items()]
    says = "How much privacy loss attacks on made-up tables showed, of what each release claims"
    return document("Audit", says, panels, [_bounds(results)])


def _bounds(results: Mapping[str, AuditResult]) -> Panel:
    """Bars: the claimed alpha, and on top of it the lower bound."""
    places, found = np.arange(len(results)) + 0.5, list(results.values())
    claims = np.array([float(result.claim.alpha) for result in found])
    bounds = np.array([result.lower_bound for result in found])
    most = np.maximum(claims, bounds)
    words = [f"{b:.3g} of {c:.3g}" for b, c in zip(bounds, claims, strict=True)]
    marks = [
        bars(places, claims, class_="other"),
        bars(places, bounds, class_=["bar" if r.passed else "failed" for r in found], thick=0.3),
        texts(most, places, words, anchor="start"),
    ]
    x = Axis("alpha (epsilon)", zero=True, high=1.15 * float(most.max()) or 1.0)
    return Panel(marks, x, Axis(names=list(results)), key=KEY, step=26)


def _loss_function(name: str, result: AuditResult) -> Panel:
    """|ln f - ln f'| over the score, its maximum, the lower bound and the claim."""
    curve, claim, bound = result.curve, float(result.claim.alpha), result.lower_bound
    marks = [
        across(claim, f"claimed {claim:.3g}", "limit"),
        across(bound, f"lower bound {bound:.3g}"),
        line(curve.points, curve.losses),
    ]
    if curve.bandwidth is None:
        marks.append(dots(curve.points, curve.losses, "point", 1.6))
    peak = "too few draws"
    if np.isfinite(curve.losses).any():
        peak = f"largest {curve.loss:.3g} at {curve.point:.3g}"
        marks.append(dots([curve.point], [curve.loss], "peak", 4.5))
    x = Axis(result.score, low=float(curve.points[0]), high=float(curve.points[-1]))
    return Panel(marks, x, Axis(f"Estimated privacy loss; {peak}", zero=True), heading=name)
