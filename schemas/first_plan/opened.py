"""Plans for wishes over columns that another plan describes and opens to requests.

The planner chooses the releases as for a new table, but tries every choice in the real plan, with its
rows, privacy unit, relation, design and budget.  Wishes can name only opened columns.  The tried plan is
the released plan.  The same plan and wishes always give the same releases.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property
from typing import Any

from dpcore.accounting.budget import Budget
from dpcore.errors import InputError, PlanError
from schemas.first_plan.described import ColumnType, Described
from schemas.first_plan.planner import Draft, ModelError
from schemas.first_plan.question import Question
from schemas.first_plan.questionnaire import DESIGN
from schemas.first_plan.sections import ColumnUse
from schemas.first_plan.wishes import Said
from schemas.plan import Plan
from schemas.plan.selection import smaller
from schemas.survey.cells import Numbers
from schemas.survey.columns import CategoricalColumn, Column

KEYS = ("categories", "levels", "labels", "nullable", "missing")
"""The facts about a column that the planner needs, in addition to its numbers."""


def planned(
    plan: Plan,
    columns: Sequence[str],
    said: Said,
    asked: Budget,
    title: str,
    requester: str,
    model_error: ModelError,
) -> Plan:
    """The plan with its releases replaced by the best releases for these wishes.

    Raises ``InputError`` if a wish cannot be answered or names another column.
    """
    of = described(plan, columns)
    try:
        wishes = said.read(of)
        draft = SmallerDraft(
            plan.dataset,
            "",
            of,
            PlannedUse(of, wishes, plan),
            model_error=model_error,
            plan=plan,
            asked=asked,
            words=(title, requester),
        )
        made = draft.serve(wishes).finished().trial
    except InputError as error:
        in_form = re.sub("^--", "", str(error), flags=re.MULTILINE)
        in_form = in_form.replace("the questionnaire", "the plan")
        raise InputError(f"{in_form}\nopened to wishes: {', '.join(columns)}") from None
    assert made is not None
    return made


def described(plan: Plan, columns: Sequence[str]) -> Described:
    """Columns of a plan as a questionnaire would describe them."""
    # The questions decide the kinds of all columns, so the table's kinds are not used.
    table = {name: ColumnType.OTHER for name in plan.columns if name in columns}
    questions = {name: _question(plan.columns[name]) for name in table}
    for role, key in DESIGN.items():
        name = getattr(plan, key)
        if name in table:
            questions[name] = replace(questions[name], role=role)
    if plan.weights:
        table[plan.weights.column] = ColumnType.OTHER
        questions[plan.weights.column] = Question("weight", {})
    return Described(table, questions)


def _question(column: Column) -> Question:
    stated = column.model_dump(mode="json", exclude_none=True)
    keys = {key: stated[key] for key in KEYS if key in stated}
    if isinstance(column, CategoricalColumn) or column.levels is not None:
        return Question(column.type, keys)
    lower, upper = (Decimal(str(bound)) for bound in column.bounds)
    step = None if column.step is None else Decimal(str(column.step))
    points = [Decimal(str(point)) for point in column.point_masses]
    whole = column.type == "integer"
    return Question(column.type, keys, Numbers(lower, upper, step, whole, points, column.unit))


@dataclass(frozen=True)
class PlannedUse(ColumnUse):
    """The use of columns that ``plan`` describes."""

    plan: Plan

    @cached_property
    def points(self) -> Mapping[str, Sequence[float]]:
        columns = {name: self.plan.columns[name] for name in self.numbers}
        return {name: getattr(column, "point_masses", []) for name, column in columns.items()}

    @property
    def heaped(self) -> list[str]:
        """Empty under basic composition: their release would cost the records too much accuracy."""
        return super().heaped if self.plan.budget.composition == "concentrated" else []

    @property
    def designed(self) -> bool:
        """Whether the plan has a survey design; its columns need not be opened."""
        return bool(self.plan.weights or self.plan.design_columns)

    def no_private_bandwidth(self, columns: Sequence[str]) -> str:
        if not self.plan.adjacency.public_rows:
            return "the number of records is private"
        return super().no_private_bandwidth(columns)


@dataclass(frozen=True, kw_only=True)
class SmallerDraft(Draft):
    """A draft of plans like ``plan``, for the budget ``asked``; ``words``: title and requester."""

    plan: Plan
    asked: Budget
    words: tuple[str, str]

    @cached_property
    def trial(self) -> Plan:
        columns = self.plan.model_dump(mode="json", by_alias=True)["columns"]
        sections: dict[str, Any] = {
            "columns": {
                name: columns[name]
                for name in columns
                if name in self.of.columns or name in self.plan.design_columns
            },
            "releases": [self._payable(section.keys) for section in self.sections],
            "synthesis": [*self.synthesis],
            "analyses": [*self._analyses()],
        }
        try:
            return smaller(
                self.plan,
                sections | self._left_out,
                self.asked,
                *self.words,
            )
        except PlanError as error:
            faults = str(error).partition("\n")[2] or str(error)
            raise InputError(f"no plan can fulfil these wishes:\n{faults}") from None

    @property
    def _left_out(self) -> dict[str, None]:
        """The plan's keys on the survey that it may not have with this draft's releases, as None."""
        return {} if self.weighted else {"weights": None}

    def _payable(self, keys: Mapping[str, Any]) -> dict[str, Any]:
        """The section, without Gaussian noise in tables if the plan requests no beta."""
        pure = self.plan.budget.composition == "basic" and not self.plan.requested.beta
        if pure and keys.get("mechanism") == "discrete-gaussian":
            return {**keys, "mechanism": "discrete-laplace"}
        return dict(keys)
