"""The nearest of some public functions to the distribution of a column, in a plan."""

from typing import ClassVar, Literal

from pydantic import Field, StrictStr

from dpcore.accounting.budget import Budget
from dpcore.releases.base import Release
from papers.listed_function.release import ListedFunction
from schemas.releases.base import ReleaseSection, SurveyFacts
from schemas.releases.binning import Bins, binned_domain


class ListedFunctionSection(ReleaseSection):
    """The one of several public functions that is nearest to the distribution of one column."""

    words: ClassVar[str] = "Nearest of some functions"
    kind: Literal["listed-function"]
    column: StrictStr = Field(description="A numeric column without nulls.")
    bins: Bins
    functions: dict[StrictStr, list[float]] = Field(
        min_length=2,
        max_length=4096,
        description="For each function by name: numbers proportional to the shares of all bins.",
    )
    mechanism: Literal["nearest-function"] = "nearest-function"

    def build(self, survey: SurveyFacts, share: Budget) -> Release:
        domain = binned_domain(survey.columns, [self.column], self.bins)
        shares = tuple(map(tuple, self.functions.values()))
        return self.make(
            ListedFunction, domain, survey, share, names=tuple(self.functions), shares=shares
        )

    @property
    def subject(self) -> str:
        return self.column
