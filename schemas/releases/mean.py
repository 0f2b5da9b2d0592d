"""Means in a plan."""

from typing import ClassVar, Literal, Self

from pydantic import model_validator

from dpcore.accounting.budget import Budget
from dpcore.releases.base import Release
from dpcore.releases.numbers.mean import Mean
from dpcore.releases.numbers.ratio_mean import RatioMean
from schemas.releases.base import GroupsSection, SurveyFacts


class MeanSection(GroupsSection):
    """The mean of a numeric column, over all records with a value or in each group."""

    words: ClassVar[str] = "Mean"
    kind: Literal["mean"]
    mechanism: Literal["discrete-laplace", "discrete-gaussian", "random-smooth-laplace"] = (
        "discrete-laplace"
    )

    @model_validator(mode="after")
    def _groups(self) -> Self:
        if self.groups and self.spends_gamma:
            raise ValueError("by: random-smooth-laplace makes no groups; choose another mechanism")
        return self

    @property
    def may_fail(self) -> bool:
        return self.spends_gamma

    @property
    def spends_gamma(self) -> bool:
        return self.mechanism == "random-smooth-laplace"

    def build(self, survey: SurveyFacts, share: Budget) -> Release:
        if survey.weights:
            groups = ":".join(f"C({name})" for name in self.groups)
            raise ValueError(
                "kind: a mean counts every record once, but the plan states weights; for the population"
                f' write kind: model, formula: "{self.column} ~ {f"0 + {groups}" if groups else "1"}"'
            )
        domain = self.domain(survey.columns)
        # If the number of values is private, the mean is a ratio of two noisy numbers.
        counted = self.groups or domain.axes[-1].nullable or not survey.adjacency.public_rows
        if self.mechanism == "random-smooth-laplace":
            return self.make(Mean, domain, survey, share, smooth=True)
        return self.make(
            RatioMean if counted else Mean, domain, survey, share, noise=self.mechanism
        )
