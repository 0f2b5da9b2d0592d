"""Synthetic records of one column, near the exact ones, in a plan."""

from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal, Self

from pydantic import Field, StrictInt, StrictStr, model_validator

from dpcore.accounting.budget import Budget
from dpcore.releases.base import Release
from papers.near_records.release import NearMean, NearRecords, NearSeries
from schemas.releases.base import Product, ReleaseSection, SurveyFacts, declared, domain_of
from schemas.releases.binning import Bins, binned_domain


class NearRecordsSection(ReleaseSection):
    """Synthetic records of one column, whose distribution is near the exact one."""

    words: ClassVar[str] = "Synthetic records near the exact ones"
    product: ClassVar[Product] = "Synthetic data"
    kind: Literal["near-records"]
    column: StrictStr = Field(description="A numeric column without nulls.")
    bins: Bins
    draws: StrictInt = Field(
        ge=1,
        le=10**4,
        description="Number of records to draw. About n^(2/3) is most accurate; fewer are faster.",
    )
    mechanism: Literal["ks-exponential", "series-exponential", "mean-exponential"] = Field(
        default="ks-exponential",
        description="Which summary of the records must be near the exact one: the distribution"
        " function, the first terms of a cosine series, or the mean. Most accurate are about"
        " n^(1/2) draws for a series, and 1 for the mean.",
    )
    terms: StrictInt | None = Field(
        default=None,
        ge=1,
        le=16,
        description="Terms of the cosine series.",
    )

    @classmethod
    def only_with(cls) -> Mapping[str, Sequence[str]]:
        return {
            "terms": ["series-exponential"],
            "bins": ["ks-exponential", "series-exponential"],
        }

    @model_validator(mode="after")
    def _stated(self) -> Self:
        if self.mechanism == "series-exponential" and self.terms is None:
            raise ValueError("terms: missing; series-exponential needs their number")
        return self

    def build(self, survey: SurveyFacts, share: Budget) -> Release:
        if self.mechanism == "mean-exponential":
            own = domain_of([declared(survey.columns, self.column).axis(self.column)])
            return self.make(NearMean, own, survey, share, draws=self.draws)
        domain = binned_domain(survey.columns, [self.column], self.bins)
        if self.terms is None:
            return self.make(NearRecords, domain, survey, share, draws=self.draws)
        return self.make(NearSeries, domain, survey, share, draws=self.draws, terms=self.terms)

    @property
    def subject(self) -> str:
        return self.column
