"""What the privacy line asks of a mechanism."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dpcore.events import Event
from dpcore.sampling.source import RandomSource
from dpcore.statistic import Noisy

Interval = tuple[float, float]


class Mechanism(Protocol):
    """What makes integer statistics over ``size`` public cells private."""

    @property
    def size(self) -> int:
        """The number of public cells."""
        ...

    @property
    def sparse(self) -> bool:
        """Whether the statistic comes as occupied cells only."""
        ...

    @property
    def event(self) -> Event:
        """What the ledger records."""
        ...

    def draw(
        self,
        values: NDArray[np.int64],
        cells: NDArray[np.int64] | None,
        source: RandomSource,
    ) -> Noisy:
        """The noisy statistic.  Called by the privacy line alone."""
        ...


class AdditiveMechanism(Mechanism, Protocol):
    """A mechanism that adds noise of one law to every cell."""

    @property
    def stddev(self) -> float:
        """Standard deviation of the noise on one cell."""
        ...

    def half_width(self, level: float) -> float:
        """The least t with P(|noise| <= t) >= level, for one cell."""
        ...
