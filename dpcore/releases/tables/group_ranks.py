"""Ranks of records inside groups of cells that preserve the correlation of amounts.

Two income columns may each have a tenth of the records in the group of the largest amounts.  With random
cells inside these groups, the columns would hardly be correlated there.  Ranks inside groups are assumed
to be related as the groups are: by the normal copula of ``dpcore.post.records.ranks``.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dpcore.arrays import Booleans, Floats, Integers
from dpcore.domain.axes import Axis, Bins, in_order
from dpcore.domain.domain import Domain
from dpcore.post.records.ranks import positions_in_bins
from dpcore.releases.abilities import blocks_of


def ranks_in_groups(
    domain: Domain, codes: Integers, groups: Mapping[int, Integers], generator: np.random.Generator
) -> dict[int, Floats]:
    """For each merged numeric column, its groups with a position (rows,) from 0 to below 1 in each.

    Args:
        domain: the columns in their own cells.
        codes: (rows, columns) groups of records, or cells of columns that are not merged.
        groups: (size,) by position of a merged column, the group of each of its cells.
        generator: an ordinary one, because nothing here is private.
    """
    numbers = [place for place, axis in enumerate(domain.axes) if in_order(axis)]
    if not {*numbers} & {*groups}:
        return {}
    telling = [_telling(domain.axes[place], groups.get(place)) for place in numbers]
    blocks = np.array_split(codes[:, numbers], len(blocks_of(len(codes))))
    found = [positions_in_bins(block, telling, generator) for block in blocks]
    positions = np.concatenate(found)  # evenly spread in each block, so also in all together
    ranked = zip(numbers, positions.T, strict=True)
    return {place: codes[:, place] + inside for place, inside in ranked if place in groups}


def _telling(axis: Axis, groups: Integers | None) -> Booleans:
    """Which groups (groups,) of cells (size,) show how numbers are related to other columns: neither
    null, nor a value with its own cell, such as zero."""
    each = np.arange(axis.size) if groups is None else groups
    points = each[list(axis.points) if isinstance(axis, Bins) else []]
    return ~np.isin(np.arange(each[: axis.size - axis.nullable].max() + 1), points)
