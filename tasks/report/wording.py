"""Words for sets of values in sentences about people, such as: 12 visits or more, under 30."""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from dpcore.arrays import Integers
from dpcore.domain.axes import Axis, Bins, Categories, next_written, one_value
from dpcore.estimates.selected import Contrast, Part, ShareInterval
from schemas.numbers import plain
from schemas.plan import Plan
from schemas.survey.columns import CategoricalColumn, Column
from tasks.report.cells import Columns, called, code_and_label, written

MOST_NAMED = 3
"""At most this many categories or labelled values are listed; of more, only the first two."""


OPPOSITES = {"no": "yes", "false": "true", "0": "1"}
"""Answers of two categories that are not events, and the events."""


PERCENT = "%", "per cent", "percent"


class Wording(NamedTuple):
    """Words for sets of values.

    ``merged``: by column, its categories and their groups, if groups were measured; ``weighted``:
    whether records count by the survey's weights.
    """

    plan: Plan
    merged: Mapping[str, tuple[Axis, Integers]]
    weighted: bool = False

    @property
    def people(self) -> str:
        """Plural noun for the counted people: respondents, if the survey's weights are unused."""
        if self.plan.weights and not self.weighted:
            return "respondents"
        return self.plan.publication.units or ("the population" if self.weighted else "records")

    def counted(self, axis: Axis) -> str:
        """The people in the denominator of a column's shares: those with a value, if it may be null."""
        return f"{self.people} with a value" if axis.nullable else self.people

    def of_event(self, shown: Axis, found: Contrast) -> Contrast:
        """The contrast, stated by the shares of an event instead of its opposite."""
        part = self.event_of(shown, found.shown)
        if part == found.shown:
            return found
        more, less = map(of_rest, found.shares)
        across = tuple((group, of_rest(share)) for group, share in found.across)
        groups = found.groups[1], found.groups[0]
        return found._replace(groups=groups, shown=part, shares=(less, more), across=across)

    def event_of(self, axis: Axis, part: Part) -> Part:
        """The part of a column to name: its complement if the part is an answer such as no, or is 0."""
        cells = axis.size - axis.nullable
        rest = (part[1], cells) if part[0] == 0 else (0, part[0])
        if not 0 < part[1] - part[0] < cells or (part[0] > 0 and part[1] < cells):
            return part
        if OPPOSITES.get(self.values(axis, part).lower()) == self.values(axis, rest).lower():
            return rest
        if self._columns[axis.name].labels or part[0] > 0:
            return part
        if isinstance(axis, Categories):
            zero = self._rises(axis) and axis.categories[0] == 0 and part[1] == 1
        else:
            zero = axis.edges[0] == 0 and one_value(axis, axis.edges[0], axis.edges[part[1]])
        return rest if zero else part

    def contrast(self, given: Axis, shown: Axis, found: Contrast, shares: Sequence[str]) -> str:
        """The shares of some values in two groups, without a full stop."""
        (one, other), (more, less) = found.groups, shares
        aged = _aged(self._columns[given.name]) and self.people != "records"
        if aged and not shown.nullable:
            group, rest = f"aged {self.values(given, one)}", f"of those {self.values(given, other)}"
        else:
            group, rest = (
                f"where {self.event(given, one)}",
                f"where it {is_value(self.values(given, other))}",
            )
        event = self.event(shown, found.shown)
        return f"{event} for {more} of {self.counted(shown)} {group}, and for {less} {rest}"

    def event(self, axis: Axis, part: Part) -> str:
        """Words such as: “Self-rated health” is poor."""
        return has_value(self._columns, axis.name, self.values(axis, part))

    def values(self, axis: Axis, part: Part) -> str:
        """Words for values, such as: poor, 12 visits or more, under 10,000 dollars."""
        column = self._columns[axis.name]
        if isinstance(axis, Categories):
            names = [category(c, column) for c in self._categories(axis, part)]
            if self._rises(axis) and len(names) > 1:
                if part[1] == axis.size - axis.nullable:
                    return f"{names[0]} or more"
                return f"at most {names[-1]}" if part[0] == 0 else f"{names[0]} to {names[-1]}"
            return _listed(names)
        assert isinstance(axis, Bins)
        return _labelled(axis, part, column) or _numbers(axis, part, column)

    @property
    def _columns(self) -> Mapping[str, Column]:
        return self.plan.described_columns

    def leaves_out(self, axis: Axis, part: Part) -> bool:
        """Whether the words for values leave out some categories of merged groups."""
        if not isinstance(axis, Categories) or not self._merges(axis):
            return False
        return len(self._categories(axis, part)) > MOST_NAMED

    def _merges(self, axis: Axis) -> bool:
        """Whether the cells of a table are groups; a table for readers may have all categories."""
        return axis.name in self.merged and self.merged[axis.name][0] != axis

    def _rises(self, axis: Categories) -> bool:
        """Whether the cells of a table are numbers in ascending order."""
        numbers = [each for each in axis.categories if isinstance(each, int | float)]
        bare = not self._columns[axis.name].labels and sorted(numbers) == [*axis.categories]
        return (axis.ordered or bare) and not self._merges(axis)

    def _categories(self, axis: Categories, part: Part) -> Sequence[object]:
        if not self._merges(axis):
            return axis.categories[part[0] : part[1]]
        whole, groups = self.merged[axis.name]
        assert isinstance(whole, Categories)
        cells = np.flatnonzero((groups >= part[0]) & (groups < part[1]))
        return [whole.categories[i] for i in cells.tolist() if i < len(whole.categories)]


