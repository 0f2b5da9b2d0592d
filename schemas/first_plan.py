"""Writes a first plan for a table, from the names and types of its columns alone."""

from collections.abc import Iterator, Mapping
from enum import StrEnum
from itertools import combinations

import yaml

from dpcore.advice.kinds import best, compared
from dpcore.budget import Budget
from dpcore.domain import Categories, Domain
from dpcore.errors import InputError
from dpcore.releases.tables.margins import Margins
from schemas.blanks import BLANK
from schemas.columns import NAMEABLE


class Kind(StrEnum):
    """What a column's type in the table says about the column."""

    TRUTH = "truth"
    TEXT = "text"
    WHOLE = "whole"
    REAL = "real"
    OPEN = "open"
    """Unknown, because CSV has no types."""
    OTHER = "other"
    """A type that a plan cannot describe."""


MOST_KNOWN = 24
"""Of more yes-and-no columns, a histogram has too many cells."""

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
# columns are published too: check that they may be published, and that they are names (dprelease
# assumes that the first line of a CSV file has the names).
#
# Remove the columns that are not needed. Add to a column
#   nullable: true       if an answer may be missing (it is then counted as missing)
#   outside: clamp       to move values outside the bounds to the nearest bound; by default they
#                        stop the release
#   description: ...     for readers
# `dprelease explain PLAN` prints what is still to be filled in, and then cost and accuracy.
dprelease: 1
dataset: {dataset}    # the ledger keeps one budget under this name
source: {source}    # the location of the table; never published
rows: {blank}    # the number of records, as the survey's description gives it
privacy_unit: row    # {{column: COLUMN, max_rows: NUMBER}} if a person may have several records
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

    Raises ``InputError`` if a plan can describe none of them.
    """
    kept = {
        name: kind
        for name, kind in columns.items()
        if kind is not Kind.OTHER and NAMEABLE.fullmatch(name)
    }
    if not kept:
        raise InputError(
            "the table has no column that a plan can describe: names must begin with a letter, and"
            " types must be text, numbers or truth values"
        )
    head = HEAD.format(blank=BLANK, dataset=_flow(dataset), source=_flow(source))
    lines = [*_columns(kept), *_left_out([name for name in columns if name not in kept]), ""]
    return head + "\n".join([*lines, *_releases(kept)]) + "\n" + TAIL.format(blank=BLANK)


def _columns(columns: Mapping[str, Kind]) -> Iterator[str]:
    for name, kind in columns.items():
        yield f"  {_flow(name)}:"
        yield from (f"    {line}" for line in WORDS[kind])


def _left_out(names: list[str]) -> Iterator[str]:
    if names:
        yield "  # Left out, because a plan cannot describe the type, or because the name does not"
        yield "  # begin with a letter or has characters other than letters, digits, blanks, _ . -"
        yield from (f"  #   {name!r}" for name in names)


def _releases(columns: Mapping[str, Kind]) -> Iterator[str]:
    """All pairs of columns, or all columns together where that is known to be more accurate."""
    if _full_table_is_better(columns):
        yield "# The first release: counts of all columns together, which have fewer cells than their"
        yield "# pairs have tables. Other kinds suit other questions."
        yield "releases:"
        yield "  - name: all-columns"
        yield "    kind: histogram"
        yield f"    columns: {_flow(list(columns))}"
        return
    yield "# The first release: counts over all pairs of columns. Other kinds suit other questions."
    yield "# `dprelease explain PLAN` says whether a histogram of all columns is more accurate, as it is"
    yield "# where they have few cells together."
    yield "releases:"
    yield "  - name: all-pairs"
    yield "    kind: margins"
    yield f"    columns: {_flow(list(columns))}"
    yield f"    ways: {min(2, len(columns))}"
    real = {name: BLANK for name, kind in columns.items() if kind is Kind.REAL}
    if real:
        yield f"    bins: {_flow(real)}"
    if set(columns.values()) & {Kind.WHOLE, Kind.OPEN}:
        yield "    # numeric columns with many values need bins too: a number of bins, or their edges"
    yield "    mechanism: discrete-laplace"


def _full_table_is_better(columns: Mapping[str, Kind]) -> bool:
    """Whether a histogram gives better pairs than margins do: known only where all sizes are."""
    if set(columns.values()) != {Kind.TRUTH} or not 3 <= len(columns) <= MOST_KNOWN:
        return False
    domain = Domain(tuple(Categories(name, (False, True)) for name in columns))
    sets = tuple(combinations(range(len(columns)), 2))
    margins = Margins("pairs", domain, 10**9, Budget.of("1"), sets=sets, aim="balanced")
    found = best(compared(margins), 2)
    return found is not None and not found.planned


def _flow(value: object) -> str:
    """A value in one line of YAML."""
    text = yaml.safe_dump(
        [value], default_flow_style=True, sort_keys=False, allow_unicode=True, width=10**6
    )
    return text.strip()[1:-1]
