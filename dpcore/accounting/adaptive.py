"""Tables measured with noise, and some of them again: the rho or the alpha of both rounds add up.

Zero-concentrated and pure differential privacy both compose adaptively: the second round may depend
on what the first one drew (Bun & Steinke 2016, Lemma 2.3).
"""

from __future__ import annotations

from fractions import Fraction

from dpcore.accounting.zcdp import covers_rho
from dpcore.budget import Budget
from dpcore.events import AdaptiveMarginsEvent

FIRST_PART = Fraction(4, 5)
"""Of the budget goes to the first round, which all tables share."""


def adaptive_rho(event: AdaptiveMarginsEvent) -> Fraction | None:
    """The rho of both rounds of Gaussian noise; None for other noise."""
    return _spent(event) / 2 if event.noise == "discrete-gaussian" else None


def adaptive_alpha(event: AdaptiveMarginsEvent) -> Fraction | None:
    """The alpha of both rounds of Laplace noise; None for other noise."""
    return _spent(event) if event.noise == "discrete-laplace" else None


def covers_adaptive(event: AdaptiveMarginsEvent, share: Budget) -> bool:
    """Whether the share pays for both rounds."""
    if event.scale <= 0 or event.again_scale <= 0 or share.alpha <= 0:
        return False
    rho, alpha = adaptive_rho(event), adaptive_alpha(event)
    if rho is not None:
        return 0 < share.beta < 1 and covers_rho(rho, share.alpha, share.beta)
    return alpha is not None and alpha <= share.alpha


def _spent(event: AdaptiveMarginsEvent) -> Fraction:
    return event.sensitivity / event.scale + event.again_sensitivity / event.again_scale
