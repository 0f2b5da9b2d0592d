"""Quantiles in a plan."""

from typing import ClassVar, Literal

from pydantic import Field

from dpcore.accounting.budget import Budget
from dpcore.releases.base import Release
from dpcore.releases.numbers.quantiles import ColumnQuantiles
from schemas.numbers import WrittenRational
from schemas.releases.base import GroupsSection, SurveyFacts, WeightedSection


class QuantilesSection(GroupsSection, WeightedSection):
    """Quantiles of a numeric column, over all records with a value or in each group."""

    words: ClassVar[str] = "Quantiles"
    kind: Literal["quantiles"]
    levels: list[WrittenRational] = Field(
        min_length=1,
        max_length=100,
        description='Levels, ascending: ["0.25", "0.5", "0.75"]. Fewer quantiles are more accurate.',
    )
    mechanism: Literal["exponential"] = "exponential"

    def build(self, survey: SurveyFacts, share: Budget) -> Release:
        domain, levels = self.domain(survey.columns), tuple(self.levels)
        return self.make(ColumnQuantiles, domain, survey, share, levels=levels, by=len(self.groups))
