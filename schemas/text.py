"""Refuses text in a plan that is not what it looks like, or that a spreadsheet would run.

Whoever approves a plan, or reads its codebook, sees what is written there, and opens the tables with
whatever program is at hand.  So a plan is refused where

- text holds characters that nobody sees: control characters, marks that turn the direction of text
  around, joiners of zero width outside the scripts that need them;
- two categories of a column look alike in other letters, such as Latin and Cyrillic ``a``, or differ
  in blanks alone;
- names, categories, labels or descriptions start as formulas of spreadsheets do, which calculate and
  may fetch or run what they name.

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
"""Letters and marks of other scripts that look like those of ASCII."""


def _one_line(text: str) -> str:
    if text != text.strip() or text.splitlines() != [text][: bool(text)]:
        raise ValueError("must be one line of text, without spaces at its ends")
    return text


Line = Annotated[str, AfterValidator(_one_line)]
"""A heading or a label."""


def refuse_treacherous(document: Any) -> None:
    """Raise ``ValueError``, which names the place, where a plan's document holds such text."""
    for place, text in _texts(document, ""):
        for sign in text if not text.isprintable() else ():
            if _unseen(sign, text):
                name = unicodedata.name(sign, "a control character")
                raise ValueError(
                    f"{place}: contains the invisible character U+{ord(sign):04X} ({name})"
                )
        # Only these texts are published in tables; the name of a column at its source never is.
        written = place.startswith(("columns.", "publication.")) and not place.endswith(
            ".source_name"
        )
        if written and FORMULA.match(text):
            raise ValueError(
                f"{place}: {text[:20]!r} starts as a formula of a spreadsheet, which would calculate it;"
                " begin with another character"
            )


def escape(text: str) -> str:
    """The text as one line in which nothing is markup, for markdown or HTML, and no address a link."""
    escaped = re.sub(r"[\\|<>\[\]`*_~&#@!]|(?<=www)\.|:(?=//)", r"\\\g<0>", " ".join(text.split()))
    return escaped or " "


def look_alikes(categories: Iterable[Any]) -> tuple[str, str] | None:
    """Two categories that are different text and look the same, if there are any."""
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
    """Whether a plan may have the text as a category: it is not blank, and not treacherous."""
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
    """Every text in a document, keys too, with its place."""
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
