"""What a release takes to run, from public sizes alone, on a machine like the one that was measured.

``python -m benchmarks.scale.work`` compares what is stated with what a run took.  Seconds are of the
processor.
"""

from __future__ import annotations

from dataclasses import dataclass

PUBLISHED = 2e-5
"""Seconds for each published number: noise, errors, replicates, files."""

PUBLISHED_BYTES, REPLICATED_BYTES = 250, 900
"""For each published number, and in addition for its replicates."""

MOST_REPLICATED = 2**22
"""Releases of this many numbers or more have fewer replicates, or none."""


@dataclass(frozen=True)
class Work:
    """Processor seconds, and bytes at the peak besides the program itself."""

    seconds: float = 0.0
    bytes: float = 0.0

    def __add__(self, other: Work) -> Work:
        """Of one after the other.

        >>> Work(3, 500) + Work(1, 900)
        Work(seconds=4, bytes=900)
        """
        return Work(self.seconds + other.seconds, max(self.bytes, other.bytes))


def publishing(numbers: float) -> Work:
    """To draw and publish this many numbers."""
    again = REPLICATED_BYTES * numbers if numbers < MOST_REPLICATED else 0.0
    return Work(PUBLISHED * numbers, PUBLISHED_BYTES * numbers + again)
