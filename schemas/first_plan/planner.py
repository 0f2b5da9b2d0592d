"""Writes a first plan for a table, from the names and types of its columns and a questionnaire.

A column of dates becomes a column for each of its parts.  What is released depends on what readers are
to get: tables of counts, synthetic records, or functions.
"""

import re
from collections.abc import Iterator, Mapping
from enum import StrEnum
from itertools import combinations
from typing import Literal

import yaml

from dpcore.accounting.budget import Budget
from dpcore.advice.kinds import best, compared
from dpcore.domain.axes import Categories
from dpcore.domain.domain import Domain
from dpcore.errors import InputError
from dpcore.releases.tables.margins import Margins
from schemas.first_plan.questionnaire import ROLES, Question
from schemas.survey.blanks import BLANK
from schemas.survey.columns import nameable
from schemas.survey.dates import RANGES, Part


class ColumnType(StrEnum):
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

PARTS: Mapping[ColumnType, tuple[Part, ...]] = {
    ColumnType.DAY: ("year", "month", "weekday"),
    ColumnType.TIME: ("year", "month", "weekday", "hour"),
}

NUMERIC = (ColumnType.WHOLE, ColumnType.REAL, ColumnType.OPEN)

KINDS = {
    "categorical": ColumnType.TEXT,
    "integer": ColumnType.WHOLE,
    "continuous": ColumnType.REAL,
    "date": ColumnType.DAY,
    "time": ColumnType.TIME,
}
"""By a question's type."""

MOST_KNOWN = 24
"""Of more yes-and-no columns, a histogram has too many cells."""

WORDS = {
    ColumnType.TRUTH: ["type: categorical", "categories: [false, true]"],
    ColumnType.TEXT: ["type: categorical", f"categories: {BLANK}"],
    ColumnType.WHOLE: [
        "type: integer    # or categorical, with categories, where the numbers are codes",
        f"bounds: {BLANK}",
    ],
    ColumnType.REAL: ["type: continuous", f"bounds: {BLANK}"],
    ColumnType.OPEN: [
        f"type: {BLANK}    # then categories, or bounds; for a date, `from` and a part of it",
    ],
}

HEAD = """\
# A first plan, made of {origin}. No value of the table was read.
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
{unit}
# linked: {{order: [COLUMN], shared: []}}    # with that column: units and their members, as two tables
neighbours: replace-one
{weights}
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
  # In the citation, the catalogue entry and the registry of deployments, where they are stated:
  # description: WHAT THE SURVEY IS ABOUT
  # publisher: WHO PUBLISHES
  # contact: NAME <NAME@EXAMPLE.ORG>
  # licence: CC-BY-4.0
  # region: WHERE THE PEOPLE ARE
"""


def first_plan(
    dataset: str,
    source: str | Mapping[str, str],
    columns: Mapping[str, ColumnType],
    purpose: Purpose = "tables",
    questions: Mapping[str, Question] | None = None,
) -> str:
    """The plan as YAML, with blanks.  ``columns``: names and kinds in the table's order.

    With ``questions`` the plan has the columns that they describe, as they describe them.  Raises
    ``InputError`` if a plan can describe none, or none is numeric where functions are to be released.
    """
    said = {name: q for name, q in (questions or {}).items() if q.type not in ROLES}
    apart = {name: q for name, q in (questions or {}).items() if q.type in ROLES}
    role = {q.type: (name, q) for name, q in apart.items() if name in columns}
    kept = {
        name: KINDS[said[name].type] if name in said else kind
        for name, kind in columns.items()
        if (name in said or (not said and kind is not ColumnType.OTHER))
        and nameable(name)
        and name not in apart
    }
    if said and not kept:
        raise InputError("the questionnaire names no column of the table: names must match exactly")
    if not kept:
        raise InputError(
            "the table has no column that a plan can describe: names must begin with a letter, and"
            " types must be text, numbers, truth values or dates"
        )
    described = dict(_described(kept, said))
    kinds = {name: kind for name, (kind, _) in described.items()}
    weights = None
    if purpose == "functions":
        released = list(_functions(kinds))
    else:
        weights = role.get("weight")
        released = list(_counts(kinds, purpose, said, weighted=weights is not None))
    beta = BLANK if any("discrete-gaussian" in line for line in released) else '"0"'
    origin = (
        f"the names of a table's columns and {'a questionnaire' if said else 'their types alone'}"
    )
    head = HEAD.format(
        blank=BLANK,
        beta=beta,
        dataset=_flow(dataset),
        source=_flow(source),
        origin=origin,
        unit=_unit(role.get("unit")),
        weights=_weights(weights),
    )
    lines = [f"  {line}" for _, written in described.values() for line in written]
    unnamed = [name for name in columns if name not in kept and name not in apart]
    lines += _left_out(unnamed, bool(said))
    if absent := [name for name in {**said, **apart} if name not in columns]:
        lines += [
            "  # In the questionnaire, but no column of the table:",
            *map("  #   {!r}".format, absent),
        ]
    lines += ["", *released]
    return head + "\n".join(lines) + "\n" + TAIL.format(blank=BLANK)


