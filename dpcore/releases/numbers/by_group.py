"""Groups of records by the values of public columns, all listed beforehand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcore.arrays import Integers
from dpcore.domain.axes import Axis, Grid
from dpcore.domain.domain import Domain
from dpcore.releases.machines.features import nulls_and_codes

MOST_GROUPS = 4096
"""The most groups. With more groups, all numbers would be noise."""


def require_groups(axes: tuple[Axis, ...], most: int = MOST_GROUPS, each: str = "") -> None:
    """Raise ``ValueError`` if columns define no groups, or more than ``most``; null is a separate group.

    ``each``: what each group gets, if this limits the number of groups.
    """
    for axis in axes:
        if isinstance(axis, Grid) and not axis.integer:
            raise ValueError(
                f"by: {axis.name!r} has real numbers; choose a column of categories or whole numbers"
            )
    groups, names = Domain(axes).size, ", ".join(repr(axis.name) for axis in axes)
    if groups > MOST_GROUPS:
        raise ValueError(
            f"by: {names} has {groups} groups, more than {MOST_GROUPS}; choose a coarser column"
        )
    if groups > most:
        raise ValueError(f"by: {groups} groups are too many for a {each} each; use at most {most}")


def groups_of(by: Domain, values: Sequence[NDArray[Any]], size: int) -> Integers:
    """The groups (size,) of values of the grouping columns; without such columns there is one group."""
    codes = [group_codes(axis, each) for axis, each in zip(by.axes, values, strict=True)]
    return by.pack(np.reshape(codes, (len(codes), size)).T)


def group_codes(axis: Axis, values: NDArray[Any]) -> Integers:
    """The codes (k,) of values (k,) of a grouping column; a null is masked, None or NaN.

    Raises ``ValueError`` if a value is not on the axis.
    """
    nulls, codes = nulls_and_codes(axis, values)
    if codes is None:
        assert isinstance(axis, Grid)
        codes = np.full(len(nulls), axis.size - 1)
        places = np.ma.getdata(values)[~nulls].astype(np.float64) - axis.lower
        if not np.all((places >= 0) & (places < axis.cells) & (places == np.floor(places))):
            raise ValueError(
                f"points: {axis.name} must be a whole number from {axis.lower:.15g} to"
                f" {axis.upper - 1:.15g}"
            )
        codes[~nulls] = places.astype(np.int64)
    return codes
