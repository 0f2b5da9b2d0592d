"""A noisy statistic as a published table, and back.

Everything in a bundle is made of the draws and the plan; who has both can make all of it again.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcore.releases.base import Table
from dpcore.statistic import Noisy


def draw_table(name: str, noisy: Noisy) -> Table:
    """The table of a draw: one row per value, in the order of the release's statistic."""
    cells = {} if noisy.cells is None else {"cell": noisy.cells}
    descriptions = {} if noisy.cells is None else {"cell": "Number of the cell, row-major"}
    return Table(
        "draws",
        name,
        cells | {"value": noisy.values},
        descriptions | {"value": "Noisy value, as the mechanism drew it"},
    )


def noisy_of(columns: Mapping[str, NDArray[Any]]) -> Noisy:
    """The draw behind the columns of its table."""
    cells = columns.get("cell")
    values = np.asarray(columns["value"], dtype=np.int64)
    return Noisy(values, None if cells is None else np.asarray(cells, dtype=np.int64))
