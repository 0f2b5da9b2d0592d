"""Describes the columns of a first plan, from a table's names and types and from a questionnaire.

A column of dates becomes one column for each part of the date.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from enum import StrEnum
from functools import cached_property
from typing import Any

import yaml

from dpcore.errors import InputError
from schemas.first_plan.question import Question
from schemas.first_plan.questionnaire import DATES, DESIGN, PERIOD, ROLES
from schemas.survey.blanks import BLANK
from schemas.survey.cells import Numbers
from schemas.survey.columns import nameable
from schemas.survey.dates import RANGES, Part
from schemas.survey.found import stated_ends

ROWS = 10_000
"""The number of records assumed in a first plan, because the real number may be private."""


class ColumnType(StrEnum):
    """The kind of a column, from its type in the table."""

    TRUTH = "truth"
    TEXT = "text"
    WHOLE = "whole"
    REAL = "real"
    DAY = "day"
    TIME = "time"
    """A day and a time of day."""
    PART = "part"
    """A part of a date."""
    LEVELS = "levels"
    """A number whose values are all listed in a questionnaire."""
    OPEN = "open"
    """Unknown, because CSV has no types."""
    OTHER = "other"
    """A type that a plan cannot describe."""


PARTS: Mapping[ColumnType, tuple[Part, ...]] = {
    ColumnType.DAY: ("year", "month", "weekday"),
    ColumnType.TIME: ("year", "month", "weekday", "hour"),
}

KINDS = {
    "categorical": ColumnType.TEXT,
    "integer": ColumnType.WHOLE,
    "continuous": ColumnType.REAL,
    "date": ColumnType.DAY,
    "time": ColumnType.TIME,
}
"""The kind of a column for each type in a questionnaire."""

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


@dataclass(frozen=True)
class Described:
    """A table. ``table``: its columns' kinds by name, in order; ``questions``: by column, or empty;
    ``rows``, ``alpha``: the number of records and the budget, or empty if not stated."""

    table: Mapping[str, ColumnType]
    questions: Mapping[str, Question]
    rows: int | None = None
    alpha: str = ""

    def __post_init__(self) -> None:
        if self.said and not self._kept:
            raise InputError(
                "no name in the questionnaire is a column of the table; names must match exactly"
            )
        if not self._kept:
            raise InputError(
                "no column of this table can be used in a plan: names must begin with a letter, and"
                " types must be text, numbers, truth values or dates"
            )

    @property
    def number(self) -> int:
        """The number of records at which choices are compared."""
        return self.rows or ROWS

    @property
    def compared_at(self) -> str:
        """Where choices are compared, in words."""
        return f"{self.number:,} records and alpha {self.alpha or 1}"

    def number_of_values(self, name: str) -> int:
        """The values that a questionnaire lists, or that lie between its bounds; 1 if unknown."""
        keys = self.said[name].keys if name in self.said else {}
        listed, bounds = keys.get("categories", keys.get("levels")), keys.get("bounds")
        if isinstance(listed, list):
            return len(listed)
        whole = self.columns.get(name) is ColumnType.WHOLE and stated_ends(bounds) is None
        return int((bounds[1] - bounds[0]) / keys.get("step", 1)) + 1 if whole and bounds else 1

    @cached_property
    def said(self) -> Mapping[str, Question]:
        """The questions about published columns."""
        return {name: q for name, q in self.questions.items() if q.type not in ROLES}

    @cached_property
    def unpublished(self) -> Mapping[str, Question]:
        return {name: q for name, q in self.questions.items() if q.type in ROLES}

    def role(self, role: str) -> tuple[str, Question] | None:
        """The table's column with this role and its question, if there is one."""
        found = ((n, q) for n, q in self.unpublished.items() if q.type == role and n in self.table)
        return next(found, None)

    @cached_property
    def design(self) -> Mapping[str, str]:
        """The columns of strata and clusters, by their key in the plan."""
        return {
            DESIGN[q.role]: n for n, q in self.said.items() if q.role in DESIGN and n in self._kept
        }

    @cached_property
    def period(self) -> str:
        """The column with the period of each record in a series; empty if there is none."""
        return next((n for n, q in self.said.items() if q.role == PERIOD and n in self._kept), "")

    @property
    def series(self) -> Mapping[str, Any]:
        """The plan's section on the series, if there is one."""
        if not self.period:
            return {}
        keys = self.said[self.period].keys
        values = keys.get("categories") or keys.get("levels")
        if values is None:
            lower, upper = keys["bounds"]
            values = range(lower, upper + 1)
        several = "all" if self.role("unit") else 1
        return {"period": self.period, "periods": len(values), "in_periods": several}

    @property
    def designed(self) -> bool:
        """Whether estimates for the population depend on weights, strata or clusters."""
        return bool(self.role("weight") or self.design)

    @property
    def with_weight(self) -> Described:
        """The table with the weight as an additional column, if the largest weight is known."""
        name, question = self.role("weight") or ("", Question("", {"upper": None}))
        upper, step = question.keys["upper"], question.keys.get("step")
        if upper is None:
            return self
        keys: dict[str, Any] = {
            "bounds": [0.0, float(upper)],
            "outside": "clamp",
            "label": "Survey weight",
        }
        keys |= {"step": float(step)} if step else {}
        keys |= {key: question.keys[key] for key in ("format",) if key in question.keys}
        own = Question("continuous", keys, Numbers(Decimal(0), upper, step, False), "weight")
        return replace(self, questions={**self.questions, name: own})

    @cached_property
    def _kept(self) -> Mapping[str, ColumnType]:
        """The columns of the table from which the columns of the plan are read."""
        return {
            name: self._kind(self.said[name]) if name in self.said else kind
            for name, kind in self.table.items()
            if (name in self.said or (not self.said and kind is not ColumnType.OTHER))
            and nameable(name)
            and name not in self.unpublished
        }

    @staticmethod
    def _kind(question: Question) -> ColumnType:
        return ColumnType.LEVELS if "levels" in question.keys else KINDS[question.type]

    @cached_property
    def columns(self) -> Mapping[str, ColumnType]:
        """The columns of the plan, without the period of a series."""
        return {
            own: kind if part is None else ColumnType.PART
            for name, kind in self._kept.items()
            if name != self.period
            for own, part in self._parts(name, kind)
        }

    def parts(self, name: str) -> list[str]:
        """The columns of the plan that are parts of a column of dates."""
        kind = self._kept.get(name, ColumnType.OTHER)
        return [own for own, part in self._parts(name, kind) if part] if kind in PARTS else []

    def _parts(self, name: str, kind: ColumnType) -> Iterator[tuple[str, Part | None]]:
        """Yield the column and None or, for a date, a name and the part for each part that may vary."""
        if kind not in PARTS:
            yield name, None
            return
        taken = {each.lower() for each in self._kept}
        question = self.said.get(name)
        for part in PARTS[kind]:
            years = {*question.keys["bounds"]} if question else set()
            if part == "year" and len(years - {BLANK}) == 1:
                continue
            own = f"{name[:80]}_{part}"
            # In lower case, because plans refuse columns that differ only in capitals.
            while own.lower() in taken:
                own += "_"
            yield own, part

    @property
    def unnamed(self) -> list[str]:
        """Columns of the table that the plan leaves out because no question describes them."""
        known = {*self._kept, *self.unpublished, *self.misnamed}
        return [name for name in self.table if name not in known]

    @property
    def misnamed(self) -> list[str]:
        """Columns of the table with a question, but with a name that is not valid in a plan."""
        return [name for name in self.table if name in self.said and not nameable(name)]

    @property
    def absent(self) -> list[str]:
        """Columns that the questionnaire describes and the table lacks."""
        return [name for name in self.questions if name not in self.table]

    @property
    def complete(self) -> bool:
        """Whether all columns of the plan are described without a blank."""
        return not any(BLANK in line for line in self.lines(self.columns, {}))

    def lines(self, wanted: Collection[str], more: Mapping[str, Mapping[str, Any]]) -> list[str]:
        """Lines of the plan on these columns; ``more``: keys by column that follow from the releases."""
        return [
            line for name, kind in self._kept.items() for line in self._of(name, kind, wanted, more)
        ]

    def _of(
        self,
        name: str,
        kind: ColumnType,
        wanted: Collection[str],
        more: Mapping[str, Mapping[str, Any]],
    ) -> Iterator[str]:
        question = self.said.get(name)
        parts = [(own, part) for own, part in self._parts(name, kind) if own in wanted]
        if parts and kind in PARTS:
            yield f"# Parts of {flow(name)}; remove parts that are not needed."
        for own, part in parts:
            yield f"{flow(own)}:"
            if part is None and question is None:
                yield from (f"  {line}" for line in WORDS[kind])
                yield from (f"  {key}: {flow(value)}" for key, value in more.get(own, {}).items())
            elif part is None:
                assert question is not None
                keys = {"type": question.type, **question.keys, **more.get(own, {})}
                yield from (f"  {key}: {flow(value)}" for key, value in keys.items())
            else:
                bounds: Sequence[int] | str = BLANK if part == "year" else [*RANGES[part]]
                if question and part == "year":
                    bounds = question.keys["bounds"]
                yield "  type: integer"
                yield f"  bounds: {flow(bounds)}"
                yield f"  from: {flow({'column': name, 'part': part})}"
                if question and "format" in question.keys:
                    yield f"  format: {flow(question.keys['format'])}"
                for key in ("label", "description"):
                    if question and key in question.keys:
                        yield f"  {key}: {flow(f'{question.keys[key]}: {part}')}"


def with_names(
    table: Mapping[str, ColumnType], questions: Mapping[str, Question]
) -> tuple[dict[str, ColumnType], dict[str, Question]]:
    """The table and the questions, with new names for described columns whose names are not valid."""
    own = {name: name for name in (*table, *questions)}
    for name, question in questions.items():
        if name in table and question.type not in (*ROLES, *DATES) and not nameable(name):
            short = re.sub(r" *[^\w .-]+ *", "_", name)[:80].strip("_ .-")
            short = short if nameable(short) else f"column {short}".strip()
            while short in own.values():
                short += "_"
            own[name] = short
    named = {}
    for name, question in questions.items():
        source = {} if own[name] == name else {"source_name": name}
        asked = [c._replace(column=own.get(c.column, c.column)) for c in question.universe]
        keys = {**source, **question.keys}
        named[own[name]] = replace(question, keys=keys, universe=asked)
    return {own[name]: kind for name, kind in table.items()}, named


def flow(value: object) -> str:
    """A value in one line of YAML."""
    text = yaml.safe_dump(
        [value], default_flow_style=True, sort_keys=False, allow_unicode=True, width=10**6
    )
    return text.strip()[1:-1]
