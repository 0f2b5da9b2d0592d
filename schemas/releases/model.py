"""Directly measured models in a plan."""

from dataclasses import replace
from typing import Any, ClassVar, Literal

from dpcore.accounting.budget import Budget
from dpcore.releases.base import Release
from dpcore.releases.models.design import MOST_MEMBERS, SurveyDesign
from dpcore.releases.models.model import MeasuredModel
from schemas.releases.base import ReleaseSection, SurveyFacts, declared, domain_of
from schemas.releases.formulas import (
    SAME,
    WORD,
    FamilyName,
    WrittenFormula,
    checked_columns,
    terms_of,
)
from schemas.releases.resolution import axes_of


class ModelSection(ReleaseSection):
    """A linear, logistic or Poisson model: coefficients and their covariance, from clipped scores."""

    words: ClassVar[str] = "Model"
    includes_sampling: ClassVar[bool] = True
    kind: Literal["model"]
    formula: WrittenFormula
    family: FamilyName = "gaussian"
    mechanism: Literal["noisy-scores"] = "noisy-scores"

    def build(self, survey: SurveyFacts, share: Budget) -> Release:
        columns, names = survey.columns, checked_columns(self.formula, survey.columns)
        read = {name: declared(columns, name) for name in names}
        try:
            axes = domain_of(axes_of(self.formula, read)).axes
            terms, design = terms_of(self.formula, self.family, axes), _design(survey)
        except ValueError as error:
            asked = WORD.findall(self.formula.partition("~")[0])
            if SAME in str(error) and (
                found := [n for n in names if n in asked and columns[n].open]
            ):
                raise ValueError(
                    f"formula: {self.formula}: {' and '.join(found)} is open, and after the search this"
                    " condition may be the same for all records; state bounds or categories"
                ) from None
            raise
        own = {"formula": self.formula, "family": self.family, "terms": terms, "design": design}
        # The design adds up the records of a unit, so each unit is one record of the domain.
        units = replace(survey, adjacency=replace(survey.adjacency, most=1))
        return self.make(MeasuredModel, design.domain(axes), units, share, **own)

    @property
    def by_design(self) -> bool:
        return True

    @property
    def subject(self) -> str:
        return self.formula


def _design(survey: SurveyFacts) -> SurveyDesign:
    """The survey's design. With a design, the domain counts units instead of records."""
    members = survey.adjacency.most
    if members > MOST_MEMBERS:
        raise ValueError(
            f"mechanism: noisy-scores takes at most {MOST_MEMBERS} records of a unit, but max_rows is"
            f" {members}; write a smaller max_rows, or use moments"
        )
    own: dict[str, Any] = {"members": members, "unit": survey.unit}
    if survey.weights:
        steps, usual = survey.weights.most_steps, survey.weights.total_steps / survey.rows
        own |= {"steps": steps, "usual": min(max(usual, 1.0), float(steps))}
        own |= {"step": float(survey.weights.step), "weight": survey.weights.column}
    own["drawn_clusters"] = survey.clusters
    for key, name in (("strata", survey.strata), ("clusters", survey.cluster)):
        if name:
            own[key] = declared(survey.columns, name, key).axis(name)
    return SurveyDesign(**own)
