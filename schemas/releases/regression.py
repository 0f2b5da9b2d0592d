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
        min_length=1, max_length=20, description="The columns that it predicts from."
    )
    target: StrictStr = Field(description="The column that is predicted; its bounds are its scale.")
    bandwidth: Width | list[Width] = Field(
        description="Bandwidth of the Gaussian kernel, for numbers scaled to [0, 1] and different"
        " categories at distance 1: one for all features, or one for each.",
    )
    regularisation: Regularisation = Field(
        description="lambda in mean loss + lambda ||f||^2; a larger one needs less noise. Or how it is"
        " drawn from"
        " the records."
    )
    threshold: float = Field(
        default=0.1,
        ge=0.001,
        le=1,
        description="A fraction of the target's range: larger errors count linearly (Huber's loss),"
        " and the noise is proportional to it.",
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
