"""The common parts of whole-number and real-number columns in a plan."""

from collections.abc import Sequence
from contextlib import suppress
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Self

from pydantic import Field, model_validator

from dpcore.domain.axes import Category
from schemas.document import Section, absent, inside
from schemas.survey.formats import Format, SourceName, number_format
from schemas.survey.keys import (
    DESCRIPTION,
    LABEL,
    NULLABLE,
    Labels,
    Missing,
    Outside,
    nullable_if_missing,
)
from schemas.text import Line


def two_numbers(value: Any) -> Any:
    if isinstance(value, list | tuple) and len(value) != 2:
        raise ValueError("needs two numbers: the smallest and the largest value")
    return value


class NumberColumn(Section):
    """Base class of columns of whole numbers and of real numbers."""

    outside: Outside = Field(
        default="refuse",
        description="What happens to values outside the bounds: they stop the release, or move to the"
        " nearest bound.",
    )
    nullable: bool = Field(default=False, description=NULLABLE)
    missing: Missing = Field(default_factory=list, exclude_if=absent)
    format: Format = ""
    source_name: SourceName = ""
    labels: Labels = Field(default_factory=dict, exclude_if=absent)
    unit: str = Field(default="", description="The unit of the numbers, such as years or EUR.")
    label: Line = Field(default="", max_length=60, description=LABEL, exclude_if=absent)
    description: str = Field(default="", description=DESCRIPTION)

    if TYPE_CHECKING:  # both kinds state their own
        bounds: tuple[float, float]
        step: float | None
        levels: Sequence[float] | None
        point_masses: Sequence[float]

    _nullable = model_validator(mode="before")(nullable_if_missing)

    @model_validator(mode="before")
    @classmethod
    def _bounds_of_levels(cls, given: Any) -> Any:
        """Take the bounds from the levels if they are not stated."""
        levels = given.get("levels") if isinstance(given, dict) else None
        if not isinstance(levels, list | tuple) or not levels or "bounds" in given:
            return given
        return {**given, "bounds": [levels[0], levels[-1]]}

    @model_validator(mode="after")
    def _coherent(self) -> Self:
        lower, upper = self.bounds
        _check_bounds(lower, upper, self.levels is not None)
        if self.step is not None and max(abs(lower), abs(upper)) / self.step > 2**53:
            raise ValueError("step: too small for these bounds")
        if self.levels is not None:
            if self.step is not None or self.point_masses:
                raise ValueError("levels: cannot be combined with step or point_masses")
            if _descends(self.levels) or (self.levels[0], self.levels[-1]) != self.bounds:
                raise ValueError("levels: must be ascending, from one bound to the other")
        if unknown := [text for text in self.labels if not self._may_be(text)]:
            raise ValueError(f"labels: {unknown} are not values of the column")
        if _descends(self.point_masses):
            raise ValueError("point_masses: must ascend")
        if any(not lower <= point <= upper for point in self.point_masses):
            raise ValueError("point_masses: must lie within the bounds")
        self._check_format()
        return self

    def _check_format(self) -> None:
        """Raise ``ValueError`` if the format is not valid, or not suitable for such numbers."""
        if not self.format:
            return
        with inside("format: "):
            percent = number_format(self.format).percent
        if percent and max(map(abs, self.bounds)) >= 100:
            raise ValueError("format: 12% is read as 0.12; state bounds as shares, such as [0, 1]")

    @property
    def open(self) -> bool:
        """Whether a release finds the bounds, now or later."""
        return False

    @property
    def clamps_nothing(self) -> bool:
        """Whether numbers are read without clamping, because the search has not yet found the bounds."""
        return self.open or self.outside == "refuse"

    @property
    def listed(self) -> Sequence[Category] | None:
        """The possible values, if they are listed."""
        return self.levels

    def _may_be(self, text: str) -> bool:
        """Whether a text is a value of the column, in the plan's format."""
        if self.levels is not None:
            return text in {str(level) for level in self.levels}
        with suppress(ValueError):
            return self.bounds[0] <= float(text) <= self.bounds[1] and _spelled(float(text)) == text
        return False

    @property
    def written(self) -> Fraction | None:
        """The step as an exact fraction of the written number."""
        return None if self.step is None else Fraction(str(self.step))


def _spelled(value: float) -> str:
    return str(int(value)) if value == int(value) else str(value)


def _check_bounds(lower: float, upper: float, levels: bool) -> None:
    if lower == upper and not levels:
        raise ValueError(
            f"bounds: contain only {lower:.15g}; state `levels: [{lower:.15g}]` for one value"
        )
    if not -1e300 <= lower <= upper <= 1e300:
        raise ValueError("bounds: must be finite (at most 1e300), the smaller first")


def _descends(numbers: Sequence[float]) -> bool:
    return any(a >= b for a, b in zip(numbers, numbers[1:], strict=False))


def check_edges(edges: list[float], lower: float, upper: float) -> None:
    if len(edges) < 2 or any(a >= b for a, b in zip(edges, edges[1:], strict=False)):
        raise ValueError("must be at least two ascending edges")
    if edges[0] != lower or edges[-1] != upper:
        raise ValueError(
            f"edges must begin at {lower!r} and end at {upper!r}, so that every value has a bin"
            " (for whole numbers the end is the largest value plus one)"
        )
