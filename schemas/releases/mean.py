"""Means in a plan."""

from typing import ClassVar, Literal

from pydantic import Field, StrictStr

from dpcore.budget import Budget
from dpcore.releases.base import Release
from dpcore.releases.numbers.mean import Mean
from dpcore.releases.numbers.ratio_mean import RatioMean
from schemas.releases.base import ReleaseSection, SurveyFacts, declared, domain_of


class MeanSection(ReleaseSection):
    """The mean of a numeric column."""

    words: ClassVar[str] = "Mean"
    kind: Literal["mean"]
    column: StrictStr = Field(description="A numeric column.")
    mechanism: Literal["discrete-laplace", "random-smooth-laplace"] = "discrete-laplace"

    @property
    def may_fail(self) -> bool:
        return self.spends_gamma

    @property
    def spends_gamma(self) -> bool:
        return self.mechanism == "random-smooth-laplace"

    def build(self, survey: SurveyFacts, share: Budget) -> Release:
        domain = domain_of([declared(survey.columns, self.column, "column").axis(self.column)])
        if not self.spends_gamma and not survey.adjacency.public_rows:
            return RatioMean(self.name, domain, survey.rows, share, adjacency=survey.adjacency)
        return Mean(
            self.name, domain, survey.rows, share, self.spends_gamma, adjacency=survey.adjacency
        )

    @property
    def title(self) -> str:
        return self.column
