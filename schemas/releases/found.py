"""The search for the categories of an open column, in a plan."""

from dataclasses import replace
from typing import Literal

from pydantic import Field, StrictStr

from dpcore.accounting.budget import Budget
from dpcore.domain.texts import texts
from dpcore.releases.base import Release
from dpcore.releases.counts.found import FoundCategories
from schemas.releases.base import ReleaseSection, SurveyFacts, declared
from schemas.survey.columns import CategoricalColumn


class FoundSection(ReleaseSection):
    """The categories that enough units have, of a column with `categories: open`.

    A plan that does not state it for such a column gets it, with a fifth of the budget for all of them.
    """

    words = "Categories found"
    kind: Literal["found-categories"]
    column: StrictStr = Field(description="A column with `categories: open`.")
    mechanism: Literal["stability-laplace"] = "stability-laplace"

    @property
    def may_fail(self) -> bool:
        return True

    @property
    def finds(self) -> str:
        return self.column

    @property
    def subject(self) -> str:
        return f"categories of {self.column}"

    def build(self, survey: SurveyFacts, share: Budget) -> Release:
        column = declared(survey.columns, self.column, "column")
        if not isinstance(column, CategoricalColumn) or not column.open:
            raise ValueError(f"column: {self.column!r} has no `categories: open`")
        one_each = replace(survey, adjacency=replace(survey.adjacency, most=1))
        known = tuple(map(str, column.categories[:-1]))
        domain = texts(self.column)
        return self.make(
            FoundCategories, domain, one_each, share, column=self.column, categories=known
        )
