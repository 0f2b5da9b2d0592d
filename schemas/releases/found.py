"""The sections on searches for the categories or bounds of an open column."""

from dataclasses import replace
from typing import Literal

from pydantic import Field, StrictStr

from dpcore.accounting.budget import Budget
from dpcore.domain.texts import texts
from dpcore.releases.base import Release
from dpcore.releases.counts.found import FoundCategories
from dpcore.releases.counts.found_bounds import FoundBounds, ranges
from schemas.releases.base import ReleaseSection, SurveyFacts, declared
from schemas.survey.columns import CategoricalColumn, Column


class SearchSection(ReleaseSection):
    """Base class of searches for categories or bounds of an open column, using one record per unit."""

    column: StrictStr = Field(description="A column with `categories: open`, or `bounds: open`.")

    @property
    def finds(self) -> str:
        return self.column

    @property
    def subject(self) -> str:
        return f"{self.kind.removeprefix('found-')} of {self.column}"

    def build(self, survey: SurveyFacts, share: Budget) -> Release:
        column = declared(survey.columns, self.column, "column")
        what = self.kind.removeprefix("found-")
        if not column.open or isinstance(column, CategoricalColumn) != (what == "categories"):
            raise ValueError(f"column: {self.column!r} has no `{what}: open`")
        one_each = replace(survey, adjacency=replace(survey.adjacency, most=1))
        return self.search(column, one_each, share)

    def search(self, column: Column, survey: SurveyFacts, share: Budget) -> Release:
        """The search that uses one record of each unit."""
        raise NotImplementedError


class FoundSection(SearchSection):
    """Finds the categories that enough units have, for a column with `categories: open`.

    Plans that do not list it get it automatically; all added searches share a fifth of the budget.
    """

    words = "Categories found"
    kind: Literal["found-categories"]
    mechanism: Literal["stability-laplace"] = "stability-laplace"

    @property
    def may_fail(self) -> bool:
        return True

    def search(self, column: Column, survey: SurveyFacts, share: Budget) -> Release:
        assert isinstance(column, CategoricalColumn)
        own = {"column": self.column, "categories": tuple(map(str, column.categories[:-1]))}
        return self.make(FoundCategories, texts(self.column), survey, share, **own)


class BoundsSection(SearchSection):
    """Finds bounds that contain all but a few values, for a column with `bounds: open`.

    Plans that do not list it get it automatically; all added searches share a fifth of the budget.
    """

    words = "Bounds found"
    kind: Literal["found-bounds"]
    mechanism: Literal["discrete-laplace"] = "discrete-laplace"

    def search(self, column: Column, survey: SurveyFacts, share: Budget) -> Release:
        return self.make(FoundBounds, ranges(self.column), survey, share)
