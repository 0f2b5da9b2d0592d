"""Densities in a plan."""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Self

from pydantic import Field, StrictInt, StrictStr, model_validator

from dpcore.axes import Grid
from dpcore.budget import Budget
from dpcore.domain import Domain
from dpcore.releases.base import Release
from dpcore.releases.densities.beside_points import DensityBesidePoints
from dpcore.releases.densities.binned_density import BinnedDensity
from dpcore.releases.densities.body_density import BodyDensity
from dpcore.releases.densities.by_group import DensitiesByGroup
from dpcore.releases.densities.density import Density
from dpcore.releases.densities.pure_density import CoefficientDensity, GammaDensity
from dpcore.releases.densities.spectral_density import SpectralDensity
from schemas.releases.base import GroupedSection, SurveyFacts, domain_of, listed, one_each
from schemas.releases.private_bandwidth import PrivateBandwidth
from schemas.releases.transformed import TransformedSection

CLASSES: Mapping[str, type[Density]] = {
    "spectral-gaussian": SpectralDensity,
    "binned-laplace": BinnedDensity,
    "spectral-gamma": GammaDensity,
    "difference-body": BodyDensity,
    "coefficient-laplace": CoefficientDensity,
}

TRUNCATED = ("spectral-gaussian", "coefficient-laplace")
"""Mechanisms that may keep the first terms only."""


GROUPED = ("binned-laplace", "spectral-gaussian")
"""Mechanisms that serve several groups at the price of one."""


class DensitySection(GroupedSection, TransformedSection):
    """A smooth density of one or two numeric columns."""

    words: ClassVar[str] = "Density"
    kind: Literal["density"]
    columns: list[StrictStr] = Field(
        min_length=1, max_length=2, description="One numeric column, or two."
    )
    bandwidth: float | list[float] | PrivateBandwidth = Field(
        description="Standard deviation of the Gaussian kernel, as a fraction of the column's range"
        " (0.05 of a range of 200 is 10), one for all columns or one each; or, for one or two"
        " columns, how it is drawn from the records."
    )
    mechanism: Literal[
        "best",
        "spectral-gaussian",
        "binned-laplace",
        "spectral-gamma",
        "difference-body",
        "coefficient-laplace",
    ] = Field(
        description="best: the one of least whole error, noise and all that is left out, that the plan"
        " allows; it is chosen when the plan is read, from the plan alone, and takes the place of this"
        " word in all that is recorded and published."
    )
    boundary: Literal["reflected", "periodic"] = Field(
        default="reflected",
        description="periodic: the ends of the columns meet, like those of a day.",
    )
    terms: StrictInt | None = Field(
        default=None,
        ge=1,
        description="The most frequencies along each column; fewer have less noise and show less detail."
        " Without it all that the bandwidth leaves, and for coefficient-laplace as many as records and"
        " alpha make worth their noise; for these two mechanisms only.",
    )

    @model_validator(mode="after")
    def _spectral(self) -> Self:
        if self.groups and self.mechanism not in ("best", *GROUPED):
            raise ValueError(f"by: only with the mechanisms {' and '.join(GROUPED)}")
        if self.groups and isinstance(self.bandwidth, PrivateBandwidth):
            raise ValueError("by: only with a bandwidth that is stated")
        if self.mechanism == "best":
            return self
        if self.terms is not None and self.mechanism not in TRUNCATED:
            raise ValueError("terms: only with spectral-gaussian and coefficient-laplace")
        return self

    @property
    def may_fail(self) -> bool:
        return isinstance(self.bandwidth, PrivateBandwidth) and self.bandwidth.may_fail

    @property
    def gaussian(self) -> bool:
        return self.mechanism == "spectral-gaussian"

    def build(self, survey: SurveyFacts, share: Budget) -> Release:
        domain = self.domain(survey.columns)
        if isinstance(self.bandwidth, PrivateBandwidth):
            smooth = self._at(self.bandwidth.smallest, domain, survey, share)
            return self.bandwidth.tune(smooth, share, self.gaussian)
        each = self._at(self.bandwidth, domain, survey, share)
        if not self.groups:
            return self._beside_points(each)
        groups = domain_of([*self.group_axes(survey.columns), *domain.axes])
        return DensitiesByGroup(
            self.name, groups, survey.rows, share, each, adjacency=survey.adjacency
        )

    def _beside_points(self, density: Density) -> Release:
        """With the records at the point masses of its one column, where the mechanism can count them."""
        axis, *others = density.domain.axes
        if others or self.mechanism not in GROUPED or not (isinstance(axis, Grid) and axis.points):
            return density
        own = density.rows, density.share, density
        return DensityBesidePoints(density.name, density.domain, *own, adjacency=density.adjacency)

    def _at(
        self, bandwidth: float | list[float], domain: Domain, survey: SurveyFacts, share: Budget
    ) -> Density:
        truncated: dict[str, Any] = {} if self.terms is None else {"terms": self.terms}
        return CLASSES[self.mechanism](
            self.name,
            domain,
            survey.rows,
            share,
            one_each(bandwidth, self.columns),
            **truncated,
            periodic=self.boundary == "periodic",
            adjacency=survey.adjacency,
        )

    @property
    def subject(self) -> str:
        return self.of_groups(listed(self.columns, " x "))
