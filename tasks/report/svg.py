"""SVG by hand: elements, scales and the frame that all charts share.

Charts are drawn about as wide as a phone, 380 units, and stand side by side where there is room;
text then never gets smaller than it was drawn.  Colours are classes of the page's style sheet, so
that a chart follows light, dark and print.
"""

import math
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

WIDTH = 380
CHARACTER = 6.8
"""Mean width of a character at the size of chart labels (11 units)."""


def tag(element: str, *children: str, **attributes: object) -> Markup:
    """One element; text and attribute values are escaped.

    >>> tag("text", "a < b", x=1.50001, text_anchor="end")
    Markup('<text x="1.5" text-anchor="end">a &lt; b</text>')
    """
    written = Markup().join(
        Markup(' {}="{}"').format(key.rstrip("_").replace("_", "-"), _short(value))
        for key, value in attributes.items()
    )
    return Markup("<{0}{1}>{2}</{0}>").format(element, written, Markup().join(children))


def picture(title: str, description: str, height: float, *children: Markup) -> Markup:
    """A whole chart, with its title and description for those who do not see it."""
    return tag(
        "svg",
        tag("title", title),
        tag("desc", description),
        *children,
        viewBox=f"0 0 {WIDTH} {_short(height)}",
        role="img",
        aria_label=f"{title}. {description}",
    )


def label(text: str, x: float, y: float, room: float | None = None, **attributes: object) -> Markup:
    """Text at a place; cut short, with the whole as a tooltip, where it has not enough room."""
    shown = text if room is None else clip(text, room)
    whole = () if shown == text else (tag("title", text),)
    return tag("text", shown, *whole, x=x, y=y, **attributes)


def clip(text: str, room: float) -> str:
    """The text, or as much of it as has room, with an ellipsis.

    >>> clip("a very long name", 60)
    'a very…'
    """
    widths = [CHARACTER * (2 if unicodedata.east_asian_width(c) in "WF" else 1) for c in text]
    if sum(widths) <= room:
        return text
    taken, kept = CHARACTER, ""
    for character, width in zip(text, widths, strict=True):
        taken += width
        if taken > room:
            break
        kept += character
    return kept.rstrip() + "…"


def text_width(texts: Iterable[str]) -> float:
    """Room that the longest of some texts takes."""
    wide = (sum(1 + (unicodedata.east_asian_width(c) in "WF") for c in text) for text in texts)
    return CHARACTER * max(wide, default=0)


@dataclass(frozen=True)
class Scale:
    """A linear map from values [low, high] to places [start, end] in the picture."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low)
        return self.start + min(max(share, 0.0), 1.0) * (self.end - self.start)

    def ticks(self, most: int = 5) -> list[float]:
        """Round values inside the scale."""
        rough = (self.high - self.low) / most
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(power * m for m in (1, 2, 5, 10) if power * m >= rough * (1 - 1e-9))
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        return [i * step for i in range(first, last + 1)]


def around(values: Iterable[float], start: float, end: float, zero: bool = True) -> Scale:
    """A scale that shows all values, and zero."""
    finite = [v for v in values if math.isfinite(v)] or [0.0]
    low, high = min(finite), max(finite)
    if zero:
        low, high = min(low, 0.0), max(high, 0.0)
    if high <= low:
        high = low + 1.0
    return Scale(low, high, start, end)


def horizontal_axis(scale: Scale, y: float, top: float, title: str) -> Markup:
    """Ticks and grid lines of a horizontal scale, labelled below ``y``."""
    parts = []
    for value in scale.ticks():
        x = scale(value)
        parts.append(tag("line", class_="grid", x1=x, x2=x, y1=top, y2=y))
        text = figure(value)
        outside = x + text_width([text]) / 2 > WIDTH
        place, anchor = (WIDTH, "end") if outside else (x, "middle")
        parts.append(label(text, place, y + 14, class_="tick", text_anchor=anchor))
    half = text_width([title]) * 12 / 11 / 2  # an axis is written larger
    middle = max(min((scale.start + scale.end) / 2, WIDTH - half), half)
    parts.append(label(title, middle, y + 30, WIDTH, class_="axis", text_anchor="middle"))
    return Markup().join(parts)


def vertical_axis(scale: Scale, x: float, right: float) -> Markup:
    """Ticks and grid lines of a vertical scale, labelled left of ``x``."""
    parts = []
    for value in scale.ticks():
        y = scale(value)
        parts.append(tag("line", class_="grid", x1=x, x2=right, y1=y, y2=y))
        parts.append(label(figure(value), x - 5, y + 4, class_="tick", text_anchor="end"))
    return Markup().join(parts)


def line_path(points: Sequence[tuple[float, float]]) -> str:
    """A polygonal line through points, as path data."""
    return "M" + "L".join(f"{_short(x)} {_short(y)}" for x, y in points)


def figure(value: float) -> str:
    """A number for people: thousands separated, four significant digits.

    >>> [figure(v) for v in (1234567.0, 12.3456, 0.00001234, -0.0)]
    ['1,234,567', '12.35', '1.234e-05', '0']
    """
    value = value or 0.0
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.4g}"


def supported(values: Sequence[float], error: float) -> list[str]:
    """Numbers with the digits that a standard error supports: two of its own.

    >>> supported((423.62, -1234.5), 34.2), supported((0.48731,), 0.0123), supported((67412.0,), 1840)
    (['424', '-1,234'], ['0.487'], ['67,400'])
    """
    size = math.floor(math.log10(error)) if 0 < error < math.inf else 0
    digits = min(1 - size, 12)
    return [f"{round(value, digits) + 0.0:,.{max(digits, 0)}f}" for value in values]


def percent(value: float, low: float, high: float) -> str:
    """A share with its interval, whose ends are rounded outwards, as far as its width supports.

    >>> percent(0.4567, 0.4312, 0.4831), percent(0.00461, 0.0042, 0.0051)
    ('46% (43% to 49%)', '0.46% (0.42% to 0.51%)')
    """
    half = 50 * (high - low)
    digits = 0 if half <= 0 else min(max(-math.floor(math.log10(half / 2)), 0), 6)
    scale = 10**digits
    ends = (math.floor(100 * low * scale) / scale, math.ceil(100 * high * scale) / scale)
    values = (value, *(end / 100 for end in ends))
    middle, *shown = (f"{100 * each:.{digits}f}%" for each in values)
    return f"{middle} ({' to '.join(shown)})"


def _short(value: object) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
