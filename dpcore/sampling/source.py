"""The one door for randomness.

Everything random on the private side takes a ``RandomSource`` and asks it for 64-bit words, so to
know where the noise comes from is to read this file.  Production has one source, the operating
system, and no seed.  Tests inject ``SeededSource``; what is drawn with it is marked reproducible,
and publication refuses it.
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
        """Whether somebody else could draw the same words again."""
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
    """A reproducible stream, for tests alone: it protects nobody."""

    reproducible = True

    def __init__(self, seed: int) -> None:
        self._bits = np.random.Philox(seed)

    def words(self, size: int) -> NDArray[np.uint64]:
        return self._bits.random_raw(size).astype(np.uint64, copy=False)
