"""The key ``optimise``: the aim by which the precision of each table is chosen."""

from fractions import Fraction
from itertools import permutations
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from dpcore.releases.tables.allocation import Aim
from schemas.numbers import WrittenRational


def _weights(given: Any) -> Any:
    """Refuse weights with keys that name no table."""
    if isinstance(given, dict) and (not given or any(isinstance(key, bool) for key in given)):
        raise ValueError("give weights by table size or by table, such as {1: 5, sex.age: 2}")
    return given


Optimise = Annotated[
    Literal["mean", "max", "alike"] | dict[int | str, WrittenRational] | None,
    BeforeValidator(_weights),
    Field(
        description="How the precision of each table is chosen. mean: for the smallest mean variance"
        " of a count. max: for the smallest error of the worst table. Weights, such as {1: 5,"
        " sex.age: 2}: for the smallest weighted sum of variances; 1 means every table of one column,"
        " sex.age the table of these two, and other tables have weight 1. alike: the same precision"
        " for all tables; always used if a table has more than six columns. Default: the smallest"
        " mean error of a table, with no table more than 5% worse than with equal precisions. For"
        " synthetic records, the default is a weighted sum in which a table with one column fewer has"
        " ten times the weight.",
    ),
]


def aim_of(
    optimise: Literal["mean", "max", "alike"] | dict[int | str, Fraction] | None,
    sets: tuple[tuple[int, ...], ...],
    columns: list[str],
    default: Literal["balanced", "records"] = "balanced",
) -> Aim | None:
    """The aim for tables over ``sets`` of positions. Raises ``ValueError`` if it names other tables."""
    if optimise is None:
        return default
    if optimise == "alike":
        return None
    if not isinstance(optimise, dict):
        return optimise
    places = {
        ".".join(columns[a] for a in order): i
        for i, attributes in enumerate(sets)
        for order in permutations(attributes)
    }
    weights = [Fraction(1)] * len(sets)
    ways, named = {len(attributes) for attributes in sets}, set[int | str]()
    # Sizes first, so that weights of single tables replace the weight of their size.
    for name, weight in sorted(optimise.items(), key=lambda item: str(item[0]) in places):
        if not weight > 0:
            raise ValueError(f"optimise.{name}: a weight must be positive")
        if str(name) not in places and str(name) in map(str, ways):
            alike = [i for i, attributes in enumerate(sets) if str(len(attributes)) == str(name)]
        elif str(name) in places:
            alike = [places[str(name)]]
        else:
            raise ValueError(
                f"optimise: {name!r} is not a table of the release; write one such as"
                f" {next(iter(places))!r}"
            )
        table = places.get(str(name), f"all of {name}")
        if table in named:
            raise ValueError(f"optimise: {name!r} is listed twice, perhaps in another order")
        named.add(table)
        for i in alike:
            weights[i] = weight
    return tuple(weights)
