"""The coordinates of records in the space of a kernel, by public rules.

    numbers           one coordinate, scaled to [0, 1]
    text categories   one coordinate per category, 1/sqrt(2) for the record's own and 0 for the
                      others, so that two different categories lie at distance 1
    null              in a numeric column: the middle of the scale, and 1 in a separate coordinate
                      that is 0 otherwise, so at distance 1 to 1.12 from every value; in a text
                      column: one more category

Every record has coordinates, so a machine's sensitivity is the same with and without nulls.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcore.arrays import Booleans, Floats, Integers
from dpcore.domain.axes import Axis, Bins, Categories, Grid
from dpcore.releases.base import outside
from dpcore.releases.table import TableColumn

LARGEST_AXIS = 2**24
"""The most values that a numeric feature may have."""

MOST_CATEGORIES = 64
"""The most categories of a text feature, because each is a dimension of the kernel's space."""


def scaled_positions(axis: Axis) -> Floats:
    """The position of each code of an axis: (size,) on [0, 1], or (size, coordinates).

    Raises ``ValueError`` if the axis cannot be a feature.
    """
    if isinstance(axis, Bins):
        raise ValueError(f"features: {axis.name} is binned; a kernel needs its values")
    require_few(axis, LARGEST_AXIS if ordered(axis) else MOST_CATEGORIES)
    if not ordered(axis):
        return np.asarray(np.eye(axis.size) / np.sqrt(2))
    if isinstance(axis, Grid):
        values = (np.arange(axis.cells) + 0.5) / axis.cells
    else:
        lower, width = scaling(axis)
        values = np.asarray((np.asarray(axis.categories, dtype=np.float64) - lower) / width)
    if not axis.nullable:
        return values
    return np.column_stack([np.r_[values, 0.5], np.arange(axis.size) == len(values)])


def nulls_and_codes(axis: Axis, values: NDArray[Any]) -> tuple[Booleans, Integers | None]:
    """Which of the values (k,) of a column are null, and their codes if it has categories.

    A null is masked, None or NaN.  Raises ``ValueError`` if a value is not on the axis.
    """
    null = np.ma.getmaskarray(np.ma.asarray(values)) | np.array(
        [value is None or value != value for value in np.ma.getdata(values).tolist()], dtype=bool
    )
    if null.any() and not axis.nullable:
        raise ValueError(f"points: {axis.name} has no nulls")
    if not isinstance(axis, Categories):
        return null, None
    places = {category: code for code, category in enumerate(axis.categories)}
    given = np.ma.getdata(values)[~null].tolist()
    unknown = [value for value in given if value not in places]
    if unknown:
        raise ValueError(f"points: {axis.name} has no category {unknown[0]!r}")
    codes = np.full(len(null), axis.size - 1)
    codes[~null] = [places[value] for value in given]
    return null, codes


def scaled_values(axis: Axis, values: NDArray[Any]) -> Floats:
    """The positions of values (k,), in their column's own units: (k,) or (k, coordinates), as above.

    A null is masked, None or NaN.  Raises ``ValueError`` if a value is not on the axis.
    """
    null, codes = nulls_and_codes(axis, values)
    if codes is not None:
        return np.asarray(scaled_positions(axis)[codes])
    numbers = np.ma.getdata(values)[~null].astype(np.float64)
    lower, width = scaling(axis)
    if not np.all((numbers >= lower) & (numbers <= lower + width)):
        raise outside(axis, lower, lower + width)
    scaled = np.full(len(null), 0.5)
    scaled[~null] = (numbers - lower) / width
    return np.column_stack([scaled, null]) if axis.nullable else scaled


def require_few(axis: Axis, most: int) -> None:
    """Raise ``ValueError`` if a feature has more than ``most`` values."""
    if axis.size > most:
        raise ValueError(
            f"features: {axis.name} has {axis.size:,} values, but may have at most {most:,}; leave it"
            " out, or choose a column of fewer"
        )


def require_names_apart(axes: Sequence[Axis]) -> None:
    """Raise ``ValueError`` if two coordinates of the features would have the same name in a table."""
    names = Counter(name for axis in axes for name in coordinate_names(axis))
    if twice := [name for name, times in names.items() if times > 1]:
        raise ValueError(
            f"features: two of them have a coordinate {twice[0]!r} in the published table; rename a"
            " column"
        )


def coordinate_names(axis: Axis) -> list[str]:
    """The names of the coordinates that a feature has in the kernel's space."""
    null = [f"{axis.name} is null"] if axis.nullable else []
    if isinstance(axis, Categories) and not ordered(axis):
        return [f"{axis.name}={category}" for category in axis.categories] + null
    return [axis.name, *null]


def wave_columns(
    axes: Sequence[Axis],
    frequencies: Floats,
    coefficients: Floats,
    error: float,
    at: str,
    note: str = "",
) -> list[TableColumn]:
    """The columns of a published sum of k waves: the ``frequencies`` (coordinates, k), and the noisy
    ``coefficients`` (2 k,) of the cosine and sine of ``at`` with their standard error."""
    names = [name for axis in axes for name in coordinate_names(axis)]
    cosines, sines = np.split(coefficients, 2)
    about = f"Standard deviation of the noise in each of cos and sin{note}"
    return [
        *(
            TableColumn(f"w_{name}", row, f"Frequency along the coordinate {name}")
            for name, row in zip(names, frequencies, strict=True)
        ),
        TableColumn("cos", cosines, f"Noisy coefficient of cos({at})"),
        TableColumn("sin", sines, f"Noisy coefficient of sin({at})"),
        TableColumn("standard_error", np.full(len(cosines), error), about),
    ]


def coordinates(axis: Axis) -> dict[str, object]:
    """The rule from a value to its coordinates, as JSON."""
    if not ordered(axis):
        rule = "1/sqrt(2) for the category, 0 for others"
        return {"names": coordinate_names(axis), "rule": rule}
    lower, width = scaling(axis)
    facts = {"lower": lower, "width": width, "rule": "(value - lower) / width"}
    null = {"null": f"0.5, and 1 in the coordinate '{axis.name} is null', which is otherwise 0"}
    return facts | (null if axis.nullable else {})


def ordered(axis: Axis) -> bool:
    """Whether the values of an axis are numbers."""
    return not isinstance(axis, Categories) or all(
        isinstance(c, int | float) and not isinstance(c, bool) for c in axis.categories
    )


def scaling(axis: Axis) -> tuple[float, float]:
    """(lower, width): a value v of the column is scaled to (v - lower) / width."""
    if isinstance(axis, Categories):
        values = [float(c) for c in axis.categories]
        return min(values), (max(values) - min(values)) or 1.0
    if axis.integer:  # whole number v sits at the middle of [v, v + 1)
        return axis.lower - 0.5, axis.upper - axis.lower
    return axis.lower, axis.upper - axis.lower
