"""What a first plan leaves open, and why only people can state it.

A blank stands for a public fact or a decision.  A table could suggest most of them, and must not be
asked: a plan is published, and what was read from a table tells about the people in it.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dpcore.errors import PlanError

BLANK = "FILL-IN"

MISSING = {
    "rows": "state the number of records that the survey's description gives; by stating it you"
    " make it public",
    "type": "state categorical, integer or continuous, as the questionnaire has it",
    "categories": "list every answer that the questionnaire allows; not those found in the table,"
    " where a rare one tells that somebody gave it",
    "bounds": "state the smallest and the largest value that may occur, by the questionnaire or the"
    " law; not those of the table, which are values of single people",
    "bins": "state a number of equal bins or their edges, chosen without looking at the table",
    "granted": "state what the agency grants the dataset over its whole life; a decision",
    "requested": "state what this release may spend of the grant; a decision",
    "title": "state a title for readers",
}
"""What to state for a blank and why not to read it from the table, by the key it stands under."""


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
