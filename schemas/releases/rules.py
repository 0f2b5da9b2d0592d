"""Rules between columns in a plan. Every synthetic record follows them, whatever the noise."""

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Annotated, Any, Self

from pydantic import (
    Discriminator,
    Field,
    PrivateAttr,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    Tag,
    model_validator,
)

from dpcore.domain.axes import Axis, Bins, Categories, Category, Grid
from dpcore.domain.domain import Domain
from dpcore.model_formula import backticks_wanted
from dpcore.post.records.rules import Condition, Rule
from dpcore.suggestion import suggestion
from schemas.document import Section, inside
from schemas.releases.inequalities import read_inequality, rules_of

Value = StrictStr | StrictBool | StrictInt | StrictFloat | None
KINDS = {str: "text", bool: "truth values", int: "whole numbers", float: "numbers"}


Details = Mapping[str, tuple[str, Mapping[Any, Any]]]
"""For each column of groups: the refining column of the records, and the group of each category."""


class Range(Section):
    """Values of a numeric column between edges of its bins, without null."""

    from_: StrictInt | StrictFloat | None = Field(
        default=None, alias="from", description="The smallest value."
    )
    below: StrictInt | StrictFloat | None = Field(
        default=None, description="All values are below this one."
    )

    @model_validator(mode="after")
    def _some(self) -> Self:
        if self.from_ is None and self.below is None:
            raise ValueError("state from, or below, or both")
        return self


Stated = Annotated[
    Annotated[list[Value], Tag("list")] | Annotated[Range, Tag("range")],
    Discriminator(lambda given: "range" if isinstance(given, dict | Range) else "list"),
]


class RuleSection(Section):
    """A rule: a synthetic record that satisfies all of ``if`` also satisfies all of ``then``."""

    if_: dict[StrictStr, Stated] = Field(
        alias="if",
        default_factory=dict,
        description="Conditions by column: a list of values (possibly null), or a range such as"
        " {below: 15} between edges of bins or among levels.",
    )
    then: dict[StrictStr, Stated] | StrictStr = Field(
        description="The conditions that then apply to other columns, in the same form. Or an inequality"
        " of numbers, such as `end >= start + 5`, `months >= 12 * age` or `weight < 30`,"
        " which applies if no column in it is null. A rule may consist of an inequality"
        " alone, without if and then."
    )

    _place: str = PrivateAttr("")

    @model_validator(mode="before")
    @classmethod
    def _alone(cls, given: Any) -> Any:
        return {"then": given} if isinstance(given, str) else given

    def stated_at(self, place: str) -> Self:
        """The rule with its place in the plan, for error messages."""
        copy = self.model_copy()
        copy._place = place
        return copy

    @model_validator(mode="after")
    def _stated(self) -> Self:
        if not self.then or (not self.if_ and not isinstance(self.then, str)):
            raise ValueError("state conditions under both if and then")
        return self

    @property
    def words(self) -> str:
        """The rule in words for readers."""
        if isinstance(self.then, str):
            then = self.then
        else:
            then = " and ".join(_stated_of(name, each) for name, each in self.then.items())
        when = " and ".join(_stated_of(name, each) for name, each in self.if_.items())
        return f"if {when} then {then}" if when else then

    def in_detail(self, details: Details, place: str) -> Self:
        """The rule with groups replaced by their categories."""
        changed: dict[str, Any] = {"if_": _in_detail(self.if_, details, f"{place}.if")}
        if isinstance(self.then, dict):
            changed["then"] = _in_detail(self.then, details, f"{place}.then")
        return self.model_copy(update=changed)

    def when(self, domain: Domain, place: str) -> tuple[Condition, ...]:
        """The conditions of ``if`` over the domain's cells."""
        return tuple(condition(domain, f"{place}.if.{n}", n, c) for n, c in self.if_.items())

    def build(self, domain: Domain, place: str) -> list[Rule]:
        """Build a rule on cells for each column under ``then``. Raises ``ValueError`` if cells cannot
        express it."""
        assert isinstance(self.then, dict)
        both = sorted(set(self.if_) & set(self.then))
        if both:
            raise ValueError(f"{place}: {both} are both under if and under then")
        when = self.when(domain, place)
        return [
            Rule(when, (condition(domain, f"{place}.then.{name}", name, stated),))
            for name, stated in self.then.items()
        ]


def _stated_of(name: str, stated: list[Value] | Range) -> str:
    if isinstance(stated, Range):
        ends = [("from", stated.from_), ("below", stated.below)]
        return " ".join([name, *(f"{word} {end}" for word, end in ends if end is not None)])
    return f"{name} is {' or '.join('null' if each is None else str(each) for each in stated)}"


