"""Refuses text in a plan that readers cannot see or distinguish, or that a spreadsheet would run.

People who approve a plan or read its codebook must see its exact text, and may open tables in any
program. So a plan is refused if

- text contains invisible characters: control characters, marks that reverse the direction of text, or
  joiners of zero width outside the scripts that need them;
- two categories of a column look alike in other letters, such as Latin and Cyrillic ``a``, or differ
  only in blanks;
- names, categories, labels or descriptions start like formulas of spreadsheets, which may fetch files
  or run programs.

``escape`` writes such text into markdown so that it is shown as it was typed.

>>> look_alikes(["Paris", "Ρaris", "Rome"])
('Paris', 'Ρaris')
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from typing import Annotated, Any

from pydantic import AfterValidator

PLAIN_CONTROLS = "\n\r\t"
JOINERS = "\u200c\u200d"
FORMULA = re.compile(r"[=@\t\r]|[+-][^|!(]*[|!(]")

LATIN = str.maketrans(
    "АВЕЅІЈКМНОРСТХУаеѕіјорсухԁԛԝһΑΒΕΖΗΙΚΜΝΟΡΤΥΧορν\u2010\u2011\u2012\u2013\u2014\u2212\u2018\u2019",
    "ABESIJKMHOPCTXYaesijopcyxdqwhABEZHIKMNOPTYXopv------''",
)
"""Maps letters and marks of other scripts to the ASCII characters that look like them."""


def _one_line(text: str) -> str:
    if text != text.strip() or text.splitlines() != [text][: bool(text)]:
        raise ValueError("must be one line of text, without spaces at its ends")
    return text


Line = Annotated[str, AfterValidator(_one_line)]
"""A heading or a label."""


def refuse_treacherous(document: Any) -> None:
    """Raise ``ValueError`` with the place if a plan's document contains such text."""
    for place, text in _texts(document, ""):
        for sign in text if not text.isprintable() else ():
            if _unseen(sign, text):
                name = unicodedata.name(sign, "a control character")
                raise ValueError(
                    f"{place}: contains the invisible character U+{ord(sign):04X} ({name})"
                )
        # Only these texts are published in tables; a ``source_name`` is never published.
        written = place.startswith(("columns.", "publication.")) and not place.endswith(
            ".source_name"
        )
        if written and FORMULA.match(text):
            raise ValueError(
                f"{place}: {text[:20]!r} starts like a formula, which a spreadsheet would run; begin"
                " with another character"
            )


def escape(text: str) -> str:
    """The text as one line for markdown or HTML, in which nothing is markup and no address is a link."""
    escaped = re.sub(r"[\\|<>\[\]`*_~&#@!]|(?<=www)\.|:(?=//)", r"\\\g<0>", " ".join(text.split()))
    return escaped or " "


def look_alikes(categories: Iterable[Any]) -> tuple[str, str] | None:
    """Two categories that differ but look the same, if there are any."""
    seen: dict[str, str] = {}
    for category in categories:
        text = str(category)
        other = seen.setdefault(seen_as(text), text)
        if other != text:
            return other, text
    return None


def told_apart(one: str, other: str) -> str:
    """The message on two names that look alike, in ASCII so that anybody can distinguish them."""
    return f"{one!a} and {other!a} look alike; write both in the same letters and blanks"


def may_be_listed(text: str) -> bool:
    """Whether a plan may have the text as a category: not blank, and refused by no rule above."""
    odd = {"Cc", "Cn", "Co", "Cs", "Zl", "Zp"}
    unseen = any(_unseen(sign, text) or unicodedata.category(sign) in odd for sign in text)
    return bool(text.strip()) and not unseen and not FORMULA.match(text)


def seen_as(text: str) -> str:
    """A key that is equal for texts that look alike."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text).translate(LATIN)
    return " ".join(text.split())


def _unseen(sign: str, text: str) -> bool:
    # Scripts such as Persian need joiners to write words; in plain ASCII they only hide.
    if sign in JOINERS:
        return text.replace(sign, "").isascii()
    return sign not in PLAIN_CONTROLS and unicodedata.category(sign) in ("Cc", "Cf")


def _texts(node: Any, place: str) -> Iterator[tuple[str, str]]:
    """Every text in a document, including keys, with its place."""
    if isinstance(node, str):
        yield place, node
    elif isinstance(node, dict):
        for key, value in node.items():
            inner = f"{place}.{key}" if place else str(key)
            if isinstance(key, str):
                yield inner, key
            yield from _texts(value, inner)
    elif isinstance(node, list | tuple):
        for i, value in enumerate(node):
            yield from _texts(value, f"{place}[{i}]")
