"""The blanks of a first plan, and why only people can fill them in.

A blank is a public fact or a decision.  It must not be filled in from the table: a plan is published,
and facts read from a table reveal something about the people in it.
"""

from collections.abc import Collection, Iterator
from typing import Any

BLANK = "FILL-IN"

MISSING = {
    "rows": "state the number of records that the survey's description gives; by stating it you"
    " make it public",
    "type": "state categorical, integer or continuous, as in the questionnaire",
    "categories": "list every answer that the questionnaire allows; not those found in the table,"
    " where a rare one reveals that somebody gave it",
    "bounds": "state the smallest and the largest value that may occur, by the questionnaire or the"
    " law; not those of the table, which are values of single people",
    "bins": "state a number of equal bins or their edges, chosen without looking at the table",
    "bandwidth": "state the width of the kernel as a part of the column's range, such as 0.05, or how it"
    " is to be chosen privately",
    "granted": "decide how much all releases of the dataset may ever spend: three times what is"
    " requested pays for a correction and a later wave",
    "requested": 'decide how much this release may spend: alpha "1" for a first publication, at most'
    ' "3"; beta "1e-6" up to 100,000 rows',
    "max_rows": "state how many records a person or household has at most, from the survey's design",
    "largest": "state the weight above which weights are cut, from the survey's design",
    "step": "state to what weights are rounded, such as a hundredth of the largest",
    "total": "state the size of the population, which the weights add up to",
    "title": "state a title for readers",
}
"""For each key that may be blank, what to write there."""


def blanks_of(document: Any) -> dict[str, str]:
    """The blanks in a plan by place, such as ``releases[0].bandwidth``, with what to write there."""
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
    """Whether a blank at a place, inside it or around it may cause the fault there."""
    return any(_is_in(blank, place) or _is_in(place, blank) for blank in blanks)


def _is_in(place: str, section: str) -> bool:
    return place == section or place.startswith((f"{section}.", f"{section}["))
