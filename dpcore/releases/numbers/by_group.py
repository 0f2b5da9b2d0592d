"""Groups of records: by the values of public columns, all of which are listed beforehand."""

from __future__ import annotations

from dpcore.domain.axes import Axis, Grid
from dpcore.domain.domain import Domain

MOST_GROUPS = 4096
"""A number for each of more groups would be noise."""


def require_groups(axes: tuple[Axis, ...]) -> None:
    """Raise ``ValueError`` where columns have no groups, or too many; null is a group of its own."""
    for axis in axes:
        if isinstance(axis, Grid) and not axis.integer:
            raise ValueError(
                f"by: {axis.name!r} has real numbers; choose a column of categories or whole numbers"
            )
    groups, names = Domain(axes).size, ", ".join(repr(axis.name) for axis in axes)
    if groups > MOST_GROUPS:
        raise ValueError(
            f"by: {names} has {groups} groups, and {MOST_GROUPS} are the most; choose a coarser column"
        )
