"""Heaping in a plan."""

from fractions import Fraction
from typing import ClassVar, Literal

from pydantic import Field, StrictStr

from dpcore.accounting.budget import Budget
from dpcore.domain.step_values import StepValues, coarsened
from dpcore.releases.base import Release
from dpcore.releases.counts.heaping import MOST_VALUES, Heaping
from schemas.releases.base import ReleaseSection, SurveyFacts, declared, domain_of
from schemas.survey.columns import CategoricalColumn


class HeapingSection(ReleaseSection):
    """Finds the most frequent values of columns, and the roundness of all other values."""

    words: ClassVar[str] = "Shared and round values"
    without_replicates: ClassVar[str] = (
        "values that passed a threshold, so do not add them up, and counts by roundness."
    )
    kind: Literal["heaping"]
    columns: list[StrictStr] = Field(
        min_length=1, description="Columns of whole numbers, or of multiples of a `step`."
    )
    mechanism: Literal["discrete-gaussian"] = "discrete-gaussian"

    def build(self, survey: SurveyFacts, share: Budget) -> Release:
        values = coarsened([self._steps_of(survey, name) for name in self.columns], MOST_VALUES)
        domain = domain_of([each.axis for each in values])
        return self.make(Heaping, domain, survey, share, values=values)

    def _steps_of(self, survey: SurveyFacts, name: str) -> StepValues:
        column = declared(survey.columns, name)
        if isinstance(column, CategoricalColumn) or column.listed is not None:
            raise ValueError(f"columns: {name!r} is not a column of numbers with bounds")
        step = column.written or (Fraction(1) if column.type == "integer" else None)
        if step is None:
            raise ValueError(
                f"columns: values of {name!r} may be any real numbers; state a `step` of which all"
                " values are multiples"
            )
        return StepValues.of(name, column.bounds, step, column.nullable)
