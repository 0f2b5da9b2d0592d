"""Many independent draws of one mechanism at once, for audits: never for publication."""

from __future__ import annotations

from dataclasses import dataclass, replace

from dpcore.arrays import Integers
from dpcore.errors import PrivacyLineError
from dpcore.line.mechanism import Event, Mechanism
from dpcore.line.statistic import Noisy, Statistic
from dpcore.sampling.source import RandomSource


@dataclass(frozen=True)
class Repeated(Mechanism):
    """``times`` independent draws of ``once``: copy i of cell c is cell ``i * size + c``, or, if cells
    have several words, the cell with the words (i, *c).

    The privacy line passes it one statistic.  Its event is the event of a single draw, because an audit
    examines single draws; so several draws need a source whose draws cannot be published.  If
    ``watched`` (cells,) is given, only these cells of a dense statistic are drawn.
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

    def draw(self, statistic: Statistic, source: RandomSource) -> Noisy:
        if self.times != 1 and not source.reproducible:
            raise PrivacyLineError(
                "repeated draws are only for audits: use a reproducible random source, or times = 1"
            )
        once = self.once
        if self.watched is not None:
            once, statistic = replace(once, size=len(self.watched)), statistic.at(self.watched)
        return once.repeat(statistic, self.times, source)
