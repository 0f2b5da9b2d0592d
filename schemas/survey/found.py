"""`categories: open` and `bounds: open`: placeholders before the search, and publishable texts.

Before the search a plan has a placeholder for each possible category, so that time and price are stated
for the largest table.  No category in a plan equals a placeholder, because each contains a character
that plans refuse.

Found texts that a plan could not list are left out: blank texts, texts with invisible characters and
texts that start like a formula. Of several texts that look the same, only the one with the largest noisy
count is kept. The omitted texts count in the last category, as do all texts that were not found.

>>> publishable({"Bern": 40, "Bern ": 90, "=1+1": 70, "Genève": 50})
['Bern ', 'Genève']
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from schemas.text import may_be_listed, seen_as

OPEN = "open"
"""The word in a plan that replaces a list of categories or bounds."""

OTHER = "(other)"
"""The last category: every text outside the other categories."""

NONE = "(none found)"
"""The first category if none is found, because some kinds of release need two."""

USUALLY_FOUND, MOST_FOUND = 100, 1000

UNKNOWN_BOUNDS, NOTHING_FOUND = (0.0, 1.0), (-1.0, 1.0)
"""Bounds before the search (errors are then fractions of the range), and if it finds none."""

_STAND_IN = "\u2060"


HalfOpen = tuple[float | None, float | None]
"""The smallest and largest value; None if a bound is not stated."""

BOTH_OPEN: HalfOpen = (None, None)


def stated_ends(bounds: object) -> HalfOpen | None:
    """The stated ends of open bounds, each None if it is open; None for bounds without an open end.

    >>> stated_ends("open"), stated_ends([0, "open"]), stated_ends([0, 9])
    ((None, None), (0.0, None), None)
    """
    if bounds == OPEN:
        return BOTH_OPEN
    if not isinstance(bounds, list | tuple) or len(bounds) != 2 or OPEN not in bounds:
        return None
    stated = [end for end in bounds if end != OPEN]
    if any(isinstance(end, bool) or not isinstance(end, int | float) for end in stated):
        raise ValueError("bounds: each must be a number, or open")
    lower, upper = (None if end == OPEN else float(end) for end in bounds)
    return lower, upper


def held(
    bounds: tuple[float, float], points: Collection[float], ends: HalfOpen
) -> tuple[float, float]:
    """The narrowest bounds that include these bounds and the points. Stated ends stay.

    >>> held((-1, 1), [5], (None, None)), held((-1, 1), [], (3, None))
    ((-1.0, 5.0), (3.0, 4.0))
    """
    numbers = [*bounds, *(point for point in points if isinstance(point, int | float))]
    lower, upper = (
        float(found if stated is None else stated)
        for found, stated in zip((min(numbers), max(numbers)), ends, strict=True)
    )
    if lower >= upper:  # nothing was found beyond the stated bound
        return (lower, lower + 1) if ends[0] is not None else (upper - 1, upper)
    return lower, upper


def unknown(most: int) -> list[str]:
    """This many placeholders for categories, different from every text in a plan."""
    return [f"{_STAND_IN}{i + 1}" for i in range(most)]


def publishable(found: Mapping[str, int], taken: Collection[str] = ()) -> list[str]:
    """Texts that a plan may list and that look like none of ``taken``, the most frequent first.

    ``found``: noisy counts by text.
    """
    seen = {seen_as(text) for text in taken}
    kept = []
    for text in sorted(found, key=lambda text: (-found[text], text)):
        if may_be_listed(text) and seen_as(text) not in seen:
            seen.add(seen_as(text))
            kept.append(text)
    return kept
