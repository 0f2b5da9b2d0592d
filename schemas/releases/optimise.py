"""What the precisions of a release's tables are chosen for, in a plan."""

from fractions import Fraction
from itertools import permutations
from typing import Annotated, Literal

from pydantic import Field

from dpcore.releases.tables.allocation import Aim
from schemas.numbers import WrittenRational

Optimise = Annotated[
    Literal["mean", "max"] | dict[str, WrittenRational] | None,
    Field(
        description="What the precision of the tables is chosen for: the least mean variance of a "
        "count over all tables (mean), the least error of the worst table (max), or the least sum of "
        "variances with weights, such as {sex: 5, sex.age: 2}, in which a table is named by its "
        "columns and others weigh 1. Without it, the least mean error of a table, with none more than "
        "5% worse than if all tables were measured alike. Only tables of up to three columns are "
        "measured unequally.",
    ),
]


def aim_of(
    optimise: Literal["mean", "max"] | dict[str, Fraction] | None,
    sets: tuple[tuple[int, ...], ...],
    columns: list[str],
) -> Aim:
    """The aim for tables over ``sets`` of positions; ``ValueError`` for a weight of none of them."""
    if optimise is None:
        return "balanced"
    if not isinstance(optimise, dict):
        return optimise
    places = {
        ".".join(columns[a] for a in order): i
        for i, attributes in enumerate(sets)
        for order in permutations(attributes)
    }
    weights = [Fraction(1)] * len(sets)
    for name, weight in optimise.items():
        if name not in places:
            raise ValueError(
                f"optimise: {name!r} is no table of the release, such as {next(iter(places))!r}"
            )
        if not weight > 0:
            raise ValueError(f"optimise.{name}: a weight must be positive")
        weights[places[name]] = weight
    return tuple(weights)
