"""Ibis expressions that bound each privacy unit's records and turn weights into whole steps.

At most ``max_rows`` records of each unit are kept. They are the first in the order of a hash of unit and
record, so that no kind of record is preferred; equal hashes are ordered by the values.

    unit  record  md5(unit, record)        unit  record
    7     a       3f..                     7     b
    7     b       09..        max_rows 2   7     a
    7     c       a1..        -------->    9     a
    9     a       77..

In a series of releases each unit keeps its records in its first ``most`` periods, and at most
``max_rows`` in each of them. Later periods do not change this. So if the table only grows, the kept
records of a past period are the same in every run.

The kept records of a unit depend on that unit's records alone. So tables that differ in one unit differ
in at most ``max_rows`` kept records, and every engine always keeps the same ones. Records that still tie
are equal in every column that is read, so the tally does not depend on which of them is kept.
"""

from __future__ import annotations

from typing import Any

from dpcore.releases.models.design import STEPS
from schemas.plan.series import Periods
from schemas.survey.columns import Invalid
from schemas.survey.engine import exactly
from schemas.survey.unit import UnitColumn, Weights
from tasks.survey.cells import add_code

PERIOD = "_period"
"""The column of the numbers of periods.  No column of a plan begins with an underscore."""


def add_weight_steps(table: Any, weights: Weights) -> Any:
    """Add a column with every record's weight in steps: a whole number from 0 to ``most_steps``.

    A record's steps depend on its own weight alone; any weight is moved into this range. Steps are
    rounded to the nearest, halves up.
    """
    import ibis  # slow to import, and only the private steps need it

    weight, step = table[weights.column], float(weights.step)
    # Moved into the range before the division, at whose over- or underflow PostgreSQL raises an error.
    inside = ibis.least(weight, exactly(weights.most_steps * step))
    inside = ibis.ifelse(inside < exactly(step / 4), exactly(0.0), inside)
    rounded = (inside / exactly(step) + exactly(0.5)).floor().cast("int64")
    return table.mutate(**{STEPS: ibis.ifelse(weight >= 0, rounded, 0)})


def keep_identified(table: Any, unit: UnitColumn) -> Any:
    """Keep the records whose unit is known.

    Records with null, blank or inexact identifiers may belong to different units, which must not
    displace each other's records. So whether a record is left out depends on its own identifier alone.
    """
    return table.filter(table[unit.column].strip() != "")


def keep_periods(table: Any, unit: UnitColumn, periods: Periods, invalid: Invalid) -> Any:
    """Keep each unit's records in its first periods, and add a column with their numbers."""
    import ibis

    table = add_code(table, periods.axis, PERIOD, invalid)
    within = ibis.window(group_by=table[unit.column], order_by=table[PERIOD])
    before = ibis.dense_rank().over(within)
    return (
        table.mutate(_before=before).filter(lambda t: t["_before"] < periods.most).drop("_before")
    )


def keep_records(table: Any, unit: UnitColumn) -> Any:
    """Keep at most ``max_rows`` records of each unit, or of each unit in each period.

    The unit's column is text, and every record has one (``keep_identified``).
    """
    import ibis

    md5: Any = ibis.udf.scalar.builtin(_md5, name="md5")
    identifier = table[unit.column]
    values = [table[name] for name in table.columns if name != unit.column]
    text = identifier
    for value in values:
        text = text + "|" + ibis.coalesce(_word(value), "")
    # The position of nulls is stated, because engines differ in it.
    order = [md5(text), *(value.asc(nulls_first=True) for value in values)]
    within = [identifier, *(table[name] for name in table.columns if name == PERIOD)]
    place = ibis.row_number().over(ibis.window(group_by=within, order_by=order))
    return table.mutate(_place=place).filter(lambda t: t["_place"] < unit.max_rows).drop("_place")


def _word(value: Any) -> Any:
    """A value as text that is the same in all engines, which write doubles differently."""
    import ibis

    if value.type().is_floating():
        within = ibis.greatest(ibis.least(value, exactly(2.0**40)), exactly(-(2.0**40)))
        value = (within * exactly(1024.0)).floor().cast("int64")
    return value.cast("string")


def _md5(text: str) -> str:
    """The signature of the engines' own MD5, which gives the same digits in all of them."""
    raise NotImplementedError
