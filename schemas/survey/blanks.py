"""The blanks of a first plan, and why only people can fill them in.

A blank is a public fact or a decision.  It must not be filled in from the table: a plan is published,
and facts read from a table reveal something about the people in it.
"""

from collections.abc import Collection, Iterator
from typing import Any

BLANK = "FILL-IN"

MISSING = {
    "rows": "state the number of records from the survey's description; this makes it public",
    "type": "state categorical, integer or continuous, as in the questionnaire",
    "categories": "list every answer that the questionnaire allows. Do not list the answers found in"
    " the table: a rare answer reveals that somebody gave it",
    "bounds": "state the smallest and the largest possible value, from the questionnaire or the law."
    " Do not take them from the table: its extremes are values of single people",
    "bins": "state a number of equal bins, or the edges of bins, without looking at the table",
    "bandwidth": "state the width of the kernel as a fraction of the column's range, such as 0.05, or"
    " a private method to choose it",
    "granted": "decide how much all releases of the dataset may ever spend: three times the request"
    " pays for a correction and a later wave",
    "requested": 'decide how much this release may spend: alpha "1" for a first publication, at most'
    ' "3"; beta "1e-6" up to 100,000 rows',
    "max_rows": "state the largest number of records of a person or household, from the survey's design",
    "largest": "state the largest weight from the survey's design; larger weights are cut",
    "step": "state the step to which weights are rounded, such as a hundredth of the largest weight",
    "total": "state the size of the population, which is the sum of the weights",
    "title": "state a title for readers",
}
"""For each key that may be blank, the instruction to fill it in."""


def blanks_of(document: Any) -> dict[str, str]:
    """The blanks of a plan by place, such as ``releases[0].bandwidth``, with instructions."""
    return dict(_blanks(document, "", ""))


def _blanks(node: Any, place: str, why: str) -> Iterator[tuple[str, str]]:
    if node == BLANK:
        yield place, f"not filled in; {why or 'the plan needs it'}"
    elif isinstance(node, dict):
        for key, value in node.items():
            inner = f"{place}.{key}" if place else str(key)
            yield from _blanks(value, inner, MISSING.get(str(key), why))
    elif isinstance(node, list):
        for i, value in enumerate(node):
            yield from _blanks(value, f"{place}[{i}]", why)


def touches(place: str, blanks: Collection[str]) -> bool:
    """Whether a blank at this place, inside it or around it may cause the fault there."""
    return any(_is_in(blank, place) or _is_in(place, blank) for blank in blanks)


def _is_in(place: str, section: str) -> bool:
    return place == section or place.startswith((f"{section}.", f"{section}["))
