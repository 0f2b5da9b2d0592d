"""Draws an evaluation as one SVG: a heat map of margins, a summary as bars, and quantiles."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations_with_replacement

import numpy as np
from markupsafe import Markup

from tasks.evaluate.compare import Evaluation
from tasks.evaluate.distances import QuantileErrors
from tasks.report.svg import Scale, around, clip, figure, label, line_path, tag, text_width

INK, RED, PALE, GREY = "#1f3b57", "#b3261e", "#d7e3ec", "#5f6b76"
WIDTH, HEAD = 880, 60
MAP, RIGHT = 430, 490
"""The right edge of the heat map and the left edge of the bars."""
BAR, STEP = 14, 22
PANEL, SIDE = 220, 150
LARGEST_CELL, SMALLEST_NAMED, LONGEST_NAME = 34, 9, 110


def evaluation_picture(evaluation: Evaluation, title: str, warning: str | None = None) -> str:
    """The whole picture, with ``warning`` above it."""
    heat, heat_bottom = _heat(evaluation)
    bars, bars_bottom = _bars(evaluation)
    top = max(heat_bottom, bars_bottom) + 30
    panels = list(evaluation.quantiles.items())
    rows = -(-len(panels) // (WIDTH // PANEL))
    height = top + 20 + rows * (SIDE + 50)
    parts = [
        tag("rect", width="100%", height="100%", fill="white"),
        label(title, 10, 22, WIDTH - 20, font_size=15, font_weight="bold"),
        label(warning or "", 10, 44, fill=RED, font_weight="bold"),
        *heat,
        *bars,
        *_quantile_panels(panels, top),
    ]
    return str(
        tag(
            "svg",
            tag("title", title),
            *parts,
            xmlns="http://www.w3.org/2000/svg",
            viewBox=f"0 0 {WIDTH} {height:.0f}",
            width=WIDTH,
            height=f"{height:.0f}",
            font_family="sans-serif",
            font_size=11,
        )
    )


def _heat(evaluation: Evaluation) -> tuple[list[Markup], float]:
    """Total variation of every column (on the diagonal) and every two; also its lower edge."""
    names, distances = evaluation.columns, evaluation.distances
    room = min(text_width(names), LONGEST_NAME)
    left, top = 14 + room, HEAD + 24
    size = min(LARGEST_CELL, (MAP - left) / len(names))
    worst = max(distances.values()) or 1.0
    bottom = top + len(names) * size
    parts = [_heading("Total variation of one and two columns", 10, HEAD + 12)]
    if size >= SMALLEST_NAMED:
        parts += _names(names, left, top, size)
    for i, j in combinations_with_replacement(range(len(names)), 2):
        chosen = (names[i],) if i == j else (names[i], names[j])
        words = tag("title", f"{' x '.join(chosen)}: {distances[chosen]:.4f}")
        place = {"x": left + i * size, "y": top + j * size}
        square = {"width": size - 1, "height": size - 1, "fill": _shade(distances[chosen] / worst)}
        parts.append(tag("rect", words, **place, **square))
    below = bottom + 14 + room * (size >= SMALLEST_NAMED)
    return [*parts, *_legend(left, below, worst)], below + 30


def _names(names: Sequence[str], left: float, top: float, size: float) -> Iterator[Markup]:
    """The columns' names, beside the rows of the map and turned below its columns."""
    bottom = top + len(names) * size + 6
    for i, name in enumerate(names):
        middle = (i + 0.5) * size + 4
        yield label(name, left - 4, top + middle, left - 8, text_anchor="end")
        turned = f"translate({left + middle:.1f} {bottom:.1f}) rotate(-90)"
        yield label(name, 0, 0, LONGEST_NAME, transform=turned, text_anchor="end")


def _shade(share: float) -> str:
    """A colour between nearly white (0) and ink (1)."""
    light, dark = np.array([238, 243, 247]), np.array([31, 59, 87])
    red, green, blue = (light + share * (dark - light)).round().astype(int).tolist()
    return f"#{red:02x}{green:02x}{blue:02x}"


