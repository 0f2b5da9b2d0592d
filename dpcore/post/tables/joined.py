"""Combine several draws into one best estimate of a table that more than one of them measures.

Attributes of one agreement may be columns of another, in another order.  All measurements are
independent, so they are combined like those of one draw (``consistency``).

>>> import numpy as np
>>> one = Agreement((2,), [Margin((0,), np.array([7.0, 3.0]), 1.0)], 10.0)
>>> other = Agreement((3, 2), [Margin((0, 1), np.array([[4.0, 0], [2, 1], [2, 1]]), 1.0)], 10.0)
>>> both = joined([(one, ("sex",)), (other, ("age", "sex"))], ("sex",))
>>> both.margin((0,)).table.round(3).tolist(), round(both.margin((0,)).variance, 3)
([7.25, 2.75], 0.375)
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from dpcore.arrays import Floats
from dpcore.post.tables.consistency import Agreement, common_total
from dpcore.post.tables.margins import Attributes, Margin, Residual

Keys = Sequence[Hashable]
"""A key for each attribute of an agreement; equal keys mean the same column with the same cells."""


def joined(parts: Sequence[tuple[Agreement, Keys]], first: Keys) -> Agreement:
    """One agreement with all measurements of several; its first attributes are those of ``first``."""
    sizes: dict[Hashable, int] = {}
    for agreement, keys in parts:
        sizes |= dict(zip(keys, agreement.sizes, strict=True))
    order = [*first, *(key for key in sizes if key not in first)]
    place = {key: i for i, key in enumerate(order)}
    measured: list[Margin | Residual] = []
    for agreement, keys in parts:
        measured += [_renumbered(each, [place[key] for key in keys]) for each in agreement.measured]
    total = common_total(agreement for agreement, _ in parts)
    return Agreement(tuple(sizes[key] for key in order), measured, total)


def _renumbered(measured: Margin | Residual, places: Sequence[int]) -> Margin | Residual:
    attributes: Attributes = tuple(places[a] for a in measured.attributes)
    order = np.argsort(attributes)
    axes = [*order, *range(len(order), measured.table.ndim)]
    table: Floats = np.transpose(measured.table, axes)
    return measured._replace(attributes=tuple(sorted(attributes)), table=table)
