"""Noise on occupied cells and a threshold: (l1/scale, p)-DP, p the chance that one record is shown.

The proof is in ``dpcore.mechanisms.stability``; p = exp(-threshold/scale) / (1 + exp(-1/scale)) is
compared with beta in certified arithmetic.  It is also the chance that a noisy distance reaches the
threshold where the exact one is 1 (``dpcore.mechanisms.propose_test_release``).
"""

from __future__ import annotations

import math
from fractions import Fraction

from dpcore.budget import Budget
from dpcore.events import ProposeTestReleaseEvent, StabilityEvent
from dpcore.sampling.enclosures import exp_bounds


def stability_threshold(scale: Fraction, beta: Fraction) -> int:
    """The least threshold at which a cell of one record is shown with chance beta at most."""
    if not 0 < beta < 1:
        raise ValueError("a histogram of occupied cells needs beta between 0 and 1")
    rate = 1 / float(scale)
    guess = math.ceil(-float(scale) * (math.log(beta) + math.log1p(math.exp(-rate))))
    threshold = max(0, guess - 2)  # the logarithms are off by less
    while not _shown_at_most(scale, threshold, beta):
        threshold += 1
    return threshold


def covers_stability(event: StabilityEvent, share: Budget) -> bool:
    """Whether the share's alpha pays for the noise and its beta for the threshold."""
    if event.scale <= 0 or event.threshold < 0 or share.beta <= 0:
        return False
    if event.l1_sensitivity not in (1, 2):  # one record is removed, or moves
        return False
    return event.l1_sensitivity <= share.alpha * event.scale and _shown_at_most(
        event.scale, event.threshold, share.beta
    )


def covers_tests(event: ProposeTestReleaseEvent, share: Budget) -> bool:
    """Whether the share's alpha pays for two tests and a release, and its beta for passing wrongly."""
    if min(event.test_scale, event.scale) <= 0 or event.threshold < 0 or share.beta <= 0:
        return False
    spent = 2 / event.test_scale + event.sensitivity / event.scale
    return spent <= share.alpha and _shown_at_most(
        event.test_scale, event.threshold, share.beta / 2
    )


def _shown_at_most(scale: Fraction, threshold: int, beta: Fraction) -> bool:
    """Whether a^threshold / (1 + a) <= beta, certainly."""
    bits = 128 + math.ceil(-math.log2(beta))
    _, tail = exp_bounds(threshold / scale, bits)
    a, _ = exp_bounds(1 / scale, bits)
    return tail * beta.denominator <= beta.numerator * ((1 << bits) + a)
