"""Two steps that the noise laws share: filling an array by rejection, and fair signs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dpcore.arrays import Booleans, Integers
from dpcore.sampling.source import RandomSource

_BLOCK = 1 << 13
"""Trials at a time: few enough for the cache, enough for numpy to be fast (measured)."""


def fill(size: int, attempt: Callable[[int], Integers], *shape: int) -> Integers:
    """Draw (size, *shape) numbers by rejection.

    ``attempt(n)`` makes about n independent trials and returns the accepted numbers.  All of them have
    the same law, so it does not matter which ones are used.
    """
    result = np.empty((size, *shape), dtype=np.int64)
    filled = 0
    while filled < size:
        accepted = attempt(min(size - filled, _BLOCK))[: size - filled]
        result[filled : filled + len(accepted)] = accepted
        filled += len(accepted)
    return result


def with_signs(magnitudes: Integers, source: RandomSource) -> Integers:
    """The magnitudes, each with a fair sign."""
    return np.where(_fair_coins(magnitudes.size, source), -magnitudes, magnitudes)


def with_signs_but_one_zero(magnitudes: Integers, source: RandomSource) -> Integers:
    """Give the magnitudes fair signs, and drop -0: fewer numbers than given, for laws on k >= 0.

    Zero belongs to both halves of a symmetric law; accepted with both signs it would be twice as likely
    as it should be.
    """
    minus = _fair_coins(magnitudes.size, source)
    return np.where(minus, -magnitudes, magnitudes)[~minus | (magnitudes > 0)]


def _fair_coins(size: int, source: RandomSource) -> Booleans:
    """Draw (size,) fair coins, from one bit each."""
    words = source.words(-(-size // 64))
    return np.unpackbits(words.view(np.uint8), count=size).view(np.bool_)
