"""Kernel regressions in a plan."""

from typing import ClassVar, Literal

from pydantic import Field, StrictInt, StrictStr

from dpcore.accounting.budget import Budget
from dpcore.releases.base import Release
from dpcore.releases.machines.regression import Regression
from schemas.releases.base import (
    Product,
    ReleaseSection,
    SurveyFacts,
    declared,
    domain_of,
    listed,
    one_each,
)
from schemas.releases.classifier import Width
from schemas.releases.private import Regularisation, at_regularisation, stated


class RegressionSection(ReleaseSection):
    """A regression of a number on other columns, with a Gaussian kernel."""

    words: ClassVar[str] = "Regression"
    product: ClassVar[Product] = "Machine learning model"
    kind: Literal["regression"]
    features: list[StrictStr] = Field(
        min_length=1, max_length=20, description="The columns used for prediction."
    )
    target: StrictStr = Field(description="The predicted column, scaled by its bounds.")
    bandwidth: Width | list[Width] = Field(
        description="Bandwidth of the Gaussian kernel, one for all features or one for each. Numbers"
        " are scaled to [0, 1]; different categories have distance 1.",
    )
    regularisation: Regularisation = Field(
        description="The number lambda in mean loss + lambda ||f||^2, or a method that draws lambda"
        " from the records. A larger lambda needs less noise."
    )
    threshold: float = Field(
        default=0.1,
        ge=0.001,
        le=1,
        description="A fraction of the target's range. Larger errors count linearly (Huber's loss),"
        " and the noise is proportional to this fraction.",
    )
    frequencies: StrictInt = Field(
        default=256, ge=1, le=1024, description="Half the dimension of the feature space."
    )
    mechanism: Literal["gaussian-process"] = "gaussian-process"

    def build(self, survey: SurveyFacts, share: Budget) -> Release:
        if self.target in self.features:
            raise ValueError("target: is also a feature")
        axes = [declared(survey.columns, name, "features").axis(name) for name in self.features]
        target = declared(survey.columns, self.target, "target").axis(self.target)
        machine = self.make(
            Regression,
            domain_of([*axes, target]),
            survey,
            share,
            bandwidths=one_each(self.bandwidth, self.features),
            regularisation=stated(self.regularisation),
            frequencies=self.frequencies,
            threshold=self.threshold,
        )
        return at_regularisation(machine, self.regularisation, share)

    @property
    def subject(self) -> str:
        return f"{self.target} on {listed(self.features, ', ')}"
