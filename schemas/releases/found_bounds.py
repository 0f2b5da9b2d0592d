"""The search for the bounds of an open column, in a plan."""

from dataclasses import replace
from typing import Literal

from pydantic import Field, StrictStr

from dpcore.accounting.budget import Budget
from dpcore.releases.base import Release
from dpcore.releases.counts.found_bounds import FoundBounds, ranges
from schemas.releases.base import ReleaseSection, SurveyFacts, declared
from schemas.survey.columns import ContinuousColumn


class BoundsSection(ReleaseSection):
    """The bounds that hold all but a few, of a column with `bounds: open`.

    A plan that does not state it for such a column gets it, with its part of a fifth of the budget.
    """

    words = "Bounds found"
    kind: Literal["found-bounds"]
    column: StrictStr = Field(description="A column with `bounds: open`.")
    mechanism: Literal["discrete-laplace"] = "discrete-laplace"

    @property
    def finds(self) -> str:
        return self.column

    @property
    def subject(self) -> str:
        return f"bounds of {self.column}"

    def build(self, survey: SurveyFacts, share: Budget) -> Release:
        column = declared(survey.columns, self.column, "column")
        if not isinstance(column, ContinuousColumn) or not column.open:
            raise ValueError(f"column: {self.column!r} has no `bounds: open`")
        one_each = replace(survey, adjacency=replace(survey.adjacency, most=1))
        return self.make(FoundBounds, ranges(self.column), one_each, share)
