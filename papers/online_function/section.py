"""A density at listed points, in a plan."""

from typing import ClassVar, Literal

from pydantic import Field, StrictStr

from dpcore.accounting.budget import Budget
from dpcore.releases.base import Release
from dpcore.releases.densities.kernels import KernelName
from papers.online_function.release import AskedFunction
from schemas.releases.base import ReleaseSection, SurveyFacts, declared, domain_of, listed, one_each


class AskedFunctionSection(ReleaseSection):
    """A kernel density of one to three numeric columns at some points."""

    words: ClassVar[str] = "Density at points"
    kind: Literal["asked-function"]
    columns: list[StrictStr] = Field(
        min_length=1, max_length=3, description="One to three numeric columns without nulls."
    )
    bandwidth: float | list[float] = Field(
        description="Standard deviation of the kernel, as a fraction of the column's range: one for"
        " all columns, or one for each."
    )
    kernel: KernelName = Field(
        default="gaussian",
        description="Covariance of the noise: gaussian noise is smooth, exponential noise is rough.",
    )
    points: list[list[float]] = Field(
        min_length=1,
        max_length=1024,
        description="The points at which to evaluate the density: a number for each column, in its"
        " unit. More points cost no budget.",
    )
    mechanism: Literal["gaussian-process"] = "gaussian-process"

    @property
    def gaussian(self) -> bool:
        return True

    def build(self, survey: SurveyFacts, share: Budget) -> Release:
        axes = [declared(survey.columns, name).axis(name) for name in self.columns]
        return self.make(
            AskedFunction,
            domain_of(axes),
            survey,
            share,
            kernel=self.kernel,
            bandwidths=one_each(self.bandwidth, self.columns),
            points=tuple(map(tuple, self.points)),
        )

    @property
    def subject(self) -> str:
        return listed(self.columns, " x ")
