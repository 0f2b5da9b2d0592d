"""Pairs of numbers that are compared in every record, without being named in a plan.

    relapse, death: days
    --> a column relapse_against_death: less, equal or more

Which pairs can be compared follows from the plan alone.  Both columns have the same type, step, unit and
part of a date.  Their ranges mostly overlap; without a unit they are the same.  Their joint table has
groups, so that it does not show the relation.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from dpcore.domain.axes import Axis, Categories
from dpcore.domain.domain import Domain
from dpcore.post.records.rules import Rule
from dpcore.post.tables.margins import Attributes
from schemas.releases.equal import step_of
from schemas.survey.columns import CategoricalColumn, Column

RELATIONS = "less", "equal", "more"

OVERLAP = 0.5
"""The least fraction of the longer range that both columns must share."""

MOST = 40
"""The most pairs that are compared; if there are more, those with the largest overlap."""


def with_compared(
    domain: Domain,
    columns: Mapping[str, Column],
    sets: Sequence[Attributes],
    rules: Iterable[Rule],
    keep: int,
) -> tuple[Domain, tuple[Attributes, ...]]:
    """The domain with an axis for each compared pair, and ``sets`` with the one-way table of each axis.

    ``rules``: the two columns of an inequality are not compared, because records follow it; ``keep``:
    the number of groups of a wide column.
    """
    ordered = {frozenset((order.low, order.high)) for rule in rules for order in rule.orders}
    found = list[tuple[float, Attributes]]()
    for pair in sets:
        axes = [domain.axes[place] for place in pair]
        if (
            len(pair) == 2
            and frozenset(pair) not in ordered
            and max(axis.size for axis in axes) > keep
        ):
            overlap = _overlap(axes, [columns.get(axis.name) for axis in axes])
            if overlap >= OVERLAP:
                found.append((overlap, pair))
    found.sort(key=lambda each: -each[0])
    more = [
        Categories(name, RELATIONS, nullable=True, compares=(one, other))
        for _, pair in found[:MOST]
        for one, other in [[domain.names[place] for place in pair]]
        if (name := f"{one}_against_{other}") not in columns
    ]
    places = range(len(domain.axes), len(domain.axes) + len(more))
    return Domain((*domain.axes, *more)), (*sets, *((place,) for place in places))


def compared_columns(axes: Iterable[Axis]) -> Iterator[tuple[str, Column]]:
    """The columns that compare two others, by name, as published tables describe them."""
    for axis in axes:
        if isinstance(axis, Categories) and axis.compares:
            one, other = axis.compares
            related, missing = f"{one} and {other} are the same number", "no"
            if axis.nullable:
                related, missing = f"{one} is less than, equal to or more than {other}", "null"
            column = CategoricalColumn(
                type="categorical",
                categories=[str(each) for each in axis.categories],
                nullable=axis.nullable,
                description=f"Whether {related}; {missing} if either is missing",
            )
            yield axis.name, column


def _overlap(axes: Sequence[Axis], columns: Sequence[Column | None]) -> float:
    """The fraction of the longer range that both share; 0 if the numbers cannot be compared."""
    ranges, alike, unit = [], set(), ""
    for axis, column in zip(axes, columns, strict=True):
        if column is None or isinstance(axis, Categories):
            return 0.0
        assert not isinstance(column, CategoricalColumn)
        # The month of one date is not compared with the weekday of another, but with its month.
        part = getattr(getattr(column, "from_", None), "part", None)
        unit = column.unit
        alike.add((column.type, step_of(column), unit, part))
        ranges.append((axis.lower, axis.upper))
    (low, high), (start, end) = ranges
    # Without a unit, only the same bounds say that both are on one scale.
    if len(alike) > 1 or (not unit and ranges[0] != ranges[1]):
        return 0.0
    return (min(high, end) - max(low, start)) / max(high - low, end - start)
