"""A noisy statistic as a published table, and back.

Everything in a bundle is computed from the draws and the plan, so both together reproduce it.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcore.line.statistic import Noisy
from dpcore.releases.table import Table, TableColumn


def draw_table(name: str, noisy: Noisy) -> Table:
    """The table of a draw: one row per value, in the order of the release's statistic."""
    columns = [TableColumn("value", noisy.values, "Noisy value, as the mechanism drew it")]
    if noisy.cells is not None:
        columns.insert(0, TableColumn("cell", noisy.cells, "Number of the cell, row-major"))
    return Table("draws", name, columns)


def noisy_of(columns: Mapping[str, NDArray[Any]]) -> Noisy:
    """The draw behind the columns of its table."""
    cells = columns.get("cell")
    values = np.asarray(columns["value"], dtype=np.int64)
    return Noisy(values, None if cells is None else np.asarray(cells, dtype=np.int64))
