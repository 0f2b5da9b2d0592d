"""The price of a mechanism that is chosen after a domain was found: a whole share, fixed in advance.

Claim.  A mechanism that is chosen in view of earlier draws, and that the privacy line certifies for a
share of (alpha, beta) or of (rho, beta), costs at most that share, whatever was drawn before.

Preconditions.  The share is fixed before the first of these draws, and the privacy line refuses a
mechanism that costs more (``dpcore.line.privacy_line``).  Gamma is 0: the probabilities of exceptional
sets do not add up if a set is chosen in view of a draw.

Proof.  Given the earlier draws the mechanism is fixed, and is (alpha, beta)-DP, or beta-approximately
rho-zCDP, by what the privacy line checked.  Both compose adaptively with shares that are fixed before
(Rogers, Roth, Ullman & Vadhan 2016, Theorem 3.1; Bun & Steinke 2016, Lemma 2.3).  An (alpha, beta)-DP
pair of laws has the concentrated price (alpha^2/2, beta), as in ``mechanisms.stability``.

Ranges.  Exact rationals.

Source.  As above.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from dpcore.accounting.budget import Budget
from dpcore.line.mechanism import Event


@dataclass(frozen=True)
class WithinShare(Event):
    """A mechanism that is not known yet and will cost at most this share of the budget."""

    kind = "within-share"

    alpha: Fraction
    beta: Fraction
    rho: Fraction

    def covered_by(self, share: Budget) -> bool:
        return (
            self._sound
            and not self.rho
            and self.alpha <= share.alpha
            and self.beta <= share.beta < 1
        )

    @property
    def concentrated(self) -> tuple[Fraction, Fraction] | None:
        return (self.rho or self.alpha**2 / 2, self.beta) if self._sound else None

    @property
    def _sound(self) -> bool:
        """Whether exactly one of alpha and rho is spent, and no coordinate is negative."""
        return min(self.alpha, self.beta, self.rho) >= 0 and (self.alpha > 0) != (self.rho > 0)
