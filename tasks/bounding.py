"""Which records count, and how much: the privacy unit and the weights as Ibis expressions.

Of each unit at most ``max_rows`` records are kept: the first by a hash of the unit and the record,
so that no kind of record is preferred, and among equal hashes by the records' own values.

    unit  record  md5(unit, record)        unit  record
    7     a       3f..                     7     b
    7     b       09..        max_rows 2   7     a
    7     c       a1..        -------->    9     a
    9     a       77..

Which records of a unit are kept depends on that unit's records alone, so tables that differ in one
unit differ in at most ``max_rows`` kept records, and each engine keeps the same ones, every time.
Records that tie to the end are equal in every column that is read: whichever is kept, the tally is
the same.
"""

from __future__ import annotations

from typing import Any

from schemas.engine import exactly
from schemas.unit import UnitColumn, Weights

STEPS = "_steps"
"""The column of weights in steps.  No column of a plan begins with an underscore."""


def weighed(table: Any, weights: Weights) -> Any:
    """The table with the steps of every record's weight: whole, from 0 to ``most_steps``.

    A record's steps depend on its own weight alone, and are within these ends whatever the weight.
    Half a step and more is rounded up.
    """
    import ibis  # slow to import, and only the private steps need it

    weight, most = table[weights.column], exactly(float(weights.most_steps))
    steps = ibis.least(weight / exactly(float(weights.step)), most)
    rounded = (steps + exactly(0.5)).floor().cast("int64")
    return table.mutate(**{STEPS: ibis.ifelse(weight >= 0, rounded, 0)})


def bounded(table: Any, unit: UnitColumn) -> Any:
    """The records that are kept: ``max_rows`` of each unit at most.

    The table holds the unit's column as text, without nulls, and is validated.
    """
    import ibis

    md5: Any = ibis.udf.scalar.builtin(_md5, name="md5")
    identifier = table[unit.column]
    values = [table[name] for name in table.columns if name != unit.column]
    text = identifier
    for value in values:
        text = text + "|" + ibis.coalesce(_word(value), "")
    order = [md5(text), *(value.asc(nulls_first=True) for value in values)]
    place = ibis.row_number().over(ibis.window(group_by=identifier, order_by=order))
    return table.mutate(_place=place).filter(lambda t: t["_place"] < unit.max_rows).drop("_place")


def _word(value: Any) -> Any:
    """A value as text that all engines write alike; they differ in how they write doubles."""
    import ibis

    if value.type().is_floating():
        within = ibis.greatest(ibis.least(value, exactly(2.0**40)), exactly(-(2.0**40)))
        value = (within * exactly(1024.0)).floor().cast("int64")
    return value.cast("string")


def _md5(text: str) -> str:
    """The form of the engine's function, which gives the same digits everywhere."""
    raise NotImplementedError
