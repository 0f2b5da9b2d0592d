"""One wide record for every privacy unit, as an Ibis expression (see ``schemas.plan.linked``).

    hid  age         hid  age  _place       size  age.1  age.2
    7    31          7    34   0            2     34     31
    7    34   ---->  7    31   1     ---->  1     80     null
    9    80          9    80   0

A unit's record is a function of its own records alone: they are ordered by their values, and members
that still tie are equal in every column that is read, so their order does not matter. Tables that differ
in one unit therefore differ in one wide record, however many members it has, and every engine makes the
same records every time.
"""

from __future__ import annotations

from typing import Any

from dpcore.domain.domain import Domain
from dpcore.releases.models.design import STEPS, SurveyDesign
from schemas.plan.linked import SIZE, Linked
from schemas.survey.unit import UnitColumn, Weights
from tasks.survey.bounding import add_weight_steps, keep_records


def wide_records(table: Any, unit: UnitColumn, linked: Linked) -> Any:
    """One record of each unit, with at most ``max_rows`` members: the first in the plan's order.

    The unit's column is text, and every record has one (``keep_identified``).
    """
    import ibis  # slow to import, and only the private steps need it

    identifier = table[unit.column]
    names = [name for name in table.columns if name != unit.column]
    rest = [(name, False) for name in names if name not in dict(linked.sorted_by)]
    # The position of nulls is stated, because engines differ in it.
    order = [
        table[name].desc(nulls_first=False) if largest else table[name].asc(nulls_first=True)
        for name, largest in [*linked.sorted_by, *rest]
    ]
    place = ibis.row_number().over(ibis.window(group_by=identifier, order_by=order))
    members = table.mutate(_unit=identifier, _place=place)
    members = members.filter(lambda t: t["_place"] < unit.max_rows)
    columns = {name: _of_member(members, name, 0) for name in names if name in linked.shared}
    columns[SIZE] = members.count().cast("int64")
    for i in range(unit.max_rows):
        for name in (name for name in names if name not in linked.shared):
            columns[f"{name}.{i + 1}"] = _of_member(members, name, i)
    return members.group_by("_unit").aggregate(**columns).drop("_unit")


def unit_records(
    table: Any,
    domain: Domain,
    design: SurveyDesign,
    unit: UnitColumn | None,
    weights: Weights | None,
) -> Any:
    """One record of each unit, from its kept records, for models (``dpcore.releases.models``)."""
    names = design.columns(domain)
    if unit:
        table = keep_records(table, unit)
    if weights:
        table, names = add_weight_steps(table, weights), [*names, STEPS]
    shared = {name: table[axis.name] for name, axis in design.groups.items()}
    if shared:
        table = table.mutate(**shared)
    if unit is None or design.members == 1:
        return table
    table = table.select(unit.column, *names, *shared)
    return wide_records(table, unit, Linked(order=names[:1], shared=[*shared]))


def _of_member(members: Any, name: str, place: int) -> Any:
    """The value of the member in this position, null if there is none."""
    import ibis

    there, value = members["_place"] == place, members[name]
    if value.type().is_boolean():  # PostgreSQL has no maximum of truth values
        return ibis.cases((value, 1), (~value, 0)).max(where=there) == 1
    return value.max(where=there)
