"""Contingency margins in a plan."""

from itertools import combinations
from math import comb
from typing import ClassVar, Literal, Self

from pydantic import Field, StrictInt, StrictStr, model_validator

from dpcore.budget import Budget
from dpcore.releases.base import Release
from dpcore.releases.tables.margins import Margins
from schemas.releases.base import CountsSection, SurveyFacts, listed
from schemas.releases.binning import Bins, binned_domain
from schemas.releases.optimise import Optimise, aim_of

MOST_SETS = 2**16


class MarginsSection(CountsSection):
    """Counts over several sets of columns, drawn together."""

    words: ClassVar[str] = "Contingency tables"
    kind: Literal["margins"]
    columns: list[StrictStr] = Field(min_length=1, description="The columns of all the tables.")
    ways: StrictInt | list[StrictInt] | None = Field(
        default=None, description="All sets of this many of the columns; a list adds them up."
    )
    sets: list[list[StrictStr]] | None = Field(default=None, description="Or the sets, listed.")
    optimise: Optimise = None
    bins: Bins
    mechanism: Literal["discrete-laplace", "discrete-gaussian"] = "discrete-laplace"

    @model_validator(mode="after")
    def _one_of(self) -> Self:
        if (self.ways is None) == (self.sets is None):
            raise ValueError("state either ways or sets")
        return self

    @property
    def gaussian(self) -> bool:
        return self.mechanism == "discrete-gaussian"

    def build(self, survey: SurveyFacts, share: Budget) -> Release:
        domain = binned_domain(survey.columns, self.columns, self.bins)
        sets = self._positions()
        return Margins(
            self.name,
            domain,
            survey.rows,
            share,
            sets=sets,
            noise=self.mechanism,
            aim=aim_of(self.optimise, sets, self.columns),
            adjacency=survey.adjacency,
        )

    def _positions(self) -> tuple[tuple[int, ...], ...]:
        if self.sets is None:
            assert self.ways is not None
            ways = self.ways if isinstance(self.ways, list) else [self.ways]
            if not ways or any(not 1 <= w <= len(self.columns) for w in ways):
                raise ValueError(f"ways: must lie between 1 and {len(self.columns)}")
            if len(set(ways)) != len(ways):
                raise ValueError("ways: a number is listed twice")
            if sum(comb(len(self.columns), w) for w in ways) > MOST_SETS:
                raise ValueError(f"ways: make more than {MOST_SETS} tables; list sets")
            return tuple(
                attrs for w in sorted(ways) for attrs in combinations(range(len(self.columns)), w)
            )
        positions = []
        for i, names in enumerate(self.sets):
            unknown = [name for name in names if name not in self.columns]
            if unknown or not names or len(set(names)) != len(names):
                raise ValueError(f"sets[{i}]: {names} must be distinct names from columns")
            positions.append(tuple(sorted(self.columns.index(name) for name in names)))
        if len(set(positions)) != len(positions) or not positions:
            raise ValueError("sets: one at least, and none twice")
        return tuple(positions)

    @property
    def title(self) -> str:
        return listed(self.columns, ", ")
