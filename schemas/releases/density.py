"""Densities in a plan."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Self

from pydantic import Field, StrictInt, StrictStr, model_validator

from dpcore.accounting.budget import Budget
from dpcore.domain.axes import Grid
from dpcore.domain.domain import Domain
from dpcore.releases.base import Release
from dpcore.releases.densities.binned_density import BinnedDensity
from dpcore.releases.densities.density import Density
from dpcore.releases.densities.parts import DensityOfParts
from dpcore.releases.densities.spectral_density import SpectralDensity
from schemas.releases.base import GroupedSection, SurveyFacts, domain_of, listed, one_each
from schemas.releases.named import one_of
from schemas.releases.smooth import PrivateBandwidth, SmoothBandwidth, SmoothSection

BEST = "best"


class DensityMechanism(NamedTuple):
    """A mechanism for densities.

    ``truncated``: whether it can publish only the first terms; ``grouped``: whether it can publish
    several groups at the price of one; ``gaussian``: whether its noise is Gaussian.
    """

    release: type[Density]
    truncated: bool = False
    grouped: bool = False
    gaussian: bool = False


MECHANISMS = {
    "spectral-gaussian": DensityMechanism(SpectralDensity, True, True, gaussian=True),
    "binned-laplace": DensityMechanism(BinnedDensity, grouped=True),
}


class DensitySection(GroupedSection, SmoothSection):
    """A smooth density of one or two numeric columns."""

    words: ClassVar[str] = "Density"
    kind: Literal["density"]
    columns: list[StrictStr] = Field(
        min_length=1, max_length=2, description="One or two numeric columns."
    )
    bandwidth: SmoothBandwidth
    mechanism: Annotated[str, *one_of(lambda: (BEST, *MECHANISMS))] = Field(
        description="best: binned-laplace or spectral-gaussian, whichever has the smaller total"
        " error by the plan alone. Publications show the chosen mechanism."
    )
    boundary: Literal["reflected", "periodic"] = Field(
        default="reflected",
        description="periodic: the two ends of a column meet, as for the hours of a day.",
    )
    terms: StrictInt | None = Field(
        default=None,
        ge=1,
        description=(
            "The largest number of frequencies along each column. Fewer have less noise and less detail."
            " Default: all that the bandwidth does not smooth away."
        ),
    )

    @classmethod
    def only_with(cls) -> Mapping[str, Sequence[str]]:
        truncated = [name for name, each in MECHANISMS.items() if each.truncated]
        return {"terms": [BEST, *truncated]}

    @model_validator(mode="after")
    def _groups(self) -> Self:
        if self.groups and isinstance(self.bandwidth, PrivateBandwidth):
            raise ValueError("by: needs a stated bandwidth")
        if self.groups and self.mechanism != BEST and not MECHANISMS[self.mechanism].grouped:
            grouped = [name for name, each in MECHANISMS.items() if each.grouped]
            raise ValueError(f"by: needs one of the mechanisms {' and '.join(grouped)}")
        return self

    @property
    def gaussian(self) -> bool:
        return self.mechanism != BEST and MECHANISMS[self.mechanism].gaussian

    def build(self, survey: SurveyFacts, share: Budget) -> Release:
        release = super().build(survey, share)
        axis, *others = release.domain.axes
        points = isinstance(axis, Grid) and axis.points and not others
        if not self.groups and not (points and MECHANISMS[self.mechanism].grouped):
            return release
        domain = domain_of([*self.group_axes(survey.columns), *release.domain.axes])
        return self.make(DensityOfParts, domain, survey, share, density=release)

    def at(
        self, bandwidth: float | list[float], domain: Domain, survey: SurveyFacts, share: Budget
    ) -> Density:
        truncated: dict[str, Any] = {} if self.terms is None else {"terms": self.terms}
        return self.make(
            MECHANISMS[self.mechanism].release,
            domain,
            survey,
            share,
            bandwidths=one_each(bandwidth, self.columns),
            periodic=self.boundary == "periodic",
            **truncated,
        )

    @property
    def subject(self) -> str:
        return self.of_groups(listed(self.columns, " x "))
