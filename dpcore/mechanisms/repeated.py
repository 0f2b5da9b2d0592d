"""Many independent draws of one mechanism at once, for audits: never for publication."""

from __future__ import annotations

from dataclasses import dataclass, replace

from dpcore.arrays import Integers
from dpcore.errors import PrivacyLineError
from dpcore.line.mechanism import Event, Mechanism
from dpcore.line.statistic import Noisy
from dpcore.sampling.source import RandomSource


@dataclass(frozen=True)
class Repeated(Mechanism):
    """``times`` independent draws of ``once``: copy i of cell c is cell ``i * size + c``.

    The privacy line hands it one statistic.  It states the event of a single draw, which is what an
    audit is about, and so more than one draw needs a source whose draws cannot be published.  Of a
    dense statistic treated cell by cell only the ``watched`` cells (cells,) are drawn, if given.
    """

    once: Mechanism
    times: int
    watched: Integers | None = None

    @classmethod
    def of(cls, once: Mechanism, times: int, watched: Integers | None = None) -> Repeated:
        return cls(once.size, once, times, watched)

    @property
    def sparse(self) -> bool:  # type: ignore[override]
        return self.once.sparse

    @property
    def words(self) -> tuple[int, ...]:
        return self.once.words

    @property
    def event(self) -> Event:
        return self.once.event

    def draw(self, values: Integers, cells: Integers | None, source: RandomSource) -> Noisy:
        if self.times != 1 and not source.reproducible:
            raise PrivacyLineError("draws are repeated in a rehearsal only")
        once = self.once
        if self.watched is not None:
            once, values = replace(once, size=len(self.watched)), values[self.watched]
        return once.repeat(values, cells, self.times, source)
