"""Heaping: which round numbers people report, as a column of its own that a plan may measure.

columns:
  hours:       {type: integer, bounds: [0, 99]}
  hours_round: {type: integer, from: {column: hours, multiples_of: [10, 5]}}

``hours_round`` of a record is the first of the listed numbers of which its hours are a multiple, and 0
where there is none.  The engine computes it of each record alone while it reads the survey; to all that
follows it is a column of levels like any other.  Synthetic records that have both columns agree in them.
"""

from typing import Any

from pydantic import Field, StrictInt, StrictStr, field_validator

from schemas.document import Section


class Multiples(Section):
    """The largest of some numbers of which the values of a column are multiples."""

    column: StrictStr = Field(description="The plan's column of numbers that are rounded.")
    multiples_of: list[StrictInt] = Field(
        min_length=1,
        description="In descending order, each a multiple of the next, such as [1000, 500, 100].",
    )

    @field_validator("multiples_of")
    @classmethod
    def _descending(cls, given: list[int]) -> list[int]:
        if given[-1] < 2 or given[0] > 2**40:
            raise ValueError("must be from 2 to 2**40")
        if any(a <= b or a % b for a, b in zip(given, given[1:], strict=False)):
            raise ValueError("must descend, each a multiple of the next, such as [1000, 500, 100]")
        return given

    @property
    def levels(self) -> list[int]:
        """The values that occur: 0 where a number is a multiple of none."""
        return [0, *reversed(self.multiples_of)]

    def check(self, name: str, own: Any, of: Any) -> None:
        """Raise ``ValueError`` where column ``name``, ``own``, makes no sense for the column ``of``."""
        place = f"columns.{name}.from"
        if getattr(of, "type", "categorical") == "categorical" or of.levels or _computed(of):
            raise ValueError(
                f"{place}.column: {self.column!r} is not a column of numbers of the plan, with bounds"
            )
        lower, upper = of.bounds
        most, least = self.multiples_of[0], self.multiples_of[-1]
        if upper // most < -(-lower // most):
            raise ValueError(f"{place}.multiples_of: no multiple of {most} is within the bounds")
        step = of.written or (1 if of.type == "integer" else None)
        if step and (least % step or least == step):
            raise ValueError(
                f"{place}.multiples_of: {least} is not a larger multiple of {self.column}'s step {step}"
            )
        if of.nullable and not own.nullable:
            raise ValueError(f"{place}: {self.column} may be null, so {name} must be nullable")


def _computed(column: Any) -> bool:
    return getattr(column, "from_", None) is not None
