"""Synthetic microdata from margins in a plan."""

from typing import Literal

from pydantic import Field, StrictStr

from dpcore.budget import Budget
from dpcore.releases.base import Release
from dpcore.releases.microdata import Microdata
from schemas.releases.base import CountsSection, SurveyFacts, listed
from schemas.releases.binning import Bins, binned_domain


class MicrodataSection(CountsSection):
    """Synthetic records that follow the private tables of all pairs of columns."""

    kind: Literal["microdata-margins"]
    columns: list[StrictStr] = Field(
        min_length=1, description="The columns of the synthetic records."
    )
    pairs: list[tuple[StrictStr, StrictStr]] | None = Field(
        default=None,
        description="Only these pairs of columns; fewer pairs have less noise each, but nothing "
        "is said of the others. Without it, all pairs.",
    )
    bins: Bins
    mechanism: Literal["discrete-laplace", "discrete-gaussian"] = "discrete-gaussian"

    @property
    def spends_beta(self) -> bool:
        return self.mechanism == "discrete-gaussian"

    def build(self, survey: SurveyFacts, share: Budget) -> Release:
        domain = binned_domain(survey.columns, self.columns, self.bins)
        return Microdata(
            self.name,
            domain,
            survey.rows,
            share,
            sets=self._positions(),
            noise=self.mechanism,
            adjacency=survey.adjacency,
        )

    def _positions(self) -> tuple[tuple[int, ...], ...]:
        """Empty stands for all pairs."""
        if self.pairs is None:
            return ()
        positions = []
        for i, pair in enumerate(self.pairs):
            if not set(pair) <= set(self.columns) or pair[0] == pair[1]:
                raise ValueError(f"pairs[{i}]: {list(pair)} must be two names from columns")
            positions.append(tuple(sorted(self.columns.index(name) for name in pair)))
        if len(set(positions)) != len(positions) or not positions:
            raise ValueError("pairs: one at least, and none twice")
        return tuple(positions)

    @property
    def title(self) -> str:
        return listed(self.columns, ", ")
