"""Parts of dates: how a whole-number column is computed from a column of dates in the survey.

columns:
  admission month: {type: integer, bounds: [1, 12], from: {column: admitted, part: month}}

The engine computes the part from each record's date while it reads the survey; all later steps treat it
as an ordinary whole number.
"""

from typing import Literal

from pydantic import Field, StrictStr

from schemas.document import Section

Part = Literal["year", "month", "weekday", "hour"]

RANGES: dict[Part, tuple[int, int]] = {
    "year": (1, 9999),
    "month": (1, 12),
    "weekday": (1, 7),
    "hour": (0, 23),
}
"""The range of each part. All parts of a date outside these years are null."""


class PartOfDate(Section):
    """A part of the dates in one column of the survey."""

    column: StrictStr = Field(
        min_length=1,
        description="The survey's column of dates, or of dates with times. It is not among `columns`"
        " unless it is released itself.",
    )
    part: Part = Field(
        description="Weekdays are 1, Monday, to 7, Sunday; hours are 0 to 23. Times with a time zone are"
        " read in UTC."
    )

    def check(self, bounds: tuple[int, int]) -> None:
        """Raise ``ValueError`` if the bounds are not possible for this part."""
        lower, upper = RANGES[self.part]
        if not lower <= bounds[0] <= bounds[1] <= upper:
            raise ValueError(f"bounds: a {self.part} lies between {lower} and {upper}")
