"""Writes a first plan for a table, from the names and types of its columns and a questionnaire.

The text is ``plan.yaml.jinja``.  A column of dates becomes a column for each of its parts.  What is
released depends on what readers are to get: tables of counts, synthetic records, or functions.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import combinations
from typing import Literal

import jinja2
import yaml

from dpcore.accounting.budget import Budget
from dpcore.advice.kinds import best, compared
from dpcore.domain.axes import Categories
from dpcore.domain.domain import Domain
from dpcore.errors import InputError
from dpcore.releases.tables.margins import Margins
from schemas.first_plan.cells import Cells
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

TEMPLATES = jinja2.Environment(
    loader=jinja2.PackageLoader("schemas", "first_plan"),
    autoescape=False,  # it is YAML: every value is written by ``_flow``
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
)


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
    unpublished = {name: q for name, q in (questions or {}).items() if q.type in ROLES}
    role = {q.type: (name, q) for name, q in unpublished.items() if name in columns}
    kept = {
        name: KINDS[said[name].type] if name in said else kind
        for name, kind in columns.items()
        if (name in said or (not said and kind is not ColumnType.OTHER))
        and nameable(name)
        and name not in unpublished
    }
    if said and not kept:
        raise InputError("the questionnaire names no column of the table: names must match exactly")
    if not kept:
        raise InputError(
            "the table has no column that a plan can describe: names must begin with a letter, and"
            " types must be text, numbers, truth values or dates"
        )
    cells = _cells(kept, said, purpose)
    described = dict(_described(kept, said, cells))
    kinds = {name: kind for name, (kind, _) in described.items()}
    weights = role.get("weight") if purpose != "functions" else None
    return TEMPLATES.get_template("plan.yaml.jinja").render(
        purpose=purpose,
        dataset=dataset,
        source=source,
        questioned=bool(said),
        unit=_unit(*role["unit"]) if "unit" in role else None,
        weights=_weights(*weights) if weights else None,
        lines=[line for _, written in described.values() for line in written],
        unnamed=[name for name in columns if name not in kept and name not in unpublished],
        absent=[name for name in {**said, **unpublished} if name not in columns],
        columns=list(kinds),
        bins=_bins(kinds, said, cells),
        whole=ColumnType.WHOLE in kinds.values(),
        untyped=ColumnType.OPEN in kinds.values(),
        together=_full_table_is_better(kinds),
        densities=list(_densities(kinds)) if purpose == "functions" else (),
        BLANK=BLANK,
    )


def _cells(
    columns: Mapping[str, ColumnType], said: Mapping[str, Question], purpose: Purpose
) -> dict[str, Cells]:
    """By name, the cells of each column whose numbers the questionnaire describes."""
    known = {name: said[name].numbers for name in columns if name in said}
    return {
        name: numbers.for_tables() if purpose == "tables" else numbers.for_records()
        for name, numbers in known.items()
        if numbers and purpose != "functions"
    }


def _described(
    columns: Mapping[str, ColumnType], said: Mapping[str, Question], cells: Mapping[str, Cells]
) -> Iterator[tuple[str, tuple[ColumnType, list[str]]]]:
    """By name, each column of the plan: its kind, and its lines."""
    taken = {name.lower() for name in columns}
    for name, kind in columns.items():
        question = said.get(name)
        if question and kind not in PARTS:
            keys = {"type": question.type, **question.keys}
            if name in cells and cells[name].points:
                keys["point_masses"] = cells[name].points
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
                if lower == upper and lower != BLANK:
                    continue
                bounds = f"[{lower}, {upper}]"
            lines += [f"{_flow(own)}:", "  type: integer", f"  bounds: {bounds}"]
            lines.append(f"  from: {_flow({'column': name, 'part': part})}")
            for key in ("label", "description"):
                if question and key in question.keys:
                    lines.append(f"  {key}: {_flow(f'{question.keys[key]}: {part}')}")
            yield own, (ColumnType.PART, lines)
            lines = []


def _unit(name: str, question: Question) -> Mapping[str, object]:
    most = question.keys["upper"]
    return {"column": name, "max_rows": BLANK if most is None else int(most)}


def _weights(name: str, question: Question) -> Mapping[str, object]:
    given = {"largest": question.keys["upper"], "step": question.keys["step"], "total": None}
    return {"column": name} | {k: BLANK if v is None else str(v) for k, v in given.items()}


def _bins(
    columns: Mapping[str, ColumnType], said: Mapping[str, Question], cells: Mapping[str, Cells]
) -> dict[str, Sequence[float] | str]:
    """The edges that a questionnaire implies, and blanks for columns of real numbers without it."""
    bins: dict[str, Sequence[float] | str] = {
        name: edges for name, (edges, _) in cells.items() if edges and name in columns
    }
    real = (name for name, kind in columns.items() if kind is ColumnType.REAL)
    return bins | {name: BLANK for name in real if name not in cells}


def _densities(columns: Mapping[str, ColumnType]) -> Iterator[tuple[str, str]]:
    """A name for the density of every numeric column, and the column."""
    numeric = [name for name, kind in columns.items() if kind in NUMERIC]
    if not numeric:
        raise InputError("--for functions: the table has no numeric column")
    for i, name in enumerate(numeric, 1):
        words = "-".join(re.findall("[a-z0-9]+", name.lower()))
        yield f"density-{i}{'-' * bool(words)}{words[:60].rstrip('-')}", name


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


TEMPLATES.filters |= {"flow": _flow, "quoted": repr}
