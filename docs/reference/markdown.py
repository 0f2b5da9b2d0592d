"""Text of the code as Markdown."""

import inspect
import re
from collections.abc import Iterable, Sequence


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; bars inside cells are escaped."""
    lines = [header, ["---"] * len(header), *rows]
    cells = ([cell.replace("|", r"\|") for cell in line] for line in lines)
    return "\n".join(f"| {' | '.join(line)} |" for line in cells)


def linked(heading: str, words: str = "") -> str:
    """A link to a heading of the same page, in the heading's own words or others."""
    return f"[{words or heading}](#{heading.lower().replace(': ', '-').replace(' ', '-')})"


def docstring(thing: object) -> str:
    """A docstring as Markdown: ``code`` as `code`, indented formulas and examples as code blocks."""
    text = re.sub(r"``(.+?)``", r"`\1`", inspect.getdoc(thing) or "", flags=re.DOTALL)
    paragraphs = re.split(r"\n\s*\n", text)
    return "\n\n".join(
        f"```python\n{p}\n```" if p.startswith(">>>") else _plain(p) for p in paragraphs
    )


def _plain(paragraph: str) -> str:
    """The paragraph with Markdown's special characters escaped outside code."""
    if paragraph.startswith("    "):
        return paragraph
    parts = re.split(r"(`[^`]+`)", paragraph)
    return "".join(p if p.startswith("`") else re.sub(r"([*_<>\[\]|])", r"\\\1", p) for p in parts)