def _described(
    columns: Mapping[str, ColumnType], said: Mapping[str, Question]
) -> Iterator[tuple[str, tuple[ColumnType, list[str]]]]:
    """By name, each column of the plan: its kind, and its lines."""
    taken = {name.lower() for name in columns}
    for name, kind in columns.items():
        question = said.get(name)
        if question and kind not in PARTS:
            keys = {"type": question.type, **question.keys}
            lines = [f"  {key}: {_flow(value)}" for key, value in keys.items()]
            yield name, (kind, [f"{_flow(name)}:", *lines])
            continue
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
            if question and part == "year":
                lower, upper = question.keys["bounds"]
                if lower == upper:
                    continue
                bounds = f"[{lower}, {upper}]"
            lines += [f"{_flow(own)}:", "  type: integer", f"  bounds: {bounds}"]
            lines.append(f"  from: {_flow({'column': name, 'part': part})}")
            for key in ("label", "description"):
                if question and key in question.keys:
                    lines.append(f"  {key}: {_flow(f'{question.keys[key]}: {part}')}")
            yield own, (ColumnType.PART, lines)
            lines = []


def _unit(said: tuple[str, Question] | None) -> str:
    if said is None:
        words = "{column: COLUMN, max_rows: NUMBER} if a person may have several records"
        return f"privacy_unit: row    # {words}"
    name, question = said
    most = BLANK if question.keys["upper"] is None else int(question.keys["upper"])
    words = (
        "all records with one value are protected together; of more than max_rows some are left out"
    )
    return f"privacy_unit: {_flow({'column': name, 'max_rows': most})}    # {words}"


def _weights(said: tuple[str, Question] | None) -> str:
    if said is None:
        return ""
    name, question = said
    given = {"largest": question.keys["upper"], "step": question.keys["step"], "total": None}
    keys = {key: BLANK if value is None else str(value) for key, value in given.items()}
    return (
        "# Each record counts as many people as its weight says, at most `largest`, rounded to a `step`;"
        "\n# noise grows with `largest`. `total` is the size of the population."
        f"\nweights: {_flow({'column': name} | keys)}\n"
    )


def _left_out(names: list[str], said: bool) -> Iterator[str]:
    if names and said:
        yield "  # Left out, because the questionnaire does not name them:"
        yield from (f"  #   {name!r}" for name in names)
    elif names:
        yield "  # Left out, because a plan cannot describe the type, or because the name does not"
        yield "  # begin with a letter or has characters other than letters, digits, blanks, _ . -"
        yield from (f"  #   {name!r}" for name in names)


COUNTED = {
    "tables": "# The first release: counts {of}. Other kinds suit other questions.",
    "records": "# The first release: counts {of}, and synthetic records that follow them.",
}


def _counts(
    columns: Mapping[str, ColumnType],
    purpose: Purpose,
    said: Mapping[str, Question],
    weighted: bool,
) -> Iterator[str]:
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
        yield from _pairs(columns, purpose, said)
        if weighted:
            yield "    # Sums of weights answer no regressions; without this line, records are counted."
            yield "    weighted: true"
    if purpose == "records":
        yield "synthesis:"
        yield "  - name: records"
        yield f"    from: {name}"
        yield "    rows: 10000    # a public choice; any number costs the same"


def _pairs(
    columns: Mapping[str, ColumnType], purpose: Purpose, said: Mapping[str, Question]
) -> Iterator[str]:
    yield f"    kind: {'microdata-margins' if purpose == 'records' else 'margins'}"
    yield f"    columns: {_flow(list(columns))}"
    if purpose == "tables":
        yield f"    ways: {min(2, len(columns))}"
    known = {name: said[name].edges for name in columns if name in said}
    bins: dict[str, object] = {name: edges for name, edges in known.items() if edges}
    bins |= {
        name: BLANK
        for name, kind in columns.items()
        if kind is ColumnType.REAL and name not in known
    }
    if bins:
        yield f"    bins: {_flow(bins)}"
    if not said and set(columns.values()) & {ColumnType.WHOLE, ColumnType.OPEN}:
        yield "    # numeric columns with many values need bins too: a number of bins, or their edges"
    # The noise of all pairs of many columns is far smaller where a beta may be spent.
    yield f"    mechanism: discrete-{'gaussian' if purpose == 'records' else 'laplace'}"


def _functions(columns: Mapping[str, ColumnType]) -> Iterator[str]:
    """A density of every numeric column."""
    numeric = [name for name, kind in columns.items() if kind in NUMERIC]
    if not numeric:
        raise InputError("--for functions: the table has no numeric column")
    yield "# The first releases: a density of every numeric column, of the records with a value."
    yield "# Other functions are of the kinds `function`, `classifier` and `regression`."
    if ColumnType.OPEN in columns.values():
        yield "# Remove those of columns that are not numeric: a CSV file does not say which these are."
    yield "releases:"
    for i, name in enumerate(numeric, 1):
        words = "-".join(re.findall("[a-z0-9]+", name.lower()))
        yield f"  - name: density-{i}{'-' * bool(words)}{words[:60].rstrip('-')}"
        yield "    kind: density"
        yield f"    columns: {_flow([name])}"
        yield f"    bandwidth: {BLANK}"
        yield "    mechanism: binned-laplace"


def _full_table_is_better(columns: Mapping[str, ColumnType]) -> bool:
    """Whether a histogram gives better pairs than margins do: known only where all sizes are."""
    if set(columns.values()) != {ColumnType.TRUTH} or not 3 <= len(columns) <= MOST_KNOWN:
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
