"""Smooth functions in a plan."""

from typing import ClassVar, Literal

from pydantic import Field, StrictInt, StrictStr

from dpcore.accounting.budget import Budget
from dpcore.domain.domain import Domain
from dpcore.releases.densities.function import SmoothFunction
from dpcore.releases.densities.kernels import KernelName
from dpcore.releases.densities.process import default_points
from schemas.releases.base import SurveyFacts, listed, one_each
from schemas.releases.smooth import SmoothBandwidth, SmoothSection


class FunctionSection(SmoothSection):
    """A kernel density of one to three numeric columns, with Gaussian process noise."""

    words: ClassVar[str] = "Smooth function"
    kind: Literal["function"]
    columns: list[StrictStr] = Field(
        min_length=1, max_length=3, description="One to three numeric columns."
    )
    bandwidth: SmoothBandwidth
    kernel: KernelName = Field(
        default="gaussian",
        description="Covariance of the noise: gaussian noise is smooth, exponential noise is rough.",
    )
    points: StrictInt | list[StrictInt] | None = Field(
        default=None,
        description="Points of the public grid along each column; more points cost no budget. Default:"
        " four per bandwidth.",
    )
    mechanism: Literal["gaussian-process"] = "gaussian-process"

    def at(
        self, bandwidth: float | list[float], domain: Domain, survey: SurveyFacts, share: Budget
    ) -> SmoothFunction:
        widths = one_each(bandwidth, self.columns)
        points = default_points(widths)
        if self.points is not None:
            points = one_each(self.points, self.columns)
        return self.make(
            SmoothFunction,
            domain,
            survey,
            share,
            kernel=self.kernel,
            bandwidths=widths,
            points=points,
        )

    @property
    def subject(self) -> str:
        return listed(self.columns, " x ")
