"""The time and memory of a release, from public sizes only, on a machine like the measured one.

``python -m benchmarks.scale.work`` compares these figures with real runs.  Seconds are CPU time.
"""

from __future__ import annotations

from dataclasses import dataclass

PUBLISHED = 2e-5
"""CPU seconds for each published number: noise, errors, replicates, files."""

PUBLISHED_BYTES, REPLICATED_BYTES = 250, 900
"""Bytes for each published number, and additional bytes for its replicates."""

MOST_REPLICATED = 2**22
"""With at least this many numbers, a release has fewer replicates, or none."""


@dataclass(frozen=True)
class Work:
    """CPU seconds, and peak memory in bytes without the program itself."""

    seconds: float = 0.0
    bytes: float = 0.0

    def __add__(self, other: Work) -> Work:
        """The work of two tasks, one after the other.

        >>> Work(3, 500) + Work(1, 900)
        Work(seconds=4, bytes=900)
        """
        return Work(self.seconds + other.seconds, max(self.bytes, other.bytes))


def publishing(numbers: float) -> Work:
    """The work of drawing and publishing this many numbers."""
    again = REPLICATED_BYTES * numbers if numbers < MOST_REPLICATED else 0.0
    return Work(PUBLISHED * numbers, PUBLISHED_BYTES * numbers + again)
