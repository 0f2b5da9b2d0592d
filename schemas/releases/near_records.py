"""Synthetic records of one column by Kolmogorov-Smirnov distance, in a plan."""

from typing import Literal

from pydantic import Field, StrictInt, StrictStr

from dpcore.budget import Budget
from dpcore.releases.base import Release
from dpcore.releases.near_records import NearRecords
from schemas.releases.base import ReleaseSection, SurveyFacts
from schemas.releases.binning import Bins, binned_domain


class NearRecordsSection(ReleaseSection):
    """Synthetic records of one column, whose distribution function is near the exact one."""

    kind: Literal["near-records"]
    column: StrictStr = Field(description="A numeric column without nulls.")
    bins: Bins
    draws: StrictInt = Field(
        ge=1, le=10**4, description="Records to draw; about n^(2/3) are best, fewer are faster."
    )
    mechanism: Literal["ks-exponential"] = "ks-exponential"

    def build(self, survey: SurveyFacts, share: Budget) -> Release:
        domain = binned_domain(survey.columns, [self.column], self.bins)
        return NearRecords(
            self.name, domain, survey.rows, share, self.draws, adjacency=survey.adjacency
        )

    @property
    def title(self) -> str:
        return self.column
