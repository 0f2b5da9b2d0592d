"""Choose a setting, such as a bandwidth, from the records, then add noise to numbers at that setting.

Claim.  Input: the tally of ``domain``.  Neighbours: any relation under which the scores of the choices
move as ``choice`` states, and the numbers at any setting by at most the sensitivity of ``noise``.
Output: the choices, then the numbers at the chosen setting with noise, padded with ``ABSENT`` to a
public length.  It is DP at either price of ``rounds``: the sum of both rounds, or a single draw.

Preconditions.  Those of ``exponential`` and of the noise, whose law is the same at all settings; each
round crosses the privacy line by itself, and the share covers the price (the privacy line checks it).

Proof.  The choice is public, and the setting is post-processing of it.  Given the setting, the second
round is noise of known law on a vector.  ``rounds`` proves both prices.

Ranges.  Those of both rounds.

Source.  Dwork & Roth 2014, section 3.5; Bun & Steinke 2016; Dong, Roth & Su 2022, Theorem 3.2.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from dpcore.arrays import Integers
from dpcore.domain.tally import Tally
from dpcore.line.statistic import ABSENT, Statistic
from dpcore.mechanisms.exponential import ExponentialMechanism
from dpcore.mechanisms.rounds import CHOSEN, AdaptiveRounds, Noise, RoundsEvent


class Setting(Hashable, Protocol):
    """A chosen setting."""

    def numbers(self, tally: Tally) -> Integers:
        """The exact numbers that noise is added to: private."""
        ...


class Tuning(Protocol):
    """The choices, and the setting that follows from them."""

    def scores(self, tally: Tally) -> Integers:
        """The exact scores of all candidates of all choices: private."""
        ...

    def after(self, chosen: Integers) -> Setting:
        """The setting that follows from the chosen candidates (choices,): public."""
        ...


@dataclass(frozen=True)
class TunedNoise(AdaptiveRounds):
    """Choices by ``tuning``, then noise on the numbers at the chosen setting: DP at the sum of both.

    ``domain``: the domain of the tally; ``noise``: its number of cells is the most numbers at any
    setting.
    """

    choice: ExponentialMechanism
    noise: Noise
    tuning: Tuning

    comparable = False
    audit_number = CHOSEN

    @property
    def laws(self) -> tuple[ExponentialMechanism, Noise]:
        return self.choice, self.noise

    @property
    def widths(self) -> tuple[int, int]:
        return self.choice.choices, self.noise.size

    @property
    def event(self) -> RoundsEvent:
        return RoundsEvent.of(None, self.noise, self.choice.event)

    def next_point(self, number: int, point: int, noisy: Integers) -> Integers:
        return noisy

    def exact(self, number: int, records: Tally, point: Any) -> Integers:
        if number == 0:
            return np.tile(self.tuning.scores(records), (point, 1))
        # An audit repeats the draw many times: the numbers of each setting are computed only once.
        found = np.full((len(point), self.noise.size), ABSENT)
        choices, which = np.unique(point, axis=0, return_inverse=True)
        settings = [self.tuning.after(choice) for choice in choices]
        for setting in dict.fromkeys(settings):
            numbers = setting.numbers(records)
            alike = np.flatnonzero([each == setting for each in settings])
            found[np.isin(which.ravel(), alike), : len(numbers)] = numbers
        return found

    def moved_by(self, near: Statistic, far: Statistic) -> float:
        """The change of the second round between neighbours, at the first table's best setting."""
        tables = [self.records(side) for side in (near, far)]
        scores = [self.tuning.scores(table) for table in tables]
        best = self.tuning.after(scores[0].reshape(self.choice.choices, -1).argmin(axis=1))
        numbers = [Statistic(best.numbers(table)) for table in tables]
        return max(self.choice.moved_by(*map(Statistic, scores)), self.noise.moved_by(*numbers))

    def output_width(self, watched: int) -> int:
        # To examine a choice, an audit needs a number for each of its candidates.
        return max(self.numbers, self.choice.size)
