"""Parts of dates: how a whole-number column is computed from a column of dates in the survey.

columns:
  admission month: {type: integer, bounds: [1, 12], from: {column: admitted, part: month}}

The engine computes the part of each record from its own date while it reads the survey; to all that
follows it is a whole number like any other.
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
"""The values that a part may have.  A date in no such year has no parts."""


class PartOfDate(Section):
    """A part of the dates in one column of the survey."""

    column: StrictStr = Field(
        min_length=1,
        description="The survey's column of dates, or of dates with times; it is not among `columns`"
        " unless it is itself released.",
    )
    part: Part = Field(
        description="Weekdays are 1, Monday, to 7, Sunday; hours are 0 to 23. Times with a time zone are"
        " read in UTC."
    )

    def check(self, bounds: tuple[int, int]) -> None:
        """Raise ``ValueError`` where the bounds are not those of this part."""
        lower, upper = RANGES[self.part]
        if not lower <= bounds[0] <= bounds[1] <= upper:
            raise ValueError(f"bounds: a {self.part} lies between {lower} and {upper}")
