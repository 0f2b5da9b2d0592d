"""Smooth functions in a plan."""

from typing import ClassVar, Literal

from pydantic import Field, StrictInt, StrictStr

from dpcore.accounting.budget import Budget
from dpcore.domain.domain import Domain
from dpcore.releases.base import Release
from dpcore.releases.densities.function import SmoothFunction
from dpcore.releases.densities.kernels import KernelName
from dpcore.releases.densities.process import default_points
from schemas.releases.base import SurveyFacts, listed, one_each
from schemas.releases.private_bandwidth import PrivateBandwidth
from schemas.releases.transformed import TransformedSection


class FunctionSection(TransformedSection):
    """A kernel density of one to three numeric columns, hidden by a Gaussian process."""

    words: ClassVar[str] = "Smooth function"
    kind: Literal["function"]
    columns: list[StrictStr] = Field(
        min_length=1, max_length=3, description="One numeric column, up to three."
    )
    bandwidth: float | list[float] | PrivateBandwidth = Field(
        description="Standard deviation of the Gaussian kernel, as a fraction of the column's range"
        " (0.05 of a range of 200 is 10), one for all columns or one each; or, for one or two"
        " columns, how it is drawn from the records."
    )
    kernel: KernelName = Field(
        default="gaussian",
        description="Covariance of the noise: gaussian is smooth, exponential is rough.",
    )
    points: StrictInt | list[StrictInt] | None = Field(
        default=None,
        description="Points of the public grid along each column; more cost no budget. Without it"
        " four for each bandwidth.",
    )
    mechanism: Literal["gaussian-process"] = "gaussian-process"

    @property
    def may_fail(self) -> bool:
        return isinstance(self.bandwidth, PrivateBandwidth) and self.bandwidth.may_fail

    @property
    def gaussian(self) -> bool:
        return True

    def build(self, survey: SurveyFacts, share: Budget) -> Release:
        domain = self.domain(survey.columns)
        if isinstance(self.bandwidth, PrivateBandwidth):
            smooth = self._at(self.bandwidth.smallest, domain, survey, share)
            return self.bandwidth.tune(smooth, share, gaussian=True)
        return self._at(self.bandwidth, domain, survey, share)

    def _at(
        self, bandwidth: float | list[float], domain: Domain, survey: SurveyFacts, share: Budget
    ) -> SmoothFunction:
        widths = one_each(bandwidth, self.columns)
        if self.points is None:
            points = default_points(widths)
        elif isinstance(self.points, list):
            points = tuple(self.points)
        else:
            points = (self.points,) * len(self.columns)
        return SmoothFunction(
            self.name,
            domain,
            survey.rows,
            share,
            self.kernel,
            widths,
            points,
            adjacency=survey.adjacency,
        )

    @property
    def subject(self) -> str:
        return listed(self.columns, " x ")
