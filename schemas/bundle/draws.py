"""A noisy statistic as a published table, and back.

Everything in a bundle is computed from the draws and the plan, so both together reproduce it.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcore.domain.words import in_words
from dpcore.line.statistic import Noisy
from dpcore.releases.table import Table, TableColumn


def draw_table(name: str, noisy: Noisy) -> Table:
    """The table of a draw: one row per value, in the order of the release's statistic."""
    columns = [TableColumn("value", noisy.values, "Noisy value, as the mechanism drew it")]
    if noisy.cells is not None and noisy.cells.ndim == 1:
        columns.insert(0, TableColumn("cell", noisy.cells, "Number of the cell, row-major"))
    elif noisy.cells is not None:
        columns = [
            *(
                TableColumn(
                    f"cell_{i}",
                    word,
                    f"Word {i} of the cell's number",
                )
                for i, word in enumerate(noisy.cells.T, 1)
            ),
            *columns,
        ]
    return Table("draws", name, columns)


def noisy_of(columns: Mapping[str, NDArray[Any]]) -> Noisy:
    """The draw, read back from the columns of its table."""
    words = [np.asarray(c, dtype=np.int64) for name, c in columns.items() if name != "value"]
    values = np.asarray(columns["value"], dtype=np.int64)
    return Noisy(values, in_words(np.stack(words)) if words else None)
