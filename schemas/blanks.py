"""The blanks of a first plan, and why only people can fill them in.

A blank is a public fact or a decision.  It must not be filled in from the table: a plan is published,
and facts read from a table reveal something about the people in it.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dpcore.errors import PlanError

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
    "granted": "state what the agency grants the dataset over its whole life; a decision",
    "requested": "state what this release may spend of the grant; a decision",
    "title": "state a title for readers",
}
"""What to write for a blank, by its key."""


def refuse_blanks(path: Path, document: Any) -> None:
    """Raise ``PlanError`` with a line for each blank of a plan document."""
    blanks = list(_blanks(document, ()))
    if blanks:
        lines = (f"  {'.'.join(place)}: not filled in; {_missing(place)}" for place in blanks)
        raise PlanError("\n".join([f"{path}: the plan has blanks", *lines]))


def _missing(place: tuple[str, ...]) -> str:
    return next((MISSING[key] for key in reversed(place) if key in MISSING), "the plan needs it")


def _blanks(node: Any, place: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    if node == BLANK:
        yield place
    elif isinstance(node, dict):
        for key, value in node.items():
            yield from _blanks(value, (*place, str(key)))
    elif isinstance(node, list):
        for i, value in enumerate(node):
            yield from _blanks(value, (*place, str(i)))
