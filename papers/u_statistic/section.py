"""The variance or Gini's mean difference of a column, in a plan."""

from typing import ClassVar, Literal

from pydantic import Field, StrictStr

from dpcore.accounting.budget import Budget
from dpcore.releases.base import Release
from papers.u_statistic.kernels import KernelName
from papers.u_statistic.release import UStatistic
from schemas.releases.base import ReleaseSection, SurveyFacts, declared, domain_of


class UStatisticSection(ReleaseSection):
    """The variance, or Gini's mean difference, of a numeric column."""

    words: ClassVar[str] = "Spread"
    kind: Literal["u-statistic"]
    column: StrictStr = Field(description="A numeric column without nulls.")
    kernel: KernelName = Field(
        description="The mean over all pairs of records to publish: variance, together with the"
        " standard deviation, or mean-difference, which is Gini's."
    )
    mechanism: Literal["discrete-laplace", "random-smooth-laplace"] = "discrete-laplace"

    @property
    def may_fail(self) -> bool:
        return self.spends_gamma

    @property
    def spends_gamma(self) -> bool:
        return self.mechanism == "random-smooth-laplace"

    def build(self, survey: SurveyFacts, share: Budget) -> Release:
        if survey.weights:
            raise ValueError(
                "kind: a u-statistic counts every record once, but the plan states weights"
            )
        domain = domain_of([declared(survey.columns, self.column, "column").axis(self.column)])
        return self.make(
            UStatistic, domain, survey, share, smooth=self.spends_gamma, kernel=self.kernel
        )

    @property
    def subject(self) -> str:
        return self.column
