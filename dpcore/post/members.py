"""Wide records of units as two linked tables, of units and of their members.

    size  age.1  age.2            number  size        number  place  age
    2     34     31     ------->  1       2      and  1       1      34
    1     80     null             2       1           1       2      31
                                                      2       1      80

Every member has a unit, and every unit as many members as its size states, whatever the columns of
absent members contain.

>>> number, place, (ages,) = members_of(np.array([2, 1]), [[np.array([34, 80]), np.array([31, 0])]])
>>> number.tolist(), place.tolist(), ages.tolist()
([1, 1, 2], [1, 2, 1], [34, 31, 80])
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcore.arrays import Integers


def members_of(
    sizes: Integers, columns: Sequence[Sequence[NDArray[Any]]]
) -> tuple[Integers, Integers, list[NDArray[Any]]]:
    """For each member, the number of its unit and its position in it, both from 1, and its columns.

    ``sizes``: (units,) members of each unit; ``columns``: for each column of members one array (units,)
    per position.  All results are (members,), ordered by unit and position; nulls stay masked.
    """
    most = max((len(places) for places in columns), default=0)
    there = np.arange(1, most + 1) <= np.asarray(sizes)[:, None]
    number, place = (at + 1 for at in np.nonzero(there))
    found = []
    for places in columns:
        values = np.ma.stack(list(places), axis=1)[there]
        found.append(values if np.ma.is_masked(values) else np.asarray(values))
    return number, place, found
