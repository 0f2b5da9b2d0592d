"""Writes a first plan for a table, from the names and types of its columns alone.

A column of dates becomes a column for each of its parts.  What is released depends on what readers are
to get: tables of counts, synthetic records, or functions.
"""

import re
from collections.abc import Iterator, Mapping
from enum import StrEnum
from itertools import combinations
from typing import Literal

import yaml

from dpcore.advice.kinds import best, compared
from dpcore.budget import Budget
from dpcore.domain import Categories, Domain
from dpcore.errors import InputError
from dpcore.releases.tables.margins import Margins
from schemas.blanks import BLANK
from schemas.columns import NAMEABLE
from schemas.dates import RANGES, Part


class Kind(StrEnum):
    """What a column's type in the table says about the column."""

    TRUTH = "truth"
    TEXT = "text"
    WHOLE = "whole"
    REAL = "real"
    DAY = "day"
    TIME = "time"
    """A day and a time of day."""
    PART = "part"
    """A part of a date."""
    OPEN = "open"
    """Unknown, because CSV has no types."""
    OTHER = "other"
    """A type that a plan cannot describe."""


Purpose = Literal["tables", "records", "functions"]

PARTS: Mapping[Kind, tuple[Part, ...]] = {
    Kind.DAY: ("year", "month", "weekday"),
    Kind.TIME: ("year", "month", "weekday", "hour"),
}

NUMERIC = (Kind.WHOLE, Kind.REAL, Kind.OPEN)

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
    Kind.OPEN: [
        f"type: {BLANK}    # then categories, or bounds; for a date, `from` and a part of it",
    ],
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
# linked: {{order: [COLUMN], shared: []}}    # with that column: units and their members, as two tables
neighbours: replace-one

# alpha is epsilon, beta is delta. `dprelease explain PLAN --target RELEASE=ERROR` finds the alpha
# for a wanted accuracy. beta is for mechanisms that spend it, such as discrete-gaussian.
budget:
  granted: {{alpha: {blank}, beta: {beta}, gamma: "0"}}    # over the whole life of the dataset
  requested: {{alpha: {blank}, beta: {beta}, gamma: "0"}}    # by this release

columns:
"""

TAIL = """
publication:
  title: {blank}
"""


def first_plan(
    dataset: str,
    source: str | Mapping[str, str],
    columns: Mapping[str, Kind],
    purpose: Purpose = "tables",
) -> str:
    """The plan as YAML, with blanks.  ``columns``: names and kinds in the table's order.

    Raises ``InputError`` if a plan can describe none of them, or none is numeric where functions are to
    be released.
    """
    kept = {
        name: kind
        for name, kind in columns.items()
        if kind is not Kind.OTHER and NAMEABLE.fullmatch(name)
    }
    if not kept:
        raise InputError(
            "the table has no column that a plan can describe: names must begin with a letter, and"
            " types must be text, numbers, truth values or dates"
        )
    described = dict(_described(kept))
    kinds = {name: kind for name, (kind, _) in described.items()}
    released = list(_functions(kinds) if purpose == "functions" else _counts(kinds, purpose))
    beta = BLANK if any("discrete-gaussian" in line for line in released) else '"0"'
    head = HEAD.format(blank=BLANK, beta=beta, dataset=_flow(dataset), source=_flow(source))
    lines = [f"  {line}" for _, written in described.values() for line in written]
    lines += [*_left_out([name for name in columns if name not in kept]), "", *released]
    return head + "\n".join(lines) + "\n" + TAIL.format(blank=BLANK)


def _described(columns: Mapping[str, Kind]) -> Iterator[tuple[str, tuple[Kind, list[str]]]]:
    """By name, each column of the plan: its kind, and its lines."""
    taken = {name.lower() for name in columns}
    for name, kind in columns.items():
        if kind not in PARTS:
            yield name, (kind, [f"{_flow(name)}:", *(f"  {line}" for line in WORDS[kind])])
            continue
        lines = [f"# Parts of {_flow(name)}; remove those that are not needed."]
        for part in PARTS[kind]:
            own = f"{name[:80]}_{part}"
            while own.lower() in taken:
                own += "_"
            taken.add(own.lower())
            lower, upper = RANGES[part]
            bounds = BLANK if part == "year" else f"[{lower}, {upper}]"
            lines += [f"{_flow(own)}:", "  type: integer", f"  bounds: {bounds}"]
            lines.append(f"  from: {_flow({'column': name, 'part': part})}")
            yield own, (Kind.PART, lines)
            lines = []


def _left_out(names: list[str]) -> Iterator[str]:
    if names:
        yield "  # Left out, because a plan cannot describe the type, or because the name does not"
        yield "  # begin with a letter or has characters other than letters, digits, blanks, _ . -"
        yield from (f"  #   {name!r}" for name in names)


COUNTED = {
    "tables": "# The first release: counts {of}. Other kinds suit other questions.",
    "records": "# The first release: counts {of}, and synthetic records that follow them.",
}


def _counts(columns: Mapping[str, Kind], purpose: Purpose) -> Iterator[str]:
    """All pairs of columns, or all columns together where that is known to be more accurate."""
    together = _full_table_is_better(columns)
    name = "all-columns" if together else "all-pairs"
    yield COUNTED[purpose].format(of=f"of all {'columns' if together else 'pairs of columns'}")
    if together:
        yield "# All columns together have fewer cells than their pairs have tables."
    else:
        yield "# `dprelease explain PLAN` says whether a histogram of all columns is more accurate, as"
        yield "# it is where they have few cells together."
    yield "releases:"
    yield f"  - name: {name}"
    if together:
        yield "    kind: histogram"
        yield f"    columns: {_flow(list(columns))}"
    else:
        yield from _pairs(columns, purpose)
    if purpose == "records":
        yield "synthesis:"
        yield "  - name: records"
        yield f"    from: {name}"
        yield "    rows: 10000    # a public choice; any number costs the same"


def _pairs(columns: Mapping[str, Kind], purpose: Purpose) -> Iterator[str]:
    yield f"    kind: {'microdata-margins' if purpose == 'records' else 'margins'}"
    yield f"    columns: {_flow(list(columns))}"
    if purpose == "tables":
        yield f"    ways: {min(2, len(columns))}"
    real = {name: BLANK for name, kind in columns.items() if kind is Kind.REAL}
    if real:
        yield f"    bins: {_flow(real)}"
    if set(columns.values()) & {Kind.WHOLE, Kind.OPEN}:
        yield "    # numeric columns with many values need bins too: a number of bins, or their edges"
    # The noise of all pairs of many columns is far smaller where a beta may be spent.
    yield f"    mechanism: discrete-{'gaussian' if purpose == 'records' else 'laplace'}"


def _functions(columns: Mapping[str, Kind]) -> Iterator[str]:
    """A density of every numeric column."""
    numeric = [name for name, kind in columns.items() if kind in NUMERIC]
    if not numeric:
        raise InputError("--for functions: the table has no numeric column")
    yield "# The first releases: a density of every numeric column, none of which may be nullable."
    yield "# Other functions are of the kinds `function`, `classifier` and `regression`."
    if Kind.OPEN in columns.values():
        yield "# Remove those of columns that are not numeric: a CSV file does not say which these are."
    yield "releases:"
    for i, name in enumerate(numeric, 1):
        words = "-".join(re.findall("[a-z0-9]+", name.lower()))
        yield f"  - name: density-{i}{'-' * bool(words)}{words[:60].rstrip('-')}"
        yield "    kind: density"
        yield f"    columns: {_flow([name])}"
        yield f"    bandwidth: {BLANK}"
        yield "    mechanism: binned-laplace"


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
