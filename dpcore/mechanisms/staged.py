"""A choice from the records, and then a mechanism that depends on it: two draws, committed as one.

Claim.  Input: the tally of ``domain``.  Neighbours: those of both steps.  Output: what was chosen, then
the draw of the second step at that choice, then zeros up to a public length.  For a choice at
(alpha, beta) and a second step at (alpha', beta') it is (alpha + alpha', beta + beta', 0)-DP, and
(beta + beta')-approximately (alpha^2 + alpha'^2)/2-zCDP.  For steps that are beta- and
beta'-approximately rho- and rho'-zCDP it is (beta + beta')-approximately (rho + rho')-zCDP.

Preconditions.  Each step crosses the privacy line by itself and is held to its own share there,
whatever was chosen; both shares together are covered by the release's (the privacy line checks it).

Proof.  The second step depends on the first one only through its noisy result, which is public: adaptive
basic composition.  An (alpha, beta)-DP step is post-processing of randomised response that reveals all
with chance beta (Kairouz, Oh & Viswanath 2015), so beta-approximately alpha^2/2-zCDP; approximate zCDP
composes adaptively (Bun & Steinke 2016, Lemma 8.2).

Ranges.  Those of both steps.

Source.  Dwork & Roth 2014, section 3.5; Bun & Steinke 2016.

The ledger commits both steps as one draw, so a retry finds the choice together with the second step.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

import numpy as np

from dpcore.accounting.budget import Budget
from dpcore.arrays import Integers
from dpcore.domain.domain import Domain
from dpcore.domain.tally import Tally
from dpcore.line.mechanism import Event, Mechanism, Outputs
from dpcore.line.privacy_line import perturb
from dpcore.line.statistic import Exact, Noisy
from dpcore.mechanisms.repeated import Repeated
from dpcore.sampling.source import RandomSource


@dataclass(frozen=True)
class StagedEvent(Event):
    """A choice, then a mechanism that depends on it; the privacy line held each to its own share.

    ``choice``: the kind of the first event; the second one keeps its share whatever was chosen.  A
    share is in alpha or in rho, and the other one is 0.
    """

    kind = "staged"

    choice: str
    choice_alpha: Fraction
    choice_rho: Fraction
    choice_beta: Fraction
    alpha: Fraction
    rho: Fraction
    beta: Fraction

    @property
    def pure_alpha(self) -> Fraction | None:
        in_alpha = self._beta == 0 and self._rho == 0
        return self.choice_alpha + self.alpha if in_alpha else None

    @property
    def concentrated(self) -> tuple[Fraction, Fraction] | None:
        if min(self._parts) < 0:
            return None
        return (self.choice_alpha**2 + self.alpha**2) / 2 + self._rho, self._beta

    def covered_by(self, share: Budget) -> bool:
        if min(self._parts) < 0 or self._rho > 0:
            return False
        return self.choice_alpha + self.alpha <= share.alpha and self._beta <= share.beta

    @property
    def _parts(self) -> tuple[Fraction, ...]:
        first = self.choice_alpha, self.choice_rho, self.choice_beta
        return *first, self.alpha, self.rho, self.beta

    @property
    def _rho(self) -> Fraction:
        return self.choice_rho + self.rho

    @property
    def _beta(self) -> Fraction:
        return self.choice_beta + self.beta


class StagedRelease(Protocol):
    """The members of a release that the privacy line needs."""

    @property
    def share(self) -> Budget: ...

    @property
    def mechanism(self) -> Mechanism: ...

    def statistic(self, tally: Tally) -> Exact: ...


class Steps(Protocol):
    """A first step, and the second one by what was chosen."""

    @property
    def choice(self) -> StagedRelease: ...

    @property
    def rest(self) -> Budget:
        """The share of the second step, whatever was chosen."""
        ...

    def after(self, choice: Noisy) -> StagedRelease: ...


@dataclass(frozen=True)
class Staged(Mechanism):
    """A choice, and a mechanism that depends on it: (alpha, beta)-DP for the sums of both shares.

    ``steps`` on the tally of ``domain``; ``chosen`` numbers, then ``longest`` at most.
    """

    steps: Steps
    domain: Domain
    chosen: int
    longest: int

    sparse = True

    @property
    def words(self) -> tuple[int, ...]:
        return self.domain.words

    @property
    def numbers(self) -> int:
        """The length of the result."""
        return self.chosen + self.longest

    @property
    def event(self) -> Event:
        choice, rest = self.steps.choice, self.steps.rest
        first = choice.share
        return StagedEvent(
            choice.mechanism.event.kind,
            *(first.alpha, first.rho, first.beta),
            *(rest.alpha, rest.rho, rest.beta),
        )

    def draw(self, values: Integers, cells: Integers | None, source: RandomSource) -> Noisy:
        return self.repeat(values, cells, 1, source)

    def repeat(
        self, values: Integers, cells: Integers | None, times: int, source: RandomSource
    ) -> Noisy:
        assert cells is not None  # the privacy line checks the layout
        tally, first = Tally(self.domain, cells, values), self.steps.choice
        choosing = Repeated.of(first.mechanism, times)
        chosen = perturb(first.statistic(tally), choosing, first.share, source).values
        result = np.zeros((times, self.numbers), dtype=np.int64)
        result[:, : self.chosen] = chosen.reshape(times, -1)
        for second, alike in self._seconds(result[:, : self.chosen]):
            drawing = Repeated.of(second.mechanism, len(alike))
            drawn = perturb(second.statistic(tally), drawing, self.steps.rest, source).values
            drawn = drawn.reshape(len(alike), -1)
            result[alike, self.chosen : self.chosen + drawn.shape[1]] = drawn
        return Noisy(result.ravel(), reproducible=source.reproducible)

    def parts(self, outputs: Outputs) -> Iterator[tuple[StagedRelease, Integers, Outputs]]:
        whole = outputs.astype(np.int64)
        chosen = whole[:, : self.chosen]
        yield self.steps.choice, np.arange(len(whole)), chosen
        for second, alike in self._seconds(chosen):
            yield second, alike, whole[alike, self.chosen : self.chosen + second.mechanism.size]

    @property
    def one_by_one(self) -> Sequence[Event | Budget]:
        return self.steps.choice.share, self.steps.rest

    def output_width(self, watched: int) -> int:
        return max(self.numbers, self.steps.choice.mechanism.size)

    def _seconds(self, chosen: Integers) -> list[tuple[StagedRelease, Integers]]:
        """The different second steps after choices (times, chosen), and the rows that lead to each."""
        choices, which = np.unique(chosen, axis=0, return_inverse=True)
        steps = [self.steps.after(Noisy(choice)) for choice in choices]
        different: dict[StagedRelease, int] = {}
        of_choice = np.array([different.setdefault(s, len(different)) for s in steps])[
            which.ravel()
        ]
        return [(step, np.flatnonzero(of_choice == i)) for i, step in enumerate(different)]
