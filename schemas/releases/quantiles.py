"""Quantiles in a plan."""

from typing import ClassVar, Literal

from pydantic import Field, StrictStr

from dpcore.budget import Budget
from dpcore.releases.base import Release
from dpcore.releases.numbers.quantiles import Quantiles
from schemas.numbers import WrittenRational
from schemas.releases.base import ReleaseSection, SurveyFacts, declared, domain_of


class QuantilesSection(ReleaseSection):
    """Quantiles of a numeric column."""

    words: ClassVar[str] = "Quantiles"
    kind: Literal["quantiles"]
    column: StrictStr = Field(description="A numeric column.")
    levels: list[WrittenRational] = Field(
        min_length=1,
        max_length=100,
        description='Which quantiles, ascending: ["0.25", "0.5", "0.75"]. Fewer are more accurate.',
    )
    mechanism: Literal["exponential"] = "exponential"

    def build(self, survey: SurveyFacts, share: Budget) -> Release:
        domain = domain_of([declared(survey.columns, self.column, "column").axis(self.column)])
        return Quantiles(
            self.name, domain, survey.rows, share, tuple(self.levels), adjacency=survey.adjacency
        )

    @property
    def title(self) -> str:
        return self.column
