"""A first plan for a table, from the names and types of its columns alone."""

from collections.abc import Iterator, Mapping
from enum import StrEnum

import yaml

from dpcore.errors import InputError
from schemas.blanks import BLANK
from schemas.plan import NAMEABLE


class Kind(StrEnum):
    """What a column's type in the table tells about it."""

    TRUTH = "truth"
    TEXT = "text"
    WHOLE = "whole"
    REAL = "real"
    OPEN = "open"
    """Nothing: CSV has no types."""
    OTHER = "other"
    """That a plan has no words for it."""


WORDS = {
    Kind.TRUTH: ["type: categorical", "categories: [false, true]"],
    Kind.TEXT: ["type: categorical", f"categories: {BLANK}"],
    Kind.WHOLE: [
        "type: integer    # or categorical, with categories, where the numbers are codes",
        f"bounds: {BLANK}",
    ],
    Kind.REAL: ["type: continuous", f"bounds: {BLANK}"],
    Kind.OPEN: [f"type: {BLANK}    # then categories, or bounds"],
}

HEAD = """\
# A first plan, made of the names and types of a table's columns alone. No value was read.
#
# Every {blank} is a public fact or a decision that people must state: from the questionnaire, the
# codebook or the law, and never from the table. Its smallest age, its rarest category and the
# number of its records are facts about the people in it, and a plan is published. The names of
# columns are published too: look whether they may be, and whether they are names (the first line
# of a CSV file is taken for one of names).
#
# Remove the columns that are not needed. Add to a column
#   nullable: true       where an answer may be missing (it is then counted as such)
#   outside: clamp       where values outside the bounds are to be moved to the nearest bound; by
#                        default they stop the release
#   description: ...     for readers
# `dprelease explain PLAN` says what is still to be filled in, and then cost and accuracy.
dprelease: 1
dataset: {dataset}    # the ledger keeps one budget under this name
source: {source}    # where the table lies; never published
rows: {blank}    # the number of records, as the survey's description gives it
privacy_unit: row    # {{column: COLUMN, max_rows: NUMBER}} where somebody may have several records
neighbours: replace-one

# alpha is epsilon, beta is delta. `dprelease explain PLAN --target RELEASE=ERROR` finds the alpha
# for a wanted accuracy. beta is for mechanisms that spend it, such as discrete-gaussian.
budget:
  granted: {{alpha: {blank}, beta: "0", gamma: "0"}}    # over the whole life of the dataset
  requested: {{alpha: {blank}, beta: "0", gamma: "0"}}    # by this release

columns:
"""

TAIL = """
publication:
  title: {blank}
"""


def first_plan(dataset: str, source: str | Mapping[str, str], columns: Mapping[str, Kind]) -> str:
    """The plan as YAML, with blanks.  ``columns``: names and kinds in the table's order.

    Raises ``InputError`` where a plan can hold none of them.
    """
    kept = {
        name: kind
        for name, kind in columns.items()
        if kind is not Kind.OTHER and NAMEABLE.fullmatch(name)
    }
    if not kept:
        raise InputError("the table has no column that a plan can hold")
    head = HEAD.format(blank=BLANK, dataset=_flow(dataset), source=_flow(source))
    lines = [*_columns(kept), *_left_out([name for name in columns if name not in kept]), ""]
    return head + "\n".join([*lines, *_releases(kept)]) + "\n" + TAIL.format(blank=BLANK)


def _columns(columns: Mapping[str, Kind]) -> Iterator[str]:
    for name, kind in columns.items():
        yield f"  {_flow(name)}:"
        yield from (f"    {line}" for line in WORDS[kind])


def _left_out(names: list[str]) -> Iterator[str]:
    if names:
        yield "  # Left out, for a type that a plan has no words for, or a name that does not begin"
        yield "  # with a letter or holds other signs than letters, digits, blanks and _ . -"
        yield from (f"  #   {name!r}" for name in names)


def _releases(columns: Mapping[str, Kind]) -> Iterator[str]:
    """All pairs: what tells most about a table that nobody has looked at."""
    yield "# The first release: counts over all pairs of columns. Others suit other questions."
    yield "releases:"
    yield "  - name: all-pairs"
    yield "    kind: margins"
    yield f"    columns: {_flow(list(columns))}"
    yield f"    ways: {min(2, len(columns))}"
    real = {name: BLANK for name, kind in columns.items() if kind is Kind.REAL}
    if real:
        yield f"    bins: {_flow(real)}"
    if set(columns.values()) & {Kind.WHOLE, Kind.OPEN}:
        yield "    # numeric columns of many values need bins too: a number, or edges"
    yield "    mechanism: discrete-laplace"


def _flow(value: object) -> str:
    """A value in one line of YAML."""
    text = yaml.safe_dump(
        [value], default_flow_style=True, sort_keys=False, allow_unicode=True, width=10**6
    )
    return text.strip()[1:-1]