def build_rules(
    sections: Sequence[RuleSection], domain: Domain, details: Details = MappingProxyType({})
) -> tuple[Rule, ...]:
    """The rules over the domain's cells. Raises ``ValueError`` if cells cannot express them.

    A rule may name a column of groups if the records contain the column that refines it.
    """
    found: list[Rule] = []
    inequalities = []
    for i, given in enumerate(sections):
        place = given._place or f"rules[{i}]"
        section = given.in_detail(details, place)
        if isinstance(section.then, dict):
            found += section.build(domain, place)
            continue
        try:
            difference = read_inequality(domain, section.then)
        except ValueError as error:
            advice = backticks_wanted(section.then, domain.names)
            raise ValueError(f"{place}.then: {error}{advice and f'; {advice}'}") from None
        inequalities.append((section.when(domain, place), difference))
    with inside("rules: "):
        return (*found, *rules_of(domain, inequalities))


def _in_detail(stated: Mapping[str, Stated], details: Details, place: str) -> dict[str, Stated]:
    found = {name: given for name, given in stated.items() if name not in details}
    for name in (name for name in stated if name in details):
        source, of = details[name]
        given = stated[name]
        if isinstance(given, Range):
            raise ValueError(f"{place}.{name}: categories have no range; list values")
        if unknown := [value for value in given if value not in (*of.values(), None)]:
            raise ValueError(f"{place}.{name}: {unknown[0]!r} is not among the groups of {source}")
        listed: list[Value] = [category for category, group in of.items() if group in given]
        listed += [None] if None in given else []
        own = found.get(source, listed)
        if isinstance(own, Range):
            raise ValueError(f"{place}.{source}: categories have no range; list values")
        found[source] = [value for value in listed if value in own]
    return found


def condition(domain: Domain, place: str, name: str, given: list[Value] | Range) -> Condition:
    """The position of a column in the domain, and its cells as stated in the plan."""
    if name not in domain.names:
        raise ValueError(f"{place}: {name!r} is not among the columns of the release")
    position = domain.names.index(name)
    axis = domain.axes[position]
    cells = _range(axis, place, given) if isinstance(given, Range) else _listed(axis, place, given)
    if not cells:
        raise ValueError(f"{place}: no value is left")
    return position, tuple(sorted(cells))


def _listed(axis: Axis, place: str, values: list[Value]) -> set[int]:
    return {_cell(axis, place, value) for value in values}


def _cell(axis: Axis, place: str, value: Value) -> int:
    """The cell with only this value."""
    if value is None:
        if not axis.nullable:
            raise ValueError(f"{place}: {axis.name} is not nullable")
        return axis.size - 1
    if isinstance(axis, Categories):
        same = [i for i, c in enumerate(axis.categories) if c == value and _alike(c, value)]
        if not same:
            hint = _hint(axis.name, value, axis.categories)
            raise ValueError(f"{place}: {value!r} is not among the categories{hint}")
        return same[0]
    # A point mass is a cell of one number, also in a column of real numbers.
    for point in axis.points if isinstance(axis, Bins) else ():
        if axis.edges[point] == value and not isinstance(value, bool):
            return point
    if not axis.integer:
        raise ValueError(f"{place}: only categories and whole numbers can have a list of values")
    if isinstance(value, str | bool):
        raise ValueError(f"{place}: {value!r} is not a whole number{_hint(axis.name, value, (0,))}")
    first, last = _edge(axis, place, value), _edge(axis, place, value + 1)
    if last != first + 1:
        raise ValueError(
            f"{place}: {value} shares its bin with other values; state a range of bins"
        )
    return first


def _alike(category: Category, value: Value) -> bool:
    """Whether a category and a value are equal and of one type; 3 and 3.0 are one number."""
    return type(category) is type(value) or {type(category), type(value)} == {int, float}


def _hint(name: str, value: Value, values: Sequence[str | bool | float]) -> str:
    """If ``value`` has a wrong type: text on the type of the column's values, and the likely value."""
    kind = type(values[0])
    if type(value) is kind:
        return suggestion(value, values) if kind is str else ""
    meant = next((f"; write {v!r}, not {value!r}" for v in values if str(v) == str(value)), "")
    return f": the values of {name} are {KINDS[kind]}{meant}"


def _range(axis: Axis, place: str, given: Range) -> set[int]:
    if isinstance(axis, Categories):
        if not axis.ordered:
            raise ValueError(f"{place}: categories have no range; list values")
        least = -math.inf if given.from_ is None else given.from_
        below = math.inf if given.below is None else given.below
        return {i for i, c in enumerate(axis.categories) if least <= float(c) < below}
    first = 0 if given.from_ is None else _edge(axis, place, given.from_)
    last = axis.size - axis.nullable
    return set(range(first, last if given.below is None else _edge(axis, place, given.below)))


def _edge(axis: Bins | Grid, place: str, value: float) -> int:
    """The index of the edge at this value. Without bins each whole number has a cell."""
    if isinstance(axis, Grid):
        if axis.lower <= value <= axis.upper and value == int(value):
            return int(value - axis.lower)
    elif value in axis.edges:
        return axis.edges.index(value)
    edges = sorted(axis.edges, key=lambda edge: abs(edge - value))[:2]
    near = " or ".join(f"{edge:g}" for edge in sorted(edges))
    raise ValueError(
        f"{place}: {value} is not an edge of the bins of {axis.name}; the nearest edges are {near}"
    )
