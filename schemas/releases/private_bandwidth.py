"""Bandwidths of densities and functions in a plan, which may be drawn from the records."""

from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, field_validator

from dpcore.accounting.budget import Budget
from dpcore.domain.domain import Domain
from dpcore.releases.base import Release
from dpcore.releases.densities.density import Density
from dpcore.releases.densities.function import SmoothFunction
from dpcore.releases.densities.tuned import TunedDensity
from schemas.document import Section
from schemas.numbers import WrittenRational
from schemas.releases.base import SurveyFacts
from schemas.releases.transformed import TransformedSection


class PrivateBandwidth(Section):
    """Silverman's rule on a private interquartile range, paid from the share of the release."""

    private: Literal["quantiles"] = Field(
        description="quantiles: both quartiles of each column by the exponential mechanism, alpha alone."
    )
    share: WrittenRational = Field(
        default=Fraction(1, 5),
        description="The part of the release's alpha that it takes; with"
        " Gaussian noise, of its rho.",
    )
    smallest: float = Field(
        ge=0.002,
        le=1,
        description="The least bandwidth, a fraction of each column's range; it is used where the"
        " records give none.",
    )

    @field_validator("share")
    @classmethod
    def _a_part(cls, share: Fraction) -> Fraction:
        if not Fraction(1, 1000) <= share <= Fraction(999, 1000):
            raise ValueError("must lie between 0.001 and 0.999")
        return share

    def tune(self, smooth: Density | SmoothFunction, share: Budget) -> TunedDensity:
        """The release, whose bandwidth is the smallest so far, at one that is drawn first."""
        own = smooth.name, smooth.domain, smooth.rows, share, smooth, self.share
        return TunedDensity(*own, adjacency=smooth.adjacency)


SmoothBandwidth = Annotated[
    float | list[float] | PrivateBandwidth,
    Field(
        description="Standard deviation of the Gaussian kernel, as a fraction of the column's range"
        " (0.05 of a range of 200 is 10), one for all columns or one each; or, for one or two"
        " columns, how it is drawn from the records."
    ),
]


class SmoothSection(TransformedSection):
    """A section of a smooth density of some columns."""

    if TYPE_CHECKING:  # each kind states its own
        bandwidth: SmoothBandwidth

    def at(
        self, bandwidth: float | list[float], domain: Domain, survey: SurveyFacts, share: Budget
    ) -> Density | SmoothFunction:
        """The release at this bandwidth."""
        raise NotImplementedError

    def build(self, survey: SurveyFacts, share: Budget) -> Release:
        domain, private = self.domain(survey.columns), self.bandwidth
        if not isinstance(private, PrivateBandwidth):
            return self.at(private, domain, survey, share)
        return private.tune(self.at(private.smallest, domain, survey, share), share)
