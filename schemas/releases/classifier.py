"""Classifiers in a plan."""

from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, StrictFloat, StrictInt, StrictStr, model_validator

from dpcore.budget import Budget
from dpcore.domain import Axis, Categories
from dpcore.releases.base import Release
from dpcore.releases.machines.classifier import Classifier, LossName
from schemas.columns import CategoricalColumn, IntegerColumn
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

Width = Annotated[float, Field(gt=0.01, le=100)]


class Label(Section):
    """What a classifier predicts: categories of a column, or values from a threshold up."""

    column: StrictStr = Field(description="The column that it predicts.")
    positive: list[str | bool | StrictInt | StrictFloat] | None = Field(
        default=None, description="Of a categorical column, the categories on the positive side."
    )
    at_least: float | None = Field(
        default=None, description="Of a numeric column, the least value on the positive side."
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
            if not set(self.positive) < set(axis.categories) or not self.positive:
                raise ValueError("label.positive: must be some of the categories, but not all")
            return axis, tuple(1 if c in self.positive else -1 for c in axis.categories)
        if self.at_least is None:
            raise ValueError("label: a numeric column needs at_least, a number")
        lower = column.bounds[0]
        upper = column.bounds[1] + isinstance(column, IntegerColumn)
        if isinstance(column, IntegerColumn) and not self.at_least.is_integer():
            raise ValueError("label.at_least: must be a whole number, as the column has")
        if not lower < self.at_least < upper:
            raise ValueError("label.at_least: must lie inside the bounds of the column")
        bins = column.bins(self.column, [lower, self.at_least, upper])
        # A point mass is a cell more, on one side.
        return bins, tuple(-1 if edge < self.at_least else 1 for edge in bins.edges[:-1])


class ClassifierSection(ReleaseSection):
    """A support vector machine, or logistic regression, with a Gaussian kernel."""

    words: ClassVar[str] = "Classifier"
    product: ClassVar[Product] = "Machine learning model"
    kind: Literal["classifier"]
    features: list[StrictStr] = Field(
        min_length=1, max_length=20, description="The columns that it predicts from."
    )
    label: Label
    bandwidth: Width | list[Width] = Field(
        description="Of the Gaussian kernel, numbers scaled to [0, 1] and different categories at "
        "distance 1: one for all features, or one for each.",
    )
    regularisation: float = Field(
        gt=0, le=1, description="lambda in mean loss + lambda ||f||^2; less noise if larger."
    )
    loss: LossName = Field(
        default="hinge", description="logistic gives log-odds, hinge the sharper boundary."
    )
    frequencies: StrictInt = Field(
        default=256, ge=1, le=1024, description="Half the dimension of the feature space."
    )
    mechanism: Literal["gaussian-process"] = "gaussian-process"

    @property
    def gaussian(self) -> bool:
        return True

    def build(self, survey: SurveyFacts, share: Budget) -> Release:
        if self.label.column in self.features:
            raise ValueError("label.column: is also a feature")
        axis, signs = self.label.axis(survey.columns)
        axes = [declared(survey.columns, name, "features").axis(name) for name in self.features]
        return Classifier(
            self.name,
            domain_of([*axes, axis]),
            survey.rows,
            share,
            one_each(self.bandwidth, self.features),
            self.regularisation,
            self.frequencies,
            signs,
            self.loss,
            adjacency=survey.adjacency,
        )

    @property
    def title(self) -> str:
        return f"{self.label.column} from {listed(self.features, ', ')}"
