"""Elements of SVG, scales, and the format of numbers in charts and tables."""

import math
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

UNSEEN = 0.03
"""A point is drawn only if it lies farther than this from the line without it."""

CHARACTER = 6.8
"""Mean width of a character at the size of chart labels (11 units)."""

WIDE = frozenset("%@&WMmw<>=+~±…—")
"""Characters that are one and a half times as wide."""


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


def label(text: str, x: float, y: float, room: float | None = None, **attributes: object) -> Markup:
    """Text at a position; text without enough room is cut, with the whole text as a tooltip."""
    shown = text if room is None else clip(text, room)
    whole = () if shown == text else (tag("title", text),)
    return tag("text", shown, *whole, x=x, y=y, **attributes)


def clip(text: str, room: float) -> str:
    """The text; if there is not enough room, its beginning with an ellipsis.

    >>> clip("a very long name", 60)
    'a very…'
    """
    if text_width([text]) <= room:
        return text
    ends = np.cumsum([text_width([character]) for character in text]) + text_width("…")
    return text[: int(np.searchsorted(ends, room, side="right"))].rstrip() + "…"


def text_width(texts: Iterable[str]) -> float:
    """The width of the longest of some texts."""
    return max((sum(map(_character, text)) for text in texts), default=0.0)


def _character(character: str) -> float:
    wide = 2.0 if unicodedata.east_asian_width(character) in "WF" else 1.0
    return CHARACTER * (1.5 if character in WIDE else wide)


@dataclass(frozen=True)
class Scale:
    """A map from values [low, high] to positions [start, end] in the picture."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low)
        return self.start + min(max(share, 0.0), 1.0) * (self.end - self.start)

    @property
    def unit(self) -> float:
        """The length of one unit of the values."""
        return abs(self(1.0) - self(0.0))

    def ticks(self, most: int = 5) -> list[float]:
        """Round values inside the scale."""
        rough = (self.high - self.low) / most
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(power * m for m in (1, 2, 5, 10) if power * m >= rough * (1 - 1e-9))
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        return [i * step for i in range(first, last + 1)]


def line_path(points: Sequence[tuple[float, float]]) -> str:
    """A polygonal line through points, as path data; points too close to the line are left out.

    >>> line_path([(0.0, 0.0), (1.0, 1.0), (2.0, 2.0), (3.0, 0.0)])
    'M0.0 0.0L2.0 2.0L3.0 0.0'
    """
    kept = [*points[:1]]
    for (x, y), after in zip(points[1:], points[2:], strict=False):
        across, down = after[0] - kept[-1][0], after[1] - kept[-1][1]
        aside = across * (y - kept[-1][1]) - down * (x - kept[-1][0])
        if abs(aside) > UNSEEN * math.hypot(across, down):
            kept.append((x, y))
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in (*kept, *points[1:][-1:]))


def figure(value: float) -> str:
    """A number for people: thousands separated, four significant digits.

    >>> [figure(v) for v in (1234567.0, 12.3456, 0.00001234, -0.0)]
    ['1,234,567', '12.35', '1.234e-05', '0']
    """
    value = value or 0.0  # zero has no sign
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.4g}"


def supported(values: Sequence[float], error: float) -> list[str]:
    """Numbers rounded to the second significant digit of their standard error.

    >>> supported((423.62, -1234.5), 34.2), supported((0.48731,), 0.0123), supported((67412.0,), 1840)
    (['424', '-1,234'], ['0.487'], ['67,400'])
    """
    size = math.floor(math.log10(error)) if 0 < error < math.inf else 0
    digits = min(1 - size, 12)
    return [f"{round(value, digits) + 0.0:,.{max(digits, 0)}f}" for value in values]


def percent(value: float, low: float, high: float) -> str:
    """A share with its interval, in digits that its width supports; the ends are rounded outwards.

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
