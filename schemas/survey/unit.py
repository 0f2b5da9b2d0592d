"""The privacy unit, survey weights and counts: columns that a plan reads but does not publish.

counts: n                                                   each row is n records
privacy_unit: {column: household, max_rows: 6}              all records of a household together
weights: {column: weight, largest: 1000, step: 1, total: 8500000}
"""

from fractions import Fraction
from typing import Self

from pydantic import Field, StrictInt, StrictStr, model_validator

from schemas.document import Section
from schemas.numbers import WrittenRational
from schemas.survey.columns import ContinuousColumn, IntegerColumn
from schemas.survey.formats import Format, SourceName, number_format

WEIGHT = ContinuousColumn(type="continuous", bounds=(0.0, 1e300))
"""The checks on a column of weights: finite and not negative."""


def of_weights(column: object) -> bool:
    """Whether this is the column of weights."""
    return isinstance(column, ContinuousColumn) and column.bounds == WEIGHT.bounds


COUNT = IntegerColumn(type="integer", bounds=(0, 2**40))
"""The checks on a column of counts: never null, and at most the largest number of rows of a plan."""

MOST_ROWS = 10**6
MOST_STEPS = 2**20
"""The most steps of one weight. With the largest number of records of a plan, sums stay below 2**62."""


class UnitColumn(Section):
    """A privacy unit of several records: those with the same value in one column."""

    column: StrictStr = Field(
        description="The column that identifies units. Text or numbers, compared as text (12.0 is 12)."
        " Null, empty text and floats from 2^53 on are not valid. The column must not be among"
        " `columns`, and is never published."
    )
    max_rows: StrictInt = Field(
        ge=1,
        le=MOST_ROWS,
        description="At most this many records of a unit are used, chosen by the unit's own records"
        " alone. Noise grows with this number.",
    )
    source_name: SourceName = ""
    name: StrictStr = Field(
        default="unit",
        pattern=r"^[^\W\d_][\w -]{0,39}$",
        description="The noun for one unit in published texts, such as household.",
    )


class Weights(Section):
    """Survey weights, for releases with `weighted`."""

    column: StrictStr = Field(
        description="A numeric column that is not among `columns`. Null, negative and infinite weights"
        " are not valid."
    )
    source_name: SourceName = ""
    format: Format = ""
    largest: WrittenRational = Field(
        description="Larger weights are cut to this value. Noise grows with this value. It must be at"
        " least the mean weight, `total` divided by `rows`."
    )
    step: WrittenRational = Field(
        description="Weights are rounded to the nearest multiple of the step; `largest` must be a"
        " multiple."
    )
    total: WrittenRational = Field(
        description="The public sum of the weights, such as the population. It is used as a scale for"
        " errors; the table is not checked against it."
    )

    @model_validator(mode="after")
    def _whole_steps(self) -> Self:
        if self.format:
            number_format(self.format)
        if self.step == 0:
            raise ValueError("step: must be positive")
        steps = self.largest / self.step
        if steps.denominator != 1 or not 2 <= steps <= MOST_STEPS:
            raise ValueError(
                f"largest: must be a whole number of steps, from 2 to {MOST_STEPS}, not"
                f" {float(steps):g}. If all weights are equal, count without weights"
            )
        if not self.step <= self.total <= self.step * 2**50:
            raise ValueError("total: must lie between 1 and 2**50 steps")
        return self

    @property
    def read(self) -> ContinuousColumn:
        """The column of weights, as a column to read."""
        stated = {"source_name": self.source_name, "format": self.format}
        return WEIGHT.model_copy(update=stated)

    @property
    def most_steps(self) -> int:
        """The largest number of steps of one record."""
        return int(self.largest / self.step)

    @property
    def total_steps(self) -> int:
        """The public scale of a weighted count, in steps."""
        return round(Fraction(self.total / self.step))
