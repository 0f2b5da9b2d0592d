"""Two small parts that the noise laws share: filling an array by rejection, and fair signs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from dpcore.sampling.source import RandomSource

_BLOCK = 1 << 13
"""Trials at a time: few enough for the cache, enough to make calls to numpy worth it (measured)."""


def fill(size: int, attempt: Callable[[int], NDArray[np.int64]]) -> NDArray[np.int64]:
    """(size,) draws from ``attempt``, which makes n independent trials and returns the accepted.

    Trials are alike and independent, so which of them are kept does not change the law.
    """
    result = np.empty(size, dtype=np.int64)
    filled = 0
    while filled < size:
        accepted = attempt(min(size - filled, _BLOCK))
        result[filled : filled + accepted.size] = accepted
        filled += accepted.size
    return result


def with_signs(magnitudes: NDArray[np.int64], source: RandomSource) -> NDArray[np.int64]:
    """The magnitudes, each with a fair sign."""
    return np.where(_fair_coins(magnitudes.size, source), -magnitudes, magnitudes)


def with_signs_once_zero(magnitudes: NDArray[np.int64], source: RandomSource) -> NDArray[np.int64]:
    """The same for one half of a symmetric law, cut at zero: -0 is rejected.

    Zero belongs to both halves; kept with either sign it would come twice as often as it should.
    """
    minus = _fair_coins(magnitudes.size, source)
    return np.where(minus, -magnitudes, magnitudes)[~minus | (magnitudes > 0)]


def _fair_coins(size: int, source: RandomSource) -> NDArray[np.bool_]:
    """(size,) fair coins, one bit each."""
    words = source.words(-(-size // 64))
    return np.unpackbits(words.view(np.uint8), count=size).view(np.bool_)