def _legend(left: float, top: float, worst: float) -> Iterator[Markup]:
    for i in range(10):
        yield tag("rect", x=left + 16 * i, y=top, width=16, height=8, fill=_shade(i / 9))
    yield label("0", left, top + 20, fill=GREY)
    yield label(f"{worst:.3f}", left + 160, top + 20, fill=GREY, text_anchor="end")


def _bars(evaluation: Evaluation) -> tuple[list[Markup], float]:
    """Bars of margins and both classifiers; also their lower edge."""
    margins, classifier = evaluation.margins, evaluation.classifier
    shares = Scale(0.0, max(s.worst for s in margins.values()) or 1.0, RIGHT + 90, WIDTH - 60)
    auc = Scale(0.5, 1.0, RIGHT + 90, WIDTH - 60)
    spreads = [
        bar
        for ways, s in margins.items()
        for bar in ((f"{ways}-way, worst", s.worst, GREY), (f"{ways}-way, mean", s.mean, INK))
    ]
    learnt = [
        ("synthetic", classifier.trained_on_synthetic, INK),
        ("real", classifier.trained_on_real, GREY),
    ]
    apart = [("propensity", evaluation.propensity_auc, INK)]
    parts, y = [], HEAD + 12.0
    for heading, scale, bars in (
        ("Total variation of margins", shares, spreads),
        ("Synthetic against real records (AUC, 0.5: indistinguishable)", auc, apart),
        (f"Prediction of {classifier.label} (AUC), trained on", auc, learnt),
    ):
        parts.append(label(heading, RIGHT, y, WIDTH - RIGHT, font_weight="bold"))
        for i, bar in enumerate(bars):
            parts += _bar(*bar, y + 12 + i * STEP, scale)
        y += 36 + len(bars) * STEP
    return parts, y


def _bar(words: str, value: float, colour: str, y: float, scale: Scale) -> Iterator[Markup]:
    end = scale(value)
    yield label(words, scale.start - 6, y + 11, text_anchor="end")
    yield tag("rect", x=scale.start, y=y, width=scale.end - scale.start, height=BAR, fill=PALE)
    yield tag("rect", x=scale.start, y=y, width=end - scale.start, height=BAR, fill=colour)
    yield label(f"{value:.4f}", scale.end + 6, y + 11)


def _quantile_panels(panels: list[tuple[str, QuantileErrors]], top: float) -> Iterator[Markup]:
    if panels:
        yield _heading("Quantiles: real (x) and synthetic (y); on the line they agree", 10, top)
    for i, (name, errors) in enumerate(panels):
        row, column = divmod(i, WIDTH // PANEL)
        place = f"translate({column * PANEL + 40} {top + 30 + row * (SIDE + 50):.1f})"
        yield tag("g", *_quantile_panel(name, errors), transform=place)


def _quantile_panel(name: str, errors: QuantileErrors) -> Iterator[Markup]:
    values = [*errors.real, *errors.synthetic]
    x, y = around(values, 0, SIDE, zero=False), around(values, SIDE, 0, zero=False)
    yield label(clip(name, SIDE), 0, -6, font_weight="bold")
    yield tag("rect", width=SIDE, height=SIDE, fill="none", stroke=PALE)
    yield tag("line", x1=0, y1=SIDE, x2=SIDE, y2=0, stroke=GREY, stroke_dasharray="4 3")
    points = [
        (x(float(a)), y(float(b))) for a, b in zip(errors.real, errors.synthetic, strict=True)
    ]
    yield tag("path", d=line_path(points), fill="none", stroke=INK, stroke_width=1.5)
    for a, b in points:
        yield tag("circle", cx=a, cy=b, r=3, fill=INK)
    for value, anchor in ((x.low, "start"), (x.high, "end")):
        yield label(figure(value), x(value), SIDE + 14, fill=GREY, text_anchor=anchor)


def _heading(words: str, x: float, y: float) -> Markup:
    return label(words, x, y, font_weight="bold")
