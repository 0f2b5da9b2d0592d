"""Synthetic records drawn from a smoothed histogram, in a plan."""

from typing import Literal

from pydantic import Field, StrictInt, StrictStr

from dpcore.budget import Budget
from dpcore.releases.base import Release
from dpcore.releases.sampled_histogram import SampledHistogram
from schemas.releases.base import Columns, ReleaseSection, listed
from schemas.releases.binning import Bins, binned_domain


class SampledHistogramSection(ReleaseSection):
    """Synthetic records drawn from the counts of every combination of some columns."""

    kind: Literal["sampled-histogram"]
    columns: list[StrictStr] = Field(min_length=1, description="The columns of the records.")
    bins: Bins
    draws: StrictInt = Field(
        ge=1, le=10**7, description="Records to draw; more of them need more public ones mixed in."
    )
    mechanism: Literal["smoothed-histogram", "dirichlet-multinomial"] = "dirichlet-multinomial"

    def build(self, columns: Columns, rows: int, share: Budget) -> Release:
        domain = binned_domain(columns, self.columns, self.bins)
        return SampledHistogram(self.name, domain, rows, share, self.draws, self.mechanism)

    @property
    def title(self) -> str:
        return listed(self.columns, " x ")
