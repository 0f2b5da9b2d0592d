"""Contingency margins in a plan."""

from collections.abc import Sequence
from itertools import combinations
from math import comb
from typing import ClassVar, Literal, Self

from pydantic import Field, StrictInt, StrictStr, model_validator

from dpcore.accounting.budget import Budget
from dpcore.releases.base import Release
from dpcore.releases.tables.margins import MarginTables
from schemas.releases.base import CountingSection, SurveyFacts
from schemas.releases.binning import Bins, binned_domain
from schemas.releases.optimise import Optimise, aim_of

MOST_SETS = 2**16


def sets_of(ways: int | Sequence[int], columns: int) -> tuple[tuple[int, ...], ...]:
    """All sets of ``ways`` of the columns."""
    several = [ways] if isinstance(ways, int) else list(ways)
    if not several or any(not 1 <= w <= columns for w in several):
        raise ValueError(f"ways: must lie between 1 and {columns}")
    if len(set(several)) != len(several):
        raise ValueError("ways: a number is listed twice")
    if sum(comb(columns, w) for w in several) > MOST_SETS:
        raise ValueError(f"ways: make more than {MOST_SETS} tables; list sets")
    return tuple(attrs for w in sorted(several) for attrs in combinations(range(columns), w))


class MarginsSection(CountingSection):
    """Counts over several sets of columns, drawn together."""

    words: ClassVar[str] = "Contingency tables"
    kind: Literal["margins"]
    columns: list[StrictStr] = Field(min_length=1, description="The columns of all tables.")
    ways: StrictInt | list[StrictInt] | None = Field(
        default=None,
        description=("All sets of this many columns; or a list of sizes, such as [1, 2]."),
    )
    sets: list[list[StrictStr]] | None = Field(
        default=None, description="Instead of `ways`: a list of the sets."
    )
    optimise: Optimise = None
    bins: Bins
    mechanism: Literal["discrete-laplace", "discrete-gaussian"] = "discrete-laplace"

    @model_validator(mode="after")
    def _one_of(self) -> Self:
        if (self.ways is None) == (self.sets is None):
            raise ValueError("state either ways or sets")
        return self

    def build(self, survey: SurveyFacts, share: Budget) -> Release:
        domain = binned_domain(survey.columns, self.columns, self.bins)
        sets = self._positions()
        aim = aim_of(self.optimise, sets, self.columns)
        return self.make(
            MarginTables, domain, survey, share, sets=sets, noise=self.mechanism, aim=aim
        )

    def _positions(self) -> tuple[tuple[int, ...], ...]:
        if self.sets is None:
            assert self.ways is not None
            return sets_of(self.ways, len(self.columns))
        positions = []
        for i, names in enumerate(self.sets):
            unknown = [name for name in names if name not in self.columns]
            if unknown or not names or len(set(names)) != len(names):
                raise ValueError(f"sets[{i}]: {names} must be distinct names from columns")
            positions.append(tuple(sorted(self.columns.index(name) for name in names)))
        if len(set(positions)) != len(positions) or not positions:
            raise ValueError("sets: list at least one set, and no set twice")
        return tuple(positions)
