"""Mean curves in a plan."""

from typing import ClassVar, Literal

from pydantic import Field, StrictStr

from dpcore.accounting.budget import Budget
from dpcore.releases.base import Release
from dpcore.releases.numbers.mean_curve import MeanCurve
from dpcore.suggestion import suggestion
from schemas.releases.base import OF_A_CURVE, GroupedSection, SurveyFacts, declared, domain_of


class MeanCurveSection(GroupedSection):
    """The mean of the records' curves, with a simultaneous band for all times."""

    words: ClassVar[str] = "Mean curve"
    without_replicates: ClassVar[str] = OF_A_CURVE
    kind: Literal["mean-curve"]
    curve: StrictStr = Field(description="One of the plan's `curves`.")
    mechanism: Literal["discrete-gaussian"] = "discrete-gaussian"

    def build(self, survey: SurveyFacts, share: Budget) -> Release:
        if self.curve not in survey.curves:
            raise ValueError(
                f"curve: the plan has no {self.curve!r} among its `curves`"
                f"{suggestion(self.curve, survey.curves)}"
            )
        curve = survey.curves[self.curve]
        place = f"curve: {self.curve}"
        columns = {name: declared(survey.columns, name, place) for name in curve.columns}
        if curve.step_at_most is not None and any(column.open for column in columns.values()):
            raise ValueError(f"{place}: step_at_most needs stated bounds, not open bounds")
        points = [column.axis(name) for name, column in columns.items()]
        domain = domain_of([*self.group_axes(survey.columns), *points])
        own = {"times": curve.times, "step_at_most": curve.step_at_most}
        return self.make(MeanCurve, domain, survey, share, **own)

    @property
    def subject(self) -> str:
        return self.of_groups(self.curve)
