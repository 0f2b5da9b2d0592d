"""Synthetic records drawn from a smoothed histogram, in a plan."""

from typing import ClassVar, Literal

from pydantic import Field, StrictInt, StrictStr

from dpcore.accounting.budget import Budget
from dpcore.releases.base import Release
from papers.sampled_histogram.release import SampledHistogram
from schemas.releases.base import Product, ReleaseSection, SurveyFacts, listed
from schemas.releases.binning import Bins, binned_domain


class SampledHistogramSection(ReleaseSection):
    """Synthetic records drawn from the counts of every combination of some columns."""

    words: ClassVar[str] = "Synthetic records from a smoothed histogram"
    product: ClassVar[Product] = "Synthetic data"
    kind: Literal["sampled-histogram"]
    columns: list[StrictStr] = Field(min_length=1, description="The columns of the records.")
    bins: Bins
    draws: StrictInt = Field(
        ge=1,
        le=10**7,
        description="Number of records to draw. More draws mix in more public, uniform records.",
    )
    mechanism: Literal["smoothed-histogram", "dirichlet-multinomial"] = "dirichlet-multinomial"

    def build(self, survey: SurveyFacts, share: Budget) -> Release:
        domain = binned_domain(survey.columns, self.columns, self.bins)
        own = {"draws": self.draws, "urn": self.mechanism}
        return self.make(SampledHistogram, domain, survey, share, **own)

    @property
    def subject(self) -> str:
        return listed(self.columns, " x ")
