"""The one source of randomness.

Everything random on the private side takes a ``RandomSource`` and asks it for 64-bit words, so this
file shows where all noise comes from.  Production has one source, the operating system, and no seed.
Tests, forecasts and audits of made-up tables use ``SeededSource``; its draws are marked reproducible,
and publication refuses them.
"""

from __future__ import annotations

import os
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


class RandomSource(Protocol):
    """A stream of independent uniform 64-bit words."""

    @property
    def reproducible(self) -> bool:
        """Whether the same words could be drawn again."""
        ...

    def words(self, size: int) -> NDArray[np.uint64]:
        """``size`` independent words, uniform on {0, ..., 2**64 - 1}."""
        ...


class SystemSource:
    """The operating system's cryptographic generator: the only source in production."""

    reproducible = False

    def words(self, size: int) -> NDArray[np.uint64]:
        return np.frombuffer(os.urandom(8 * size), dtype=np.uint64)


class SeededSource:
    """A reproducible stream for draws that are never published, because it gives no privacy."""

    reproducible = True

    def __init__(self, seed: int) -> None:
        self._bits = np.random.Philox(seed)

    def words(self, size: int) -> NDArray[np.uint64]:
        return self._bits.random_raw(size).astype(np.uint64, copy=False)
