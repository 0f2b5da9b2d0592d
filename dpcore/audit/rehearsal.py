"""Sources of randomness for audits: their draws cannot be published."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpcore.sampling.source import RandomSource


class Rehearsal:
    """The words of any source, marked as not fit for publication."""

    reproducible = True

    def __init__(self, source: RandomSource) -> None:
        self._source = source

    def words(self, size: int) -> NDArray[np.uint64]:
        return self._source.words(size)


def fast_generator(source: RandomSource) -> np.random.Generator:
    """A fast generator seeded from the source, for simulated mechanisms."""
    return np.random.Generator(np.random.SFC64(source.words(4).tolist()))
