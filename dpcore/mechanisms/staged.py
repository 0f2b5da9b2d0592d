"""A choice from the records, and then a mechanism that depends on it: two draws, committed as one.

The statistic is the tally itself.  The first step is drawn from it; its noisy result, which is public,
says what the second step is, and that is drawn from the same tally.  Each step crosses the privacy
line by itself and is held to a share of its own there, so that both together cost the sum of the
shares, however the second step depends on the first (adaptive basic composition).

    result   what was chosen, then the second draw, then zeros up to a public length

It is one draw to the ledger: a retry finds the choice and what was drawn at it together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dpcore.budget import Budget
from dpcore.domain import Domain, Tally
from dpcore.events import StagedEvent
from dpcore.mechanisms.base import Mechanism
from dpcore.sampling.source import RandomSource
from dpcore.statistic import Exact, Noisy


class Step(Protocol):
    """What a release is to the privacy line."""

    @property
    def share(self) -> Budget: ...

    @property
    def mechanism(self) -> Mechanism: ...

    def statistic(self, tally: Tally) -> Exact: ...


class Steps(Protocol):
    """A first step, and the second one by what was chosen."""

    @property
    def choice(self) -> Step: ...

    @property
    def rest(self) -> Budget:
        """The share of the second step, whatever was chosen."""
        ...

    def after(self, choice: Noisy) -> Step: ...


@dataclass(frozen=True)
class Staged:
    """A choice, and a mechanism that depends on it: (alpha, beta)-DP for the sums of both shares.

    ``steps`` on the tally of ``domain``; ``chosen`` numbers, then ``longest`` at most.
    """

    steps: Steps
    domain: Domain
    chosen: int
    longest: int

    sparse = True

    @property
    def size(self) -> int:
        return self.domain.size

    @property
    def event(self) -> StagedEvent:
        choice, rest = self.steps.choice, self.steps.rest
        kind = choice.mechanism.event.kind
        return StagedEvent(kind, choice.share.alpha, choice.share.beta, rest.alpha, rest.beta)

    def draw(
        self, values: NDArray[np.int64], cells: NDArray[np.int64] | None, source: RandomSource
    ) -> Noisy:
        from dpcore.privacy_line import perturb  # it calls this; each step crosses it again

        assert cells is not None  # the privacy line checks the layout
        tally, first = Tally(self.domain, cells, values), self.steps.choice
        choice = perturb(first.statistic(tally), first.mechanism, first.share, source)
        second = self.steps.after(choice)
        drawn = perturb(second.statistic(tally), second.mechanism, self.steps.rest, source)
        result = np.zeros(self.chosen + self.longest, dtype=np.int64)
        result[: self.chosen] = choice.values
        result[self.chosen : self.chosen + len(drawn.values)] = drawn.values
        return Noisy(result, reproducible=source.reproducible)
