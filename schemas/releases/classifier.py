"""Classifiers in a plan."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, StrictFloat, StrictInt, StrictStr, field_validator, model_validator

from dpcore.accounting.budget import Budget
from dpcore.domain.axes import Axis, Categories, Grid
from dpcore.releases.base import Release
from dpcore.releases.machines.classifier import Classifier, LossName
from dpcore.releases.machines.gradients import GradientClassifier, counts_worth
from schemas.document import Section
from schemas.releases.base import (
    Columns,
    Product,
    ReleaseSection,
    SurveyFacts,
    declared,
    domain_of,
    listed,
    one_each,
)
from schemas.releases.private import Regularisation, at_regularisation, stated
from schemas.survey.columns import CategoricalColumn, Column, IntegerColumn

Width = Annotated[float, Field(gt=0.01, le=100)]

COARSE = 128
"""The number of cells of a numeric column in a classifier by noisy gradients."""


class Label(Section):
    """The predicted event: some categories of a column, or values of at least a threshold."""

    column: StrictStr = Field(description="The predicted column.")
    positive: list[str | bool | StrictInt | StrictFloat] | None = Field(
        default=None, description="For a categorical column, the categories that count as positive."
    )
    at_least: float | None = Field(
        default=None,
        description="For a numeric column, the smallest value that counts as positive.",
    )

    @model_validator(mode="after")
    def _one_of(self) -> Self:
        if (self.positive is None) == (self.at_least is None):
            raise ValueError("state either positive (categories) or at_least (a number)")
        return self

    def axis(self, columns: Columns) -> tuple[Axis, tuple[int, ...]]:
        """The label's axis and the sign of each of its codes."""
        column = declared(columns, self.column, "label.column")
        if isinstance(column, CategoricalColumn):
            if self.positive is None:
                raise ValueError("label: a categorical column needs positive, a list of categories")
            axis = Categories(self.column, tuple(column.categories), column.nullable)
            unknown = [c for c in self.positive if c not in axis.categories]
            if unknown:
                known = listed([repr(category) for category in axis.categories], ", ")
                quotes = "; yes and no are truth values unless they are in quotes"
                raise ValueError(
                    f"label.positive: {unknown[0]!r} is not a category of {self.column} ({known})"
                    + quotes * isinstance(unknown[0], bool)
                )
            if not set(self.positive) < set(axis.categories) or not self.positive:
                raise ValueError("label.positive: must be some of the categories, but not all")
            return axis, tuple(1 if c in self.positive else -1 for c in axis.categories)
        if self.at_least is None:
            raise ValueError("label: a numeric column needs at_least, a number")
        lower = column.bounds[0]
        upper = column.bounds[1] + isinstance(column, IntegerColumn)
        if isinstance(column, IntegerColumn) and not self.at_least.is_integer():
            raise ValueError("label.at_least: must be a whole number, like the column")
        if not lower < self.at_least < upper:
            raise ValueError("label.at_least: must lie inside the bounds of the column")
        bins = column.bins(self.column, [lower, self.at_least, upper])
        # A point mass adds a cell, on one side of the threshold.
        return bins, tuple(-1 if edge < self.at_least else 1 for edge in bins.edges[:-1])


class ClassifierSection(ReleaseSection):
    """A classifier: smooth functions fitted by noisy gradients, or a machine with a Gaussian kernel."""

    words: ClassVar[str] = "Classifier"
    product: ClassVar[Product] = "Machine learning model"
    kind: Literal["classifier"]
    features: list[StrictStr] = Field(
        min_length=1, max_length=20, description="The columns used for prediction."
    )
    label: Label
    bandwidth: Width | list[Width] | None = Field(
        default=None,
        description="Bandwidth of the Gaussian kernel, one for all features or one for"
        " each. Numbers are scaled to [0, 1]; different categories have distance 1.",
    )
    regularisation: Regularisation | None = Field(
        default=None,
        description="The number lambda in mean loss + lambda ||f||^2, or a method that draws lambda"
        " from the records. A larger lambda needs less noise.",
    )
    loss: LossName = Field(
        default="hinge",
        description="logistic gives log-odds, hinge a sharper boundary.",
    )
    frequencies: StrictInt = Field(
        default=256, ge=1, le=1024, description="Half the dimension of the feature space."
    )
    mechanism: Literal["gaussian-process", "noisy-gradients"] = "gaussian-process"
    weights: Literal["balanced"] | float = Field(
        default=1.0,
        exclude_if=lambda weight: weight == 1,
        description="The weight of a positive record relative to a negative record. balanced: both sides"
        " have the same total weight, by their noisy counts.",
    )

    @field_validator("weights", mode="before")
    @classmethod
    def _balanced_or_a_number(cls, given: Any) -> Any:
        number = isinstance(given, int | float) and not isinstance(given, bool)
        if given == "balanced" or (number and 0.001 <= given <= 1000):
            return given
        raise ValueError("state balanced, or a number from 0.001 to 1000")

    @classmethod
    def only_with(cls) -> Mapping[str, Sequence[str]]:
        of_kernels = ("bandwidth", "regularisation", "loss", "frequencies")
        return {key: ["gaussian-process"] for key in of_kernels} | {"weights": ["noisy-gradients"]}

    @model_validator(mode="after")
    def _stated(self) -> Self:
        for name in ("bandwidth", "regularisation"):
            if self.mechanism == "gaussian-process" and getattr(self, name) is None:
                raise ValueError(
                    f"{name}: missing; state it, or use mechanism: noisy-gradients without it"
                )
        return self

    def build(self, survey: SurveyFacts, share: Budget) -> Release:
        if self.label.column in self.features:
            raise ValueError("label.column: is also a feature")
        axis, signs = self.label.axis(survey.columns)
        columns = {name: declared(survey.columns, name, "features") for name in self.features}
        if len(columns) < len(self.features):
            raise ValueError("features: a column is listed twice")
        if self.mechanism != "gaussian-process":
            domain = domain_of([*(_coarse(name, c) for name, c in columns.items()), axis])
            release = self.make(GradientClassifier, domain, survey, share, signs=signs)
            weight = None if self.weights == "balanced" else self.weights
            return replace(release, counted=counts_worth(release), weight=weight)
        assert self.bandwidth is not None
        assert self.regularisation is not None
        machine = self.make(
            Classifier,
            domain_of([*(column.axis(name) for name, column in columns.items()), axis]),
            survey,
            share,
            bandwidths=one_each(self.bandwidth, self.features),
            regularisation=stated(self.regularisation),
            frequencies=self.frequencies,
            signs=signs,
            loss_name=self.loss,
        )
        return at_regularisation(machine, self.regularisation, share)

    @property
    def subject(self) -> str:
        return f"{self.label.column} from {listed(self.features, ', ')}"


def _coarse(name: str, column: Column) -> Axis:
    """The axis of a column. A numeric column without levels gets at most ``COARSE`` cells."""
    fine = column.axis(name)
    if isinstance(column, CategoricalColumn) or column.listed is not None or fine.size <= COARSE:
        return fine
    if isinstance(fine, Grid) and not fine.integer and not column.point_masses:
        return replace(fine, cells=COARSE)
    lower, upper = column.bounds[0], column.bounds[1] + isinstance(column, IntegerColumn)
    edges = [lower + (upper - lower) * i / COARSE for i in range(COARSE)] + [upper]
    whole = isinstance(column, IntegerColumn)
    return column.bins(name, [float(round(edge)) for edge in edges] if whole else edges)
