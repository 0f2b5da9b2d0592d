"""The cells in which a model reads the numbers of its columns: as fine as the plan states, if possible.

Terms are computed in all cells of their columns, so columns that one term combines have at most
``MOST_CELLS`` cells together.  Beyond that, numbers are rounded to fewer equal cells.  Point masses stay
exact, and so does zero among whole numbers, as conditions such as ``{debt > 0}`` need it.
"""

import math
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

from dpcore.domain.axes import Axis, Grid
from dpcore.errors import InputError
from dpcore.releases.models.terms import MOST_CELLS
from schemas.releases.formulas import columns_together
from schemas.survey.columns import Column, ContinuousColumn, IntegerColumn

MOST_ALONE = 65536
"""The most cells of whole numbers that are rounded, as of real numbers."""

ROUNDING = 1e-9
"""Above the rounding error of a root that is a whole number."""


def axes_of(formula: str, columns: Mapping[str, Column]) -> list[Axis]:
    """The axes of a formula's columns, in the order of ``columns``.

    Raises ``ValueError`` if the formula cannot be read.
    """
    exact = {name: _exact(name, column) for name, column in columns.items()}
    if math.prod(_size(axis) for axis in exact.values()) <= MOST_CELLS:
        return [*exact.values()]
    try:
        together = columns_together(formula, [*exact.values()])
    except InputError as error:
        raise ValueError(f"formula: {error}") from None
    most = dict.fromkeys(columns, MOST_CELLS)
    for names in together:
        sizes = {name: _size(exact[name]) for name in names}
        numbers = [name for name in names if _number(exact[name])]
        if math.prod(sizes.values()) > MOST_CELLS and numbers:
            left = MOST_CELLS / math.prod(sizes[name] for name in {*names} - {*numbers})
            for name in numbers:
                each = math.floor(max(left, 1) ** (1 / len(numbers)) + ROUNDING)
                most[name] = min(most[name], each, MOST_ALONE)
    return [_rounded(column, exact[name], most[name]) for name, column in columns.items()]


def _size(axis: Axis) -> int:
    return axis.size - axis.nullable


def _number(axis: Axis) -> bool:
    return isinstance(axis, Grid)


def _exact(name: str, column: Column) -> Axis:
    """The cells that the plan states. Each point mass has a separate cell."""
    axis = column.axis(name)
    if isinstance(column, ContinuousColumn) and isinstance(axis, Grid):
        return replace(axis, points=tuple(map(float, column.point_masses)))
    return axis


def _rounded(column: Column, axis: Axis, most: int) -> Axis:
    """The axis with at most so many cells, if it has numbers."""
    if not isinstance(axis, Grid) or _size(axis) <= most:
        return axis
    if not isinstance(column, IntegerColumn):
        return replace(axis, cells=max(most - len(axis.points), 2))
    lower, upper = column.bounds
    points = sorted({*column.point_masses, *({0} if lower <= 0 <= upper else ())})
    return replace(
        axis,
        integer=False,
        upper=upper,
        cells=max(most - len(points), 2),
        step=axis.step or Fraction(1),
        points=tuple(map(float, points)),
    )
