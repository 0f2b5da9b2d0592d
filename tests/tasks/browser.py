"""What a page must do in a real browser: load nothing, complain of nothing, fit, and be legible."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

WIDE, PHONE = 1200, 360

COLOURS = """selector => [...document.querySelectorAll(selector)].map(node => {
    const style = getComputedStyle(node);
    return [style.fill, style.stroke, style.color];
})"""


@contextmanager
def visit(chromium: Any, page: Path, width: int = WIDE, scheme: str = "light") -> Iterator[Any]:
    """The page in a window of its own; fails where it asks for a file or says anything amiss."""
    context = chromium.new_context(
        viewport={"width": width, "height": 800}, color_scheme=scheme, offline=True
    )
    tab, asked, said = context.new_page(), [], []
    tab.on("request", lambda request: asked.append(request.url))
    tab.on("console", lambda message: said.append(message.text))
    tab.on("pageerror", lambda error: said.append(str(error)))
    address = page.resolve().as_uri()
    tab.goto(address)
    try:
        yield tab
        assert {url.partition("#")[0] for url in asked if not url.startswith("data:")} == {address}
        assert not said, said
    finally:
        context.close()


def require_fit(tab: Any) -> None:
    """Nothing but what scrolls on its own may stick out of the window."""
    wide, window = tab.evaluate("[document.documentElement.scrollWidth, window.innerWidth]")
    assert wide <= window
    cut = tab.evaluate(
        """() => [...document.querySelectorAll('svg[role=img]')].flatMap(svg => {
            const box = svg.getBoundingClientRect();
            return [...svg.querySelectorAll('text')].filter(text => {
                const own = text.getBoundingClientRect();
                return own.left < box.left - 1 || own.right > box.right + 1
                    || own.top < box.top - 1 || own.bottom > box.bottom + 1;
            }).map(text => text.textContent);
        })"""
    )
    assert not cut, cut


def require_accessible(tab: Any) -> None:
    """No violation that axe-core knows of."""
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(tab).response["violations"]
    assert not found, [(v["id"], [n["html"][:200] for n in v["nodes"][:3]]) for v in found]


def contrast(one: str, other: str) -> float:
    """Contrast of two computed colours, ``rgb(r, g, b)`` (WCAG 2.2, relative luminance)."""
    light, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _luminance(colour: str) -> float:
    shares = [int(part) / 255 for part in colour.removeprefix("rgb(").removesuffix(")").split(",")]
    red, green, blue = (s / 12.92 if s <= 0.04045 else ((s + 0.055) / 1.055) ** 2.4 for s in shares)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def fills(tab: Any, selector: str) -> set[str]:
    """The fill colours of some elements."""
    return {fill for fill, _, _ in tab.evaluate(COLOURS, selector)}


def strokes(tab: Any, selector: str) -> set[str]:
    """The stroke colours of some elements."""
    return {stroke for _, stroke, _ in tab.evaluate(COLOURS, selector)}
