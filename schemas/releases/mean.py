"""Means in a plan."""

from typing import Any, ClassVar, Literal, Self

from pydantic import (
    Field,
    SerializerFunctionWrapHandler,
    StrictStr,
    model_serializer,
    model_validator,
)

from dpcore.budget import Budget
from dpcore.releases.base import Release
from dpcore.releases.numbers.mean import Mean
from dpcore.releases.numbers.ratio_mean import RatioMean
from schemas.releases.base import ReleaseSection, SurveyFacts, declared, domain_of


class MeanSection(ReleaseSection):
    """The mean of a numeric column, of all records that have a value or of each group of them."""

    words: ClassVar[str] = "Mean"
    kind: Literal["mean"]
    column: StrictStr = Field(description="A numeric column.")
    by: StrictStr | None = Field(
        default=None,
        description="A column of categories or whole numbers: one mean for each of its groups, at the"
        " price of one; for discrete-laplace.",
    )
    mechanism: Literal["discrete-laplace", "random-smooth-laplace"] = "discrete-laplace"

    @model_validator(mode="after")
    def _groups(self) -> Self:
        if self.by is not None and self.spends_gamma:
            raise ValueError("by: only with the mechanism discrete-laplace")
        return self

    @model_serializer(mode="wrap")
    def _brief(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Without ``by`` where there is none: the digests of such plans know nothing of it."""
        return {k: v for k, v in dump(self).items() if (k, v) != ("by", None)}

    @property
    def may_fail(self) -> bool:
        return self.spends_gamma

    @property
    def spends_gamma(self) -> bool:
        return self.mechanism == "random-smooth-laplace"

    def build(self, survey: SurveyFacts, share: Budget) -> Release:
        axis = declared(survey.columns, self.column, "column").axis(self.column)
        groups = [] if self.by is None else [declared(survey.columns, self.by, "by").axis(self.by)]
        domain = domain_of([*groups, axis])
        counted = self.by is not None or axis.nullable or not survey.adjacency.public_rows
        if counted and not self.spends_gamma:
            return RatioMean(self.name, domain, survey.rows, share, adjacency=survey.adjacency)
        return Mean(
            self.name, domain, survey.rows, share, self.spends_gamma, adjacency=survey.adjacency
        )

    @property
    def title(self) -> str:
        return self.column if self.by is None else f"{self.column} by {self.by}"
