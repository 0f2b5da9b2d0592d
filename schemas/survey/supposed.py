"""Assumed distributions of a survey's answers, from the plan's description of its columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from dpcore.advice.typical import Shape, typical_shares
from dpcore.arrays import Floats
from dpcore.domain.axes import Axis
from schemas.survey.cells import ALIKE, MOST_VALUES, is_measure
from schemas.survey.columns import CategoricalColumn, Column
from schemas.survey.reading import part_of_date

EITHER = 30
"""Without a unit, whole numbers from zero to less than this may be events or scores; then the shape of
amounts, which is between both, is assumed."""

QUANTITIES = (
    *("minute", "hour", "week", "month", "metre", "km", "kilometre", "mile", "gram", "litre"),
    *("dollar", "usd", "eur", "pound", "gbp", "franc", "krone", "peso", "rupee", "yen", "yuan"),
    *("hundred", "thousand", "million", "word", "item"),
)
"""Beginnings of the units of amounts and scores. Unlike events, most people have some."""


def supposed_shares(columns: Mapping[str, Column], axes: Iterable[Axis]) -> dict[str, Floats]:
    """The assumed shares (cells,) by column, typical for its type, bounds and unit."""
    return {axis.name: typical_shares(axis, _shape(columns.get(axis.name))) for axis in axes}


def _shape(column: Column | None) -> Shape:
    """The assumed shape of a column's distribution between its bounds."""
    if column is None or isinstance(column, CategoricalColumn) or part_of_date(column):
        return "around"
    lower, upper = column.bounds
    if not 0 <= lower <= upper / ALIKE or is_measure(column.unit):
        return "around"
    # Without a unit, 0 to 12 or 24 may be years of schooling or numbers of visits.
    unit = column.unit.lower()
    counted = not unit.startswith(QUANTITIES) if unit else upper >= EITHER
    events = column.type == "integer" and lower == 0 and upper <= MOST_VALUES and counted
    return "events" if events else "amounts"
