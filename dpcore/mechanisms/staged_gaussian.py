"""Gaussian noise, and then Gaussian noise on what the first noisy numbers chose: priced as one draw.

Claim.  Input: the tally of ``domain``.  Neighbours: any relation under which the first step's statistic
moves by at most S in the squared L2 norm, and that of the second step, whatever was chosen, by at most
S'.  Output: the first step's draw at the variance V, then the second one's at V', then zeros up to a
public length.  It costs the single draw of ``rounds``:
(S/V + S'/V')/2-zCDP, and (alpha, beta, 0)-DP wherever one draw at the smaller of both variances, v, and
the squared sensitivity (S/V + S'/V') v is, with S + S' coordinates that may differ.

Preconditions.  S' and V' do not depend on the choice (checked before the second draw); each step crosses
the privacy line by itself, at its own rho; the price of the single draw is covered by the share (the
privacy line checks it).

Proof.  The second step depends on the first one only through its noisy result, which is public, and
given that it is noise of known law on a vector: ``rounds``.

Ranges.  Those of both steps.

Source.  Bun & Steinke 2016, Lemma 2.3; Dong, Roth & Su 2022, Theorem 3.2.
"""

from __future__ import annotations

from dataclasses import dataclass

from dpcore.arrays import Integers
from dpcore.errors import PrivacyLineError
from dpcore.line.mechanism import Event
from dpcore.mechanisms.gaussian import DiscreteGaussian
from dpcore.mechanisms.rounds import TwoRoundsEvent, rounds_drawn
from dpcore.mechanisms.staged import Staged, StagedRelease


@dataclass(frozen=True)
class StagedGaussianEvent(TwoRoundsEvent):
    """Noise on numbers that choose what is measured with fresh noise; both laws do not depend on it."""

    kind = "staged-gaussian"


@dataclass(frozen=True)
class StagedGaussian(Staged):
    """``Staged`` of two Gaussian steps, whose shares are in rho; ``again``: the noise of the second."""

    again: DiscreteGaussian

    @property
    def event(self) -> StagedGaussianEvent:
        first = self.steps.choice.mechanism
        assert isinstance(first, DiscreteGaussian)
        return StagedGaussianEvent(*rounds_drawn(first, self.again))

    @property
    def one_by_one(self) -> list[Event]:
        return [self.steps.choice.mechanism.event, self.again.event]

    def _seconds(self, chosen: Integers) -> list[tuple[StagedRelease, Integers]]:
        found = super()._seconds(chosen)
        if any(step.mechanism.event != self.again.event for step, _ in found):
            raise PrivacyLineError("the noise of the second step is not the one that was priced")
        return found