def of_rest(share: ShareInterval) -> ShareInterval:
    """The share of all other values."""
    return ShareInterval(1 - share.value, 1 - share.high, 1 - share.low)


def has_value(columns: Columns, name: str, value: str) -> str:
    """Words such as: “Health” is poor. A value with a list in it is quoted, too."""
    return f"“{called(name, columns)}” {is_value(value)}"


def is_value(value: str) -> str:
    return f"is “{value}”" if ", " in value or "; " in value else f"is {value}"


def category(value: object, column: Column) -> str:
    """The label of a category, or else its code."""
    code, label = code_and_label(value, column)
    text = label or code
    unit = getattr(column, "unit", "")
    return f"{text} {unit}" if unit and not isinstance(column, CategoricalColumn) else text


def _listed(names: Sequence[str]) -> str:
    if len(names) > MOST_NAMED:
        return f"{names[0]}, {names[1]} or {len(names) - 2} others"
    *others, last = names
    return f"{', '.join(others)} or {last}" if others else last


def _labelled(axis: Bins, part: Part, column: Column) -> str:
    """The labels of whole numbers if all numbers have labels; otherwise empty."""
    if not axis.integer or not column.labels:
        return ""
    numbers = range(int(axis.edges[part[0]]), int(axis.edges[part[1]]))
    labels = [column.labels.get(str(number), "") for number in numbers]
    if not all(labels):
        return ""
    if len(labels) > 1 and part[0] == 0:
        return f"{labels[-1]} or lower"
    if len(labels) > 1 and part[1] == axis.cells:
        return f"{labels[0]} or higher"
    return _listed(labels)


def _numbers(axis: Bins, part: Part, column: Column) -> str:
    """Words for a range of numbers. An end at a bound of the column is left out."""
    first, last = part
    unit = getattr(column, "unit", "")
    low, high = (next_written(axis, axis.edges[place]) for place in part)
    above = first > 0 and axis.edges[first - 1] == axis.edges[first]
    reached = axis.edges[last - 1] == axis.edges[last]
    start, end = (written(column, _text(number)) for number in (low, high))
    if one_value(axis, axis.edges[first], axis.edges[last]):
        return _with(start, unit)
    if first == 0 and last == axis.cells:
        return "any number"
    if last == axis.cells:
        if above:
            return f"more than {_with(start, unit)}"
        return f"{start} or older" if _aged(column) else f"{_with(start, unit)} or more"
    if first == 0:
        if reached:
            return f"at most {_with(end, unit)}"
        return f"under {end}" if _aged(column) else f"under {_with(end, unit)}"
    if axis.integer:
        return _with(
            f"{start} to {written(column, _text(high - 1))}", "" if _aged(column) else unit
        )
    start = f"above {start}" if above else start
    return _with(f"{start} to {end}" if reached else f"{start} to under {end}", unit)


def _aged(column: Column) -> bool:
    """Whether a number is the age of somebody, in years."""
    words = re.findall(r"[a-z]+", f"{column.label} {column.description}".lower())
    return words[:1] == ["age"] and getattr(column, "unit", "") == "years"


def _text(number: float) -> str:
    return f"{number:,.0f}" if number == int(number) else plain(number)


def _with(number: str, unit: str) -> str:
    unit = _singular(unit) if number == "1" else unit
    return f"{number} {unit}" if unit else number


def _singular(unit: str) -> str:
    return re.sub(r"(ss|sh|ch|x)es$|(?<!s)s$", r"\1", unit)


def one_unit(column: Column) -> str:
    """One unit of a column: year, percentage point, or empty if it is unknown."""
    unit = getattr(column, "unit", "")
    return "percentage point" if unit in PERCENT else _singular(unit)
