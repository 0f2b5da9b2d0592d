"""Draws an audit as one SVG: lower bounds beside claims, and every loss function.

All of it is public: its draws come from made-up tables.
"""

from collections.abc import Iterator, Mapping
from html import escape

import numpy as np

from dpcore.audit import AuditResult

BLUE, RED, PALE, GREY = "#1f3b57", "#b3261e", "#d7e3ec", "#5f6b76"

WIDTH = 780
LEFT, BAR, STEP = 230, 26, 40
PANEL, HEIGHT = WIDTH // 2, 250
PLOT = (50.0, 40.0, 360.0, 200.0)
"""Left, top, right and bottom of the axes in a panel."""


def audit_picture(results: Mapping[str, AuditResult]) -> str:
    """Bars of all audits, and below them the loss function of each, as one SVG document.

    ``results``: audits by the name to display.
    """
    bars = 12 + len(results) * STEP
    height = bars + (len(results) + 1) // 2 * HEIGHT
    panels = (
        f'<g transform="translate({i % 2 * PANEL} {bars + i // 2 * HEIGHT})">'
        f"{''.join(_loss_function(name, result))}</g>"
        for i, (name, result) in enumerate(results.items())
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}"'
        f' height="{height}" font-family="sans-serif" font-size="12">'
        '<rect width="100%" height="100%" fill="white"/>'
        f"{''.join(_bounds(results))}{''.join(panels)}</svg>"
    )


def _bounds(results: Mapping[str, AuditResult]) -> Iterator[str]:
    """Bars: the claimed alpha, and on top of it the lower bound."""
    most = max(max(float(r.claim.alpha), r.lower_bound) for r in results.values()) or 1.0
    scale = (WIDTH - LEFT - 130) / most
    for i, (name, result) in enumerate(results.items()):
        y, claim = 12 + i * STEP, float(result.claim.alpha)
        yield (
            f'<text x="{LEFT - 10}" y="{y + 18}" text-anchor="end">{escape(name)}</text>'
            f'<rect x="{LEFT}" y="{y}" width="{claim * scale:.1f}" height="{BAR}" fill="{PALE}"/>'
            f'<rect x="{LEFT}" y="{y + 7}" width="{result.lower_bound * scale:.1f}"'
            f' height="{BAR - 14}" fill="{_colour(result)}"/>'
            f'<text x="{LEFT + max(claim, result.lower_bound) * scale + 8:.1f}" y="{y + 18}">'
            f"{result.lower_bound:.3g} of {claim:.3g}</text>"
        )


def _loss_function(name: str, result: AuditResult) -> Iterator[str]:
    """|ln f - ln f'| over the score, its maximum, the lower bound and the claim."""
    curve, claim, bound = result.curve, float(result.claim.alpha), result.lower_bound
    left, top, right, bottom = PLOT
    low, high = float(curve.points[0]), float(curve.points[-1])
    most = 1.15 * max(claim, bound, curve.loss) or 1.0
    x = left + (curve.points - low) / ((high - low) or 1.0) * (right - left)
    y = bottom - np.nan_to_num(curve.losses) / most * (bottom - top)
    drawn = np.isfinite(curve.losses)

    def level(value: float, words: str, colour: str, dash: str, at: float, anchor: str) -> str:
        height = bottom - value / most * (bottom - top)
        return (
            f'<line x1="{left}" x2="{right}" y1="{height:.1f}" y2="{height:.1f}" stroke="{colour}"'
            f' stroke-dasharray="{dash}"/><text x="{at}" y="{height - 4:.1f}" fill="{colour}"'
            f' text-anchor="{anchor}">{words} {value:.3g}</text>'
        )

    yield f'<text x="{left}" y="16" font-weight="bold">{escape(_short(name, 50))}</text>'
    yield level(claim, "claimed", GREY, "5 3", right, "end")
    yield level(bound, "lower bound", _colour(result), "", left + 4, "start")
    yield f'<path d="M{left} {top}V{bottom}H{right}" fill="none" stroke="{GREY}"/>'
    for part in np.split(np.arange(len(x)), np.flatnonzero(np.diff(drawn)) + 1):
        if drawn[part[0]]:
            places = " ".join(f"{x[i]:.1f},{y[i]:.1f}" for i in part)
            yield f'<polyline points="{places}" fill="none" stroke="{BLUE}" stroke-width="1.5"/>'
    if curve.bandwidth is None:
        yield from (
            f'<circle cx="{a:.1f}" cy="{b:.1f}" r="1.6" fill="{BLUE}"/>'
            for a, b in zip(x[drawn], y[drawn], strict=True)
        )
    if drawn.any():
        best = int(np.nanargmax(curve.losses))
        yield f'<circle cx="{x[best]:.1f}" cy="{y[best]:.1f}" r="4.5" fill="none" stroke="{RED}"/>'
    for place, value, anchor in ((left, low, "start"), (right, high, "end")):
        yield f'<text x="{place}" y="{bottom + 15}" text-anchor="{anchor}">{value:.3g}</text>'
    peak = f"largest {curve.loss:.3g} at {curve.point:.3g}" if drawn.any() else "too few draws"
    yield (
        f'<text x="{(left + right) / 2}" y="{bottom + 15}" text-anchor="middle">{peak}</text>'
        f'<text x="{(left + right) / 2}" y="{bottom + 31}" text-anchor="middle" fill="{GREY}">'
        f"{escape(_short(result.score, 56))}</text>"
        f'<text transform="translate({left - 30} {bottom}) rotate(-90)" fill="{GREY}">'
        "estimated privacy loss</text>"
    )


def _colour(result: AuditResult) -> str:
    return BLUE if result.passed else RED


def _short(words: str, most: int) -> str:
    return words if len(words) <= most else f"{words[: most - 1]}…"
