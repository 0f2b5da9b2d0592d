"""Pairs of columns that are often equal, in a plan. For each pair, a yes-or-no column is measured.

    often_equal: [[person_weight, household_weight]]
    --> a column person_weight_equals_household_weight, and rules:
        if it is yes, then person_weight >= household_weight and person_weight <= household_weight

A table of bins does not show whether numbers are equal: unequal numbers often share a bin by chance.
"""

from collections.abc import Iterator, Mapping, Sequence

from dpcore.domain.axes import Categories, in_order
from dpcore.domain.domain import Domain
from dpcore.suggestion import suggestion
from schemas.releases.rules import RuleSection
from schemas.survey.columns import Column

NO, YES = "no", "yes"

Pair = tuple[str, str]


def equal_column(pair: Pair) -> str:
    """The name of the column that shows whether two columns are equal."""
    return "_equals_".join(pair)


def with_equal(
    domain: Domain, pairs: Sequence[Pair], columns: Mapping[str, Column], among: Sequence[str]
) -> Domain:
    """The domain with an axis for each pair of columns. Raises ``ValueError`` if a pair cannot be equal.

    ``among``: the columns of the release.
    """
    axes = list(domain.axes)
    for i, pair in enumerate(pairs):
        place, name = f"often_equal[{i}]", equal_column(pair)
        for each in pair:
            if each not in among:
                meant = suggestion(each, among)
                raise ValueError(
                    f"{place}: {each!r} is not among the columns of the release{meant}"
                )
            if not in_order(domain.axes[domain.positions[each]]):
                raise ValueError(f"{place}: {each} is not a column of numbers")
        one, other = (columns[each] for each in pair)
        if pair[0] == pair[1] or {*pair} in [{*before} for before in pairs[:i]]:
            raise ValueError(f"{place}: must be two different columns, and not repeat another pair")
        if (one.type, step_of(one)) != (other.type, step_of(other)):
            raise ValueError(
                f"{place}: {pair[0]} and {pair[1]} must have the same type and `step`, so that they can"
                " be equal"
            )
        if name in columns:
            raise ValueError(f"{place}: needs the name {name!r}, so rename that column of the plan")
        axes.append(Categories(name, (NO, YES), compares=pair))
    return Domain(tuple(axes))


def rules_of_equal(domain: Domain, pairs: Sequence[Pair]) -> Iterator[RuleSection]:
    """Yield rules: if the column says yes, the two numbers are equal and neither is missing."""
    for one, other in pairs:
        when = {equal_column((one, other)): [YES]}
        for compared in (">=", "<="):
            yield _rule(when, f"`{one}` {compared} `{other}`")
        for name in (one, other):
            axis = domain.axes[domain.positions[name]]
            least = axis.categories[0] if isinstance(axis, Categories) else axis.lower
            if axis.nullable:
                yield _rule(when, {name: {"from": least}})


def _rule(when: Mapping[str, object], then: object) -> RuleSection:
    return RuleSection.model_validate({"if": when, "then": then}).stated_at("often_equal")


def step_of(column: Column) -> object:
    """The step of a column's values; None if it states none."""
    return getattr(column, "step", None) or None
