"""The section of a single count in a plan."""

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, ClassVar, Literal, NamedTuple, Self

import numpy as np
from pydantic import Field, StrictBool, StrictFloat, StrictInt, StrictStr, model_validator

from dpcore.accounting.budget import Budget
from dpcore.domain.axes import Axis, Categories, Grid
from dpcore.releases.base import Release
from dpcore.releases.counts.count import Count, SingleCount
from schemas.document import Section
from schemas.numbers import plain
from schemas.releases.base import ReleaseSection, SurveyFacts, declared, domain_of, listed
from schemas.releases.named import one_of

LARGEST_GRID = 2**20


class Condition(Section):
    """The condition on the counted records: some categories, or numbers in an interval."""

    column: StrictStr = Field(description="The column of the condition.")
    categories: list[StrictStr | StrictBool | StrictInt | StrictFloat] | None = Field(
        default=None, description="The categories that count."
    )
    at_least: float | None = Field(
        default=None, description="The smallest counted number; an edge of the column's grid."
    )
    below: float | None = Field(
        default=None,
        description="Only smaller numbers are counted; an edge of the column's grid.",
    )

    @model_validator(mode="after")
    def _one_of(self) -> Self:
        if (self.categories is None) == (self.at_least is None and self.below is None):
            raise ValueError("state either categories, or at_least, below or both")
        return self

    @property
    def text(self) -> str:
        """The condition in words."""
        if self.categories is not None:
            return f"{self.column} = {listed([str(c) for c in self.categories], ' or ')}"
        if self.below is None:
            return f"{self.column} of {plain(self.at_least or 0.0)} or more"
        if self.at_least is None:
            return f"{self.column} below {plain(self.below)}"
        return f"{self.column} of {plain(self.at_least)} or more, but below {plain(self.below)}"


class CountMechanism(NamedTuple):
    """A mechanism for counts: its release, and whether it has a failure probability (which costs beta),
    has a prior, or is of random differential privacy."""

    release: Callable[..., SingleCount]
    may_fail: bool = False
    has_prior: bool = False
    spends_gamma: bool = False


MECHANISMS = {"discrete-laplace": CountMechanism(Count, has_prior=True)}


class CountSection(ReleaseSection):
    """The number of records that satisfy a condition."""

    words: ClassVar[str] = "Count"
    kind: Literal["count"]
    condition: Condition
    loss: Literal["absolute", "squared", "zero-one"] = Field(
        default="absolute", description="The loss that the optimal mechanism minimises."
    )
    prior: Literal["uniform"] | float = Field(
        default="uniform",
        description="The prior distribution of the count: uniform, or for a number p, binomial with that"
        " proportion of the rows.",
    )
    mechanism: Annotated[str, *one_of(lambda: MECHANISMS)] = "discrete-laplace"

    @classmethod
    def only_with(cls) -> Mapping[str, Sequence[str]]:
        return {"prior": [name for name, each in MECHANISMS.items() if each.has_prior]}

    @property
    def may_fail(self) -> bool:
        return MECHANISMS[self.mechanism].may_fail

    @property
    def spends_gamma(self) -> bool:
        return MECHANISMS[self.mechanism].spends_gamma

    def build(self, survey: SurveyFacts, share: Budget) -> Release:
        place = self.condition.column
        axis = declared(survey.columns, place, "condition.column").axis(place)
        domain = domain_of([axis])
        if isinstance(axis, Categories) != (self.condition.categories is not None):
            raise ValueError(
                "condition: state categories for a column of categories or levels, at_least or below"
                " for other numbers"
            )
        counted = self._categories(axis) if isinstance(axis, Categories) else self._interval(axis)
        prior = {} if isinstance(self.prior, str) else {"proportion": self.prior}
        own = {"counted": counted, "loss": self.loss, "what": self.subject, **prior}
        return self.make(MECHANISMS[self.mechanism].release, domain, survey, share, **own)

    def _categories(self, axis: Categories) -> tuple[int, ...]:
        wanted = self.condition.categories or []
        unknown = [c for c in wanted if c not in axis.categories]
        if unknown:
            raise ValueError(f"condition.categories: {unknown} are not categories of the column")
        return tuple(i for i, c in enumerate(axis.categories) if c in wanted)

    def _interval(self, axis: Axis) -> tuple[int, ...]:
        """The codes of the cells of the column's grid from ``at_least`` to ``below``."""
        assert isinstance(axis, Grid)
        if axis.cells > LARGEST_GRID:
            raise ValueError("condition.column: has too many values; use narrower bounds")
        condition = self.condition
        first = 0 if condition.at_least is None else _edge(axis, "at_least", condition.at_least)
        last = axis.cells if condition.below is None else _edge(axis, "below", condition.below)
        return tuple(range(first, last))

    @property
    def subject(self) -> str:
        return f"records with {self.condition.text}"


def _edge(axis: Grid, name: str, value: float) -> int:
    """The position of a grid edge. Refuses any other value, because it would divide a cell."""
    width = (axis.upper - axis.lower) / axis.cells
    place = round(min(max((value - axis.lower) / width, 0), axis.cells))
    nearest = float(axis.edge(np.array([place]))[0])
    # A written edge, such as 0.3, may differ from the computed one by rounding.
    if abs(nearest - value) > 1e-6 * width:
        raise ValueError(
            f"condition.{name}: must be an edge of the column's grid; the nearest is {nearest!r}"
        )
    return place
