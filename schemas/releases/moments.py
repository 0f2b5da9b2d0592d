"""Moments of several columns in a plan."""

from typing import ClassVar, Literal

from pydantic import Field, StrictStr

from dpcore.accounting.budget import Budget
from dpcore.releases.base import Release
from dpcore.releases.numbers.moments import Moments
from schemas.releases.base import ReleaseSection, SurveyFacts, declared, domain_of


class MomentsSection(ReleaseSection):
    """Means, means by group, variances, covariances and linear models, with their errors."""

    words: ClassVar[str] = "Means, covariances and linear models"
    includes_sampling: ClassVar[bool] = True
    kind: Literal["moments"]
    columns: list[StrictStr] = Field(
        min_length=1,
        max_length=50,
        description=("Numeric columns, scaled by their bounds, and categories; no nulls."),
    )
    mechanism: Literal["discrete-gaussian"] = "discrete-gaussian"

    def build(self, survey: SurveyFacts, share: Budget) -> Release:
        if survey.cluster:
            raise ValueError(
                "kind: moments take records as independent, but the plan states a cluster; write kind:"
                ' model, such as formula: "income ~ 0 + C(region)", or leave out cluster'
            )
        axes = [declared(survey.columns, name).axis(name) for name in self.columns]
        return self.make(Moments, domain_of(axes), survey, share)
