"""Columns of a survey that together are one function: its values at several times."""

from collections.abc import Mapping
from typing import Annotated, Self

from pydantic import Field, StrictFloat, StrictInt, StrictStr, model_validator

from dpcore.domain.curves import MOST_TIMES
from schemas.document import Section, absent

Number = StrictInt | StrictFloat


class Curve(Section):
    """One quantity of a record at several times, with a column for each time."""

    columns: list[StrictStr] = Field(
        min_length=2,
        max_length=MOST_TIMES,
        description="Numeric columns, in the order of time. Where one is null, the curve is on the line"
        " between the record's own neighbouring points; before the first and after the last it stays as"
        " it is there.",
    )
    time: list[Number] | None = Field(
        default=None,
        exclude_if=absent,
        description="The time of each column, ascending; 0, 1, 2, ... without it.",
    )
    step_at_most: Annotated[Number, Field(gt=0)] | None = Field(
        default=None,
        exclude_if=absent,
        description="The largest change between neighbouring times, from public knowledge: curves with"
        " a larger change are altered until they have none; the noise is then smaller. All columns"
        " then need the same"
        " bounds.",
    )

    @model_validator(mode="after")
    def _coherent(self) -> Self:
        if len(set(self.columns)) < len(self.columns):
            raise ValueError("columns: a column is listed twice")
        if len(self.times) != len(self.columns):
            raise ValueError(
                f"time: states {len(self.times)} times for {len(self.columns)} columns; state one"
                " for each"
            )
        if any(
            not before < after for before, after in zip(self.times, self.times[1:], strict=False)
        ):
            raise ValueError("time: must ascend")
        return self

    @property
    def times(self) -> tuple[float, ...]:
        """The time of each column."""
        return tuple(map(float, range(len(self.columns)) if self.time is None else self.time))


Curves = Mapping[str, Curve]
