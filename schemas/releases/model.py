"""Models that are measured directly, in a plan."""

from dataclasses import replace
from typing import ClassVar, Literal

from dpcore.accounting.budget import Budget
from dpcore.domain.axes import Axis, Grid
from dpcore.releases.base import Release
from dpcore.releases.models.model import MeasuredModel
from schemas.releases.base import Product, ReleaseSection, SurveyFacts, declared, domain_of
from schemas.releases.formulas import FamilyName, WrittenFormula, checked_columns, terms_of
from schemas.survey.columns import Column, ContinuousColumn


class ModelSection(ReleaseSection):
    """A linear, logistic or Poisson model: coefficients and their covariance, from clipped scores."""

    words: ClassVar[str] = "Model"
    product: ClassVar[Product] = "Summary statistics"
    kind: Literal["model"]
    formula: WrittenFormula
    family: FamilyName = "gaussian"
    mechanism: Literal["noisy-scores"] = "noisy-scores"

    def build(self, survey: SurveyFacts, share: Budget) -> Release:
        names = checked_columns(self.formula, survey.columns)
        domain = domain_of([_axis(declared(survey.columns, name), name) for name in names])
        terms = terms_of(self.formula, self.family, domain.axes)
        own = {"formula": self.formula, "family": self.family, "terms": terms}
        return self.make(MeasuredModel, domain, survey, share, **own)

    @property
    def subject(self) -> str:
        return self.formula


def _axis(column: Column, name: str) -> Axis:
    """The fine cells of a column; point masses are values of their own."""
    axis = column.axis(name)
    if isinstance(column, ContinuousColumn) and isinstance(axis, Grid):
        return replace(axis, points=tuple(map(float, column.point_masses)))
    return axis
