"""The three kinds of array in signatures; docstrings give their shapes."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Booleans = NDArray[np.bool_]


def wide(counts: Integers, most: int) -> NDArray[Any]:
    """Counts (...,) unchanged, or as Python integers if their sum exceeds ``most``.

    Sums over more than ``most`` records might overflow 64 bits; Python integers never do.
    """
    return counts.astype(object) if counts.sum() > most else counts
