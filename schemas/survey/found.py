"""`categories: open` and `bounds: open`: placeholders until the search, and which texts are published.

Before the search a plan has as many placeholders as there may be categories, so that time and price are
known for the largest table.  No plan can name one: they hold a character that plans refuse.

Of found texts, those are left out that a plan could not list: blank ones, those that hold what nobody
sees or that start as formulas do, and of several that look alike all but the one with the largest noisy
count.  They count in the last category like every text that was not found.

>>> publishable({"Bern": 40, "Bern ": 90, "=1+1": 70, "Genève": 50})
['Bern ', 'Genève']
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from schemas.text import may_be_listed, seen_as

OPEN = "open"
"""What a plan writes where it has no list or bounds."""

OTHER = "(other)"
"""The last category: every text that is not one of the others."""

NONE = "(none found)"
"""The first category where none is found: some kinds of release need two."""

USUALLY_FOUND, MOST_FOUND = 100, 1000

UNKNOWN_BOUNDS, NOTHING_FOUND = (0.0, 1.0), (-1.0, 1.0)
"""Bounds before they are found, so that errors are parts of the range; and where none are."""

_STAND_IN = "\u2060"


def holding(bounds: tuple[float, float], points: Collection[float]) -> tuple[float, float]:
    """The narrowest bounds around these and some points."""
    numbers = [*bounds, *(point for point in points if isinstance(point, int | float))]
    return float(min(numbers)), float(max(numbers))


def unknown(most: int) -> list[str]:
    """As many categories that no text of a plan equals."""
    return [f"{_STAND_IN}{i + 1}" for i in range(most)]


def publishable(found: Mapping[str, int], taken: Collection[str] = ()) -> list[str]:
    """The texts that a plan may list, the most frequent first, and that look like none that is taken.

    ``found``: noisy counts by text.
    """
    seen = {seen_as(text) for text in taken}
    kept = []
    for text in sorted(found, key=lambda text: (-found[text], text)):
        if may_be_listed(text) and seen_as(text) not in seen:
            seen.add(seen_as(text))
            kept.append(text)
    return kept
