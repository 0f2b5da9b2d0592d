"""Histograms in a plan."""

from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal

from pydantic import Field, StrictInt, StrictStr

from dpcore.accounting.budget import Budget
from dpcore.releases.base import Release
from dpcore.releases.counts.histogram import Histogram
from dpcore.releases.counts.random_histogram import RandomHistogram
from dpcore.releases.counts.thresholded import ThresholdedHistogram
from schemas.document import absent
from schemas.releases.base import CountingSection, SurveyFacts, listed
from schemas.releases.binning import Bins, binned_domain


class HistogramSection(CountingSection):
    """Counts of all combinations of some columns."""

    words: ClassVar[str] = "Histogram"
    kind: Literal["histogram"]
    columns: list[StrictStr] = Field(
        min_length=1, description="The columns whose combinations are counted."
    )
    bins: Bins
    mechanism: Literal[
        "discrete-laplace",
        "thresholded-laplace",
        "stability-laplace",
        "random-zero-cells",
        "random-low-counts",
    ] = "discrete-laplace"
    occupied: StrictInt | None = Field(
        default=None,
        exclude_if=absent,
        description="An upper bound for the number of cells with records, if it is public (never"
        " counted in the data). It may lower the threshold.",
    )

    @classmethod
    def only_with(cls) -> Mapping[str, Sequence[str]]:
        return {"occupied": ["thresholded-laplace"]}

    @property
    def may_fail(self) -> bool:
        return self.mechanism == "stability-laplace"

    @property
    def spends_gamma(self) -> bool:
        return self.mechanism in ("random-zero-cells", "random-low-counts")

    def build(self, survey: SurveyFacts, share: Budget) -> Release:
        domain = binned_domain(survey.columns, self.columns, self.bins)
        if self.spends_gamma:
            exact_below = 1 if self.mechanism == "random-zero-cells" else None
            return self.make(RandomHistogram, domain, survey, share, exact_below=exact_below)
        if self.mechanism == "discrete-laplace":
            return self.make(Histogram, domain, survey, share)
        return self.make(ThresholdedHistogram, domain, survey, share, occupied=self.occupied)

    @property
    def subject(self) -> str:
        return listed(self.columns, " x ")
