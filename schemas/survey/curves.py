"""Columns of a survey that together form one function: its values at several times."""

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
        description="Numeric columns, in the order of time. At a null the curve is interpolated"
        " linearly between the record's neighbouring points; before the first point and after the last"
        " point it is constant.",
    )
    time: list[Number] | None = Field(
        default=None,
        exclude_if=absent,
        description="The time of each column, ascending. Default: 0, 1, 2, ...",
    )
    step_at_most: Annotated[Number, Field(gt=0)] | None = Field(
        default=None,
        exclude_if=absent,
        description="The largest change between neighbouring times, from public knowledge. Curves with"
        " larger changes are altered so that no change exceeds it. This reduces the noise,"
        " but all columns then need the same bounds.",
    )

    @model_validator(mode="after")
    def _coherent(self) -> Self:
        if len(set(self.columns)) < len(self.columns):
            raise ValueError("columns: a column is listed twice")
        if len(self.times) != len(self.columns):
            raise ValueError(
                f"time: has {len(self.times)} times for {len(self.columns)} columns; state one time for"
                " each column"
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
